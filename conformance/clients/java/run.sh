#!/usr/bin/env bash
# Runs the Java driver against a server that runs already: ORRERY_GREMLIN, ORRERY_ACCOUNT_NAME and ORRERY_ACCOUNT_KEY say
# where (see ../run.sh). Needs a JDK and Maven; the driver comes from the registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${TMPDIR:-/tmp}/orrery-java
mkdir -p "$out"
[[ -d $out/lib ]] || mvn -q -B dependency:copy-dependencies -DoutputDirectory="$out/lib"
[[ ${1:-} != install ]] || exit 0
javac -nowarn -d "$out" -cp "$out/lib/*" GremlinRun.java
java -cp "$out:$out/lib/*" GremlinRun
