// Command orrery-tikv is orrery with one more storage engine: a store in TiKV, which any number of servers share. All
// commands and flags are those of orrery.
package main

import (
	"os"

	"github.com/orrerydb/orrery/cmd/orrery/cli"
)

func main() { os.Exit(cli.Main(tikv)) }
