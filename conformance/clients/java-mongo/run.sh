#!/usr/bin/env bash
# Runs the Java driver and Spring Data against a server that runs already: ORRERY_MONGO, ORRERY_ACCOUNT_NAME and
# ORRERY_ACCOUNT_KEY say where (see ../run.sh). Needs a JDK 17 and Maven; the libraries come from the registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${TMPDIR:-/tmp}/orrery-java-mongo
mkdir -p "$out"
[[ -d $out/lib ]] || mvn -q -B dependency:copy-dependencies -DoutputDirectory="$out/lib"
[[ ${1:-} != install ]] || exit 0
javac -nowarn -parameters -d "$out" -cp "$out/lib/*" MongoRun.java
java -cp "$out:$out/lib/*" MongoRun
