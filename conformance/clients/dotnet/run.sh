#!/usr/bin/env bash
# Runs the tests of .NET's NoSQL client against the server at ORRERY_NOSQL. With FILE, an absolute path, it runs that
# program instead. The compiler has no asynchronous Main, so such a one is called by another.
#
#   conformance/clients/dotnet/run.sh [FILE]
#
# NuGet isn't among the registries, but Azure's MCP server for npm carries the client (Microsoft.Azure.Cosmos 3.48.0) and
# the runtime (.NET 9) as they are. So it is installed, and the tests take the place of its own program. They are
# compiled by Mono's compiler, against the interfaces that both runtimes have.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
if [[ ! -d node_modules || package-lock.json -nt node_modules ]]; then
  npm ci --ignore-scripts --silent --no-progress && touch node_modules
fi
[[ ${1:-} != install ]] || exit 0
sdk=node_modules/@azure/mcp-linux-x64/dist
mono=/usr/lib/mono/4.8-api
refs=()
for dll in $mono/{mscorlib,System,System.Core,System.Net.Http,Microsoft.CSharp}.dll $mono/Facades/{netstandard,System.Runtime}.dll \
  $sdk/{Microsoft.Azure.Cosmos.Client,Azure.Core,System.ClientModel}.dll; do
  refs+=("-r:$dll")
done
program=(./*.cs) args=("${ORRERY_NOSQL:-}" "${ORRERY_ACCOUNT_KEY:-}")
if [[ $# -gt 0 ]]; then
  copy=$(mktemp --suffix .cs)
  trap 'rm -f "$copy"' EXIT
  sed 's/static async Task Main()/static void Main() { Begin().GetAwaiter().GetResult(); }\n    static async Task Begin()/' "$1" >"$copy"
  program=("$copy") args=()
fi
mcs -langversion:latest -nostdlib -noconfig -nowarn:1701,1702 -out:"$sdk/azmcp.dll" "${refs[@]}" "${program[@]}"
chmod +x "$sdk/azmcp"
DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 "$sdk/azmcp" ${args[@]+"${args[@]}"}
