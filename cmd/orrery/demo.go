package main

import (
	"context"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// demoCmd serves sample data from memory.
type demoCmd struct {
	serving
}

// Run implements the command.
func (d *demoCmd) Run() error {
	c, err := d.config()
	if err != nil {
		return err
	}
	c.Memory = true
	return serve(c, func(ctx context.Context, s *server.Server) error { return s.LoadDemo(ctx) })
}
