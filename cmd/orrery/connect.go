package main

import (
	"encoding/json"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// connectCmd prints how to connect to a running server.
type connectCmd struct {
	Data string `default:"data" placeholder:"DIR" help:"Data directory of the server (default ./data)."`
	JSON bool   `name:"json" help:"Print JSON, as /orrery/connect of the admin port."`
}

// Run implements the command. It prints the key, because a user who can read the data directory may have it.
func (c *connectCmd) Run(s *streams) error {
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
