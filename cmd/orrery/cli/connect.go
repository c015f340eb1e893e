package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// connectCmd prints how to connect to a running server.
type connectCmd struct {
	Data string
	JSON bool
}

func (c *connectCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "connect", Args: cobra.NoArgs, RunE: runs(func() error { return c.run(s) }),
		Short: "Print the connection strings of a server, from its data directory."}
	f := cmd.Flags()
	f.StringVar(&c.Data, "data", "data", "Data `DIR` of the server.")
	f.BoolVar(&c.JSON, "json", false, "Print JSON, as /orrery/connect of the admin port.")
	return cmd
}

// run prints how to connect. It prints the key, because a user who can read the data directory may have it.
func (c *connectCmd) run(s *streams) error {
	conns, err := server.ReadConnections(c.Data)
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(s.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(conns)
	}
	key := conns.Key
	if !conns.Auth {
		key = "not asked for (--auth=false)"
	}
	return conns.Write(s.out, key, "")
}
