#!/usr/bin/env bash
# Copies graphs from TinkerPop's Gremlin Server to Orrery, and from there to another graph of Gremlin Server, and compares
# all three. ORRERY_BIN has the binary, ORRERY_COPY the program of `orrery copy`. Needs Node, Java and Maven; Gremlin
# Server comes from the registry into ./target, which git ignores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
[[ -f target/.whole ]] ||
  { mvn -q -B dependency:copy-dependencies -DoutputDirectory=target/lib && touch target/.whole; }
[[ ${1:-} != install ]] || exit 0
exec node run.mjs
