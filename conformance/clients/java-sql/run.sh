#!/usr/bin/env bash
# Runs azure-cosmos for Java in gateway mode against a server that runs already: ORRERY_NOSQL and ORRERY_ACCOUNT_KEY say where
# (see ../run.sh). Needs a JDK and Maven; the client comes from the registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${TMPDIR:-/tmp}/orrery-java-sql
mkdir -p "$out"
if [[ ! -d $out/lib || pom.xml -nt $out/lib ]]; then
  mvn -q -B dependency:copy-dependencies -DoutputDirectory="$out/lib" && touch "$out/lib"
fi
[[ ${1:-} != install ]] || exit 0
javac -nowarn -d "$out" -cp "$out/lib/*" ./*.java
# The client speaks HTTPS unless it is told that this server is one for development.
java -DCOSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true -DCOSMOS.EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED=true \
  -DCOSMOS.EMULATOR_HOST="$ORRERY_NOSQL/" -cp "$out:$out/lib/*" SQLRun 2>&1 | grep -v '^SLF4J'
