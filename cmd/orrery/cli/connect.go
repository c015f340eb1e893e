package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// connectCmd prints how to connect to a running server.
type connectCmd struct {
	Data string
	JSON bool

	admin string // the admin port that is asked if neither a directory is given nor ./data is served
}

func (c *connectCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "connect", Args: noArguments, RunE: runs(func() error { return c.run(s) }),
		Short: "Print the connection strings of a server."}
	f := cmd.Flags()
	f.StringVar(&c.Data, "data", "", "Data `DIR` of the server; without it ./data is looked at, and then the default "+
		"address.")
	c.admin = "http://" + server.Default().AdminAddr
	f.BoolVar(&c.JSON, "json", false, "Print JSON, as /orrery/connect of the admin port.")
	return cmd
}

// run prints how to connect. It prints the key, because a user who can read the data directory may have it.
func (c *connectCmd) run(s *streams) error {
	conns, err := c.connections()
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
	var b strings.Builder
	if err := conns.Write(&b, key, ""); err != nil {
		return err
	}
	if strings.ContainsFunc(b.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return errors.New("the connection strings have control characters: they aren't those of Orrery")
	}
	_, err = io.WriteString(s.out, b.String())
	return err
}

// connections returns the connection strings of the server.
func (c *connectCmd) connections() (*server.Connections, error) {
	if c.Data != "" {
		return server.ReadConnections(c.Data)
	}
	conns, err := server.ReadConnections("data")
	if err == nil {
		return conns, nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	conns, asked := server.AskForConnections(ctx, c.admin)
	if asked != nil {
		return nil, fmt.Errorf("%w; %w", err, asked)
	}
	return conns, nil
}
