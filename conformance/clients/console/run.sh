#!/usr/bin/env bash
# Runs the Gremlin Console itself, two versions of it, against a server that runs already: ORRERY_GREMLIN, ORRERY_NOSQL,
# ORRERY_ACCOUNT_NAME and ORRERY_ACCOUNT_KEY say where (see ../run.sh). Needs Node, Java and Maven; the consoles come from
# the registry into ./target, which git ignores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
for v in 3.7.3 3.4.13; do
  [[ -f target/$v/.whole ]] ||
    { mvn -q -B -Dconsole.version="$v" dependency:copy-dependencies -DoutputDirectory="target/$v" && touch "target/$v/.whole"; }
done
[[ ${1:-} != install ]] || exit 0
exec node run.mjs 3.7.3:tinkerpop.txt 3.4.13:cosmos.txt
