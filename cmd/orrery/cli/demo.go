package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// demoCmd serves sample data from memory.
type demoCmd struct {
	serving
}

func (d *demoCmd) command() *cobra.Command {
	cmd := &cobra.Command{Use: "demo", Short: "Serve sample data from memory.", Args: noArguments, RunE: runs(d.run)}
	d.serving.flags(cmd.Flags())
	return cmd
}

func (d *demoCmd) run() error {
	c, err := d.config()
	if err != nil {
		return err
	}
	c.Memory = true
	return serve(c, func(ctx context.Context, s *server.Server) error { return s.LoadDemo(ctx) })
}
