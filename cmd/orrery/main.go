// Command orrery serves Azure Cosmos DB's four APIs (NoSQL, Table, Gremlin, MongoDB) over one store.
package main

import (
	"os"

	"github.com/orrerydb/orrery/cmd/orrery/cli"
)

func main() { os.Exit(cli.Main()) }
