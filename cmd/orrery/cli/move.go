package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/progress"
)

// moveCmd moves a store to another storage engine, or to another place of the same one.
type moveCmd struct {
	From    string
	To      string
	Abandon bool
	JSON    bool
}

func (c *moveCmd) command(s *streams, engines []server.EngineKind) *cobra.Command {
	cmd := &cobra.Command{Use: "move", Args: noArguments,
		Short: "Move a store that no server has open to another place.",
		Long: "Move a store that no server has open to another place: from a data directory to an address, or back. " +
			"If it is interrupted, the same command continues. The store at --from stays, and isn't served any more."}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if (c.To == "") != c.Abandon {
			return errors.New("want --to, or --abandon")
		}
		return nil
	}
	cmd.RunE = runs(func() error { return c.run(s, engines) })
	f := cmd.Flags()
	f.StringVar(&c.From, "from", "", "Data `DIR` or address of the store.")
	f.StringVar(&c.To, "to", "", "Data `DIR` or address that the store gets; it must be empty.")
	f.BoolVar(&c.Abandon, "abandon", false, "Instead of moving the store: serve the one at --from again, though it is "+
		"being moved, or was.")
	f.BoolVar(&c.JSON, "json", false, "Print one JSON document instead of a line.")
	return require(cmd, "from")
}

func (c *moveCmd) run(s *streams, engines []server.EngineKind) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.Abandon {
		if err := server.AbandonMove(ctx, c.From, engines, slog.Default()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.out, "%s: a store that can be served\n", c.From)
		return err
	}
	bar := progress.New(s.errOut)
	m, err := server.Move(ctx, c.From, c.To, engines, slog.Default(), bar)
	bar.Clear()
	if ctx.Err() != nil && err != nil {
		return errors.New("cancelled; the same command continues")
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, m)
	}
	how := fmt.Sprintf("%s in %d keys with %s", count(int(m.Items), "item"), m.Keys, size(m.Bytes))
	if m.Done {
		how += "; it was moved before"
	} else {
		how += fmt.Sprintf("; copied in %s, compared and checked in %s", m.Copied.Round(10*time.Millisecond),
			m.Checked.Round(10*time.Millisecond))
	}
	_, err = fmt.Fprintf(s.out, "%s: the store of %s, %s\n", m.To, m.From, how)
	return err
}
