#!/usr/bin/env bash
# Runs the clients of other languages against ./bin/orrery on free ports, prints counts, and verifies the resulting
# stores.
#
#   conformance/clients/run.sh [js|python|java|dotnet|console|gremlinserver|mongosh|page|programs|docs [FILE...]]     default: all; FILE: only these test files of js or python
#   conformance/clients/run.sh install      only installs what they need
#
# Needs node and npm. Python, Java and the Gremlin Console (Java) are run where they are installed, and .NET's client
# where Mono's compiler is. The clients come from the registries, in the versions of the lock files. ORRERY_BIN names
# another binary, and ORRERY_FLAGS are further flags for the servers. The NoSQL clients of Node and Python run twice:
# against a server with its defaults, and against one with "--strict none". With ORRERY_ENGINE, an address such as
# tikv://127.0.0.1:2379/%s, each server has a keyspace of that cluster instead of a directory; the binary must be
# orrery-tikv then. The clients of Node and the web page run beside the others, against a server of their own.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=${ORRERY_BIN:-$root/bin/orrery}
[[ -x $bin || ${1:-} == install ]] || (cd "$root" && CGO_ENABLED=0 go build -o "$bin" ./cmd/orrery)

work=$(mktemp -d)
pids=()
stores=()
beside=
cleanup() {
  [[ -z $beside ]] || kill "$beside" 2>/dev/null || true
  for p in ${pids[@]+"${pids[@]}"}; do kill "$p" 2>/dev/null && wait "$p" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT

# store NAME prints the flag that says where the data of a server is.
store() { if [[ -n ${ORRERY_ENGINE:-} ]]; then echo "--engine=${ORRERY_ENGINE/\%s/clients-$$-$1}"; else echo "--data=$work/$1.data"; fi; }

# serve NAME [FLAG...] starts a server on free ports, and sets p1 to p5 to the ports.
serve() {
  local name=$1
  shift
  read -r p1 p2 p3 p4 p5 < <(node -e '
const net = require("net"), s = [];
(function next() {
  if (s.length === 5) { console.log(s.map((x) => x.address().port).join(" ")); s.forEach((x) => x.close()); return; }
  const x = net.createServer().listen(0, "127.0.0.1", next); s.push(x);
})();')
  "$bin" serve "$(store "$name")" --nosql-addr "127.0.0.1:$p1" --gremlin-addr "127.0.0.1:$p2" --table-addr "127.0.0.1:$p3" \
    --mongo-addr "127.0.0.1:$p4" --admin-addr "127.0.0.1:$p5" "$@" ${ORRERY_FLAGS:-} >"$work/$name.log" 2>&1 &
  local pid=$!
  pids+=("$pid")
  stores+=("$name")
  for _ in $(seq 100); do
    curl -fs "http://127.0.0.1:$p5/ready" >/dev/null 2>&1 && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  cat "$work/$name.log"
  echo "the server did not start" >&2
  exit 1
}

export ORRERY_ACCOUNT_NAME=localhost
export ORRERY_ACCOUNT_KEY=C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==

export ORRERY_STRICT=nosql

# Tests end before Java's second compiler has paid for itself: with it they take half as much CPU again.
export JDK_JAVA_OPTIONS='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'

# server NAME starts the server of some languages, and writes where it is to $work/NAME.env.
server() {
  serve "$1"
  cat >"$work/$1.env" <<EOF
export ORRERY_NOSQL=http://127.0.0.1:$p1
export ORRERY_GREMLIN=ws://127.0.0.1:$p2/gremlin
export ORRERY_TABLE=http://127.0.0.1:$p3
export ORRERY_MONGO=127.0.0.1:$p4
export ORRERY_ADMIN=http://127.0.0.1:$p5
EOF
}

# open_server starts the server without strictness.
open_server() {
  serve open --strict none
  open=http://127.0.0.1:$p1 openadmin=http://127.0.0.1:$p5
}

# js_clients installs the clients of Node.
js_clients() {
  cd "$here/js"
  if [[ ! -d node_modules || package-lock.json -nt node_modules ]]; then
    npm ci --silent --no-progress && touch node_modules
  fi
}

run_js() {
  js_clients
  [[ $# -gt 0 ]] || set -- *.test.mjs
  local side_by_side=${ORRERY_ENGINE:+2} # over a network the tests wait half of the time
  node_tests js "$@"
}

# Those of the NoSQL API again, with the server that isn't strict.
run_jsopen() {
  js_clients
  local f sql=()
  [[ $# -gt 0 ]] || set -- *.test.mjs
  for f in "$@"; do [[ $f != sql* ]] || sql+=("$f"); done
  [[ ${#sql[@]} -eq 0 ]] || ORRERY_NOSQL=$open ORRERY_ADMIN=$openadmin ORRERY_STRICT=none node_tests jsopen "${sql[@]}"
}

# node_tests NAME FILE... runs test files of node and prints their counts under a name.
node_tests() {
  local name=$1 code
  shift
  set +e
  node --test --test-reporter=spec ${side_by_side:+--test-concurrency=$side_by_side} "$@" | tee "$work/$name.tests"
  code=${PIPESTATUS[0]}
  set -e
  count() { sed -n "s/^ℹ $1 \([0-9]*\)$/\1/p" "$work/$name.tests" | tail -1; }
  echo "$name: $(count pass) passed, $(count fail) failed, $(count tests) tests in $# files"
  return "$code"
}

has_python() { python3 -c 'import venv, ensurepip' 2>/dev/null; }

# python_clients installs the clients of Python.
python_clients() {
  cd "$here/python"
  if [[ ! -d .venv || requirements.txt -nt .venv ]]; then
    python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check -r requirements.txt && touch .venv
  fi
}

run_python() {
  if ! has_python; then
    echo "python: not run, there is no python3 with venv here"
    return 0
  fi
  python_clients
  local files=("$@") code=0 sql=()
  [[ ${#files[@]} -gt 0 ]] || files=(test_*.py)
  for f in "${files[@]}"; do [[ $f != test_sql* ]] || sql+=("$f"); done
  python_tests python "${files[@]}" || code=1
  [[ ${#sql[@]} -eq 0 ]] || ORRERY_NOSQL=$open ORRERY_ADMIN=$openadmin ORRERY_STRICT=none python_tests pythonopen "${sql[@]}" || code=1
  return "$code"
}

# python_tests NAME FILE... runs test files of unittest and prints their counts under a name.
python_tests() {
  local name=$1 code ran bad
  shift
  set +e
  .venv/bin/python -m unittest -v "$@" 2>&1 | tee "$work/$name.tests"
  code=${PIPESTATUS[0]}
  set -e
  ran=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} in .*/\1/p' "$work/$name.tests" | tail -1)
  bad=$(grep -cE '^(FAIL|ERROR): ' "$work/$name.tests" || true)
  echo "$name: $((${ran:-0} - bad)) passed, $bad failed, ${ran:-0} tests in $# files"
  return "$code"
}

run_java() {
  if ! command -v mvn >/dev/null || ! command -v javac >/dev/null; then
    echo "java: not run, there is no JDK with Maven here"
    return 0
  fi
  local code=0 # each prints its own counts
  "$here/java/run.sh" || code=1
  "$here/java-mongo/run.sh" || code=1
  "$here/java-debezium/run.sh" || code=1
  "$here/java-sql/run.sh" || code=1
  return "$code"
}

run_console() {
  if ! command -v mvn >/dev/null || ! command -v java >/dev/null; then
    echo "console: not run, there is no Java with Maven here"
    return 0
  fi
  "$here/console/run.sh"
}

# Gremlin Server itself, from which and to which graphs are copied.
run_gremlinserver() {
  if ! command -v mvn >/dev/null || ! command -v java >/dev/null; then
    echo "gremlinserver: not run, there is no Java with Maven here"
    return 0
  fi
  (cd "$root" && CGO_ENABLED=0 go build -C cmd/orrery-copy -o "$work/orrery-copy" .)
  ORRERY_BIN=$bin ORRERY_COPY=$work/orrery-copy "$here/gremlinserver/run.sh"
}

# mongosh_client installs mongosh.
mongosh_client() {
  cd "$here/mongosh"
  if [[ ! -d node_modules || package-lock.json -nt node_modules ]]; then
    npm ci --ignore-scripts --silent --no-progress && touch node_modules
  fi
}

run_mongosh() {
  mongosh_client
  local password # in a connection string the key is percent-encoded
  password=$(node -p 'encodeURIComponent(process.env.ORRERY_ACCOUNT_KEY)')
  # An empty HOME: no settings and no history of the user.
  HOME=$work timeout 120 node_modules/.bin/mongosh "mongodb://$ORRERY_ACCOUNT_NAME:$password@$ORRERY_MONGO/?directConnection=true" \
    --quiet --file shell.js 2>"$work/mongosh.err" || { cat "$work/mongosh.err"; return 1; }
}

# system_packages FILE PACKAGE... installs packages of Debian if this is root there and a file isn't.
system_packages() {
  if [[ ! -e $1 && $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${@:2}"; } >>"$work/apt.log" 2>&1 || true
  fi
}

# compiler installs a compiler of C#, and the interfaces that it compiles against.
netstandard=/usr/lib/mono/4.8-api/Facades/netstandard.dll
compiler() { [[ $(uname -sm) != "Linux x86_64" ]] || system_packages "$netstandard" mono-devel; }

has_compiler() { command -v mcs >/dev/null && [[ -e $netstandard ]]; }

run_dotnet() {
  compiler
  if ! has_compiler; then
    echo "dotnet: not run, there is no mcs here"
    return 0
  fi
  "$here/dotnet/run.sh"
}

# browser prepares the tests in Chromium and sets its name. Chromium comes from the system, and is installed where that is
# Debian and this is root.
browser() {
  cd "$here/page"
  chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
  if [[ -z $chromium ]]; then
    system_packages /usr/bin/chromium chromium fonts-dejavu-core
    chromium=$(command -v chromium || true)
  fi
  if [[ -z $chromium ]]; then
    echo "$1: not run, there is no chromium here"
    return 1
  fi
  if [[ ! -d node_modules || package-lock.json -nt node_modules ]]; then
    npm ci --ignore-scripts --silent --no-progress && touch node_modules
  fi
}

# The web page, against servers of its own with the sample data, and its types.
run_page() {
  local chromium code=0
  browser page || return 0
  node_modules/.bin/tsc -p . || code=1
  ORRERY_BIN=$bin CHROMIUM=$chromium node_tests page *.test.mjs || code=1
  return "$code"
}

# The programs that the page shows, with the clients of the languages that have been run before.
run_programs() {
  local chromium
  browser programs || return 0
  ORRERY_BIN=$bin CHROMIUM=$chromium node_tests programs programs.mjs
}

# The blocks of the documents for the first hour, with the clients of the languages that have been run before.
run_docs() {
  cd "$here/docs"
  ORRERY_BIN=$bin node_tests docs blocks.mjs
}

# install installs what all of them need, one after the other. What can't be is tried again, or left out, by its tests.
install() {
  local java
  (js_clients) || true
  (browser page) || true
  (mongosh_client) || true
  compiler
  ! has_python || (python_clients) || true
  ! has_compiler || "$here/dotnet/run.sh" install || true
  command -v mvn >/dev/null && command -v java >/dev/null || return 0
  for java in java java-mongo java-debezium java-sql console gremlinserver; do
    "$here/$java/run.sh" install || true
  done
}

# each SERVERS LANGUAGES [FILE...] runs languages one after the other.
each() {
  local lang bad=0
  . "$work/$1.env"
  for lang in $2; do
    ("run_$lang" "${@:3}") || bad=1
  done
  return "$bad"
}

status=0
case ${1:-} in
install)
  install
  exit
  ;;
js | python | java | dotnet | console | gremlinserver | mongosh | page | programs | docs)
  server "$1"
  langs=$1
  if ! [[ $1 == js && -n ${ORRERY_ENGINE:-} ]]; then # what isn't strict is the same on every engine
    open_server
    [[ $1 != js ]] || langs='js jsopen'
  fi
  each "$1" "$langs" "${@:2}" || status=1
  ;;
*)
  # What both lanes use is installed before they begin.
  (js_clients)
  (browser page) >/dev/null || true
  compiler
  server node
  server others
  open_server
  each node "js page" "$@" >"$work/beside.log" 2>&1 &
  beside=$!
  each others "python java dotnet console gremlinserver mongosh jsopen programs docs" "$@" || status=1
  wait "$beside" || status=1
  beside=
  cat "$work/beside.log"
  ;;
esac
# verify stops the servers and has the resulting stores verified.
verify() {
  local i good=0 bad=0
  for i in "${!stores[@]}"; do
    if kill -TERM "${pids[i]}" && wait "${pids[i]}" && "$bin" check "$(store "${stores[i]}" | sed 's/^--data=//')"; then good=$((good + 1)); else bad=$((bad + 1)); fi
  done
  pids=()
  echo "stores: $good passed, $bad failed"
  [[ $bad -eq 0 ]]
}
verify || status=1

if [[ $status -ne 0 ]]; then
  for name in "${stores[@]}"; do
    echo "--- last lines of the log of server $name"
    tail -40 "$work/$name.log"
  done
fi
exit "$status"
