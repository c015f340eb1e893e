package main

import (
	"fmt"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// checkCmd verifies a store.
type checkCmd struct {
	Dir string `arg:"" help:"Data directory." type:"existingdir"`
}

// Run implements the command.
func (c *checkCmd) Run() error {
	return fmt.Errorf("check %s: not part of this build", server.StoreDir(c.Dir))
}
