package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/progress"
	"github.com/orrerydb/orrery/core"
)

// repairCmd saves everything readable of a damaged store into a new directory.
type repairCmd struct {
	Dir  string
	To   string
	JSON bool
}

func (c *repairCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "repair DIR", Short: "Save what can be read of a damaged store into a new directory.",
		Long: "Save what can be read of a damaged store into a new directory. Nothing in DIR is changed.",
		Args: only(asDirectory(&c.Dir)), RunE: runs(func() error { return c.run(s) })}
	f := cmd.Flags()
	f.StringVar(&c.To, "to", "", "New data `DIR`; made when absent, otherwise empty.")
	f.BoolVar(&c.JSON, "json", false, "Print one JSON document instead of lines.")
	return require(cmd, "to")
}

// repairResult is the output of repair --json.
type repairResult struct {
	Directory  string      `json:"directory"`
	To         string      `json:"to"`
	Containers int         `json:"containers"`
	Items      int64       `json:"items"`
	Lost       []core.Lost `json:"lost"`
}

// run saves what it can. It prints each loss on a line, and fails if there is one.
func (c *repairCmd) run(s *streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &repairResult{Directory: c.Dir, To: c.To, Lost: []core.Lost{}}
	bar := progress.New(s.errOut)
	bar.Task("reading tables", false)
	done, err := server.Repair(ctx, c.Dir, c.To, bar.Set, func(l core.Lost) {
		r.Lost = append(r.Lost, l)
		if !c.JSON {
			bar.Clear()
			fmt.Fprintln(s.out, l)
		}
	})
	r.Containers, r.Items = done.Containers, done.Items
	if err == nil {
		bar.Task("checking", false)
		err = c.check(ctx, bar)
	}
	bar.Clear()
	if err != nil {
		return err
	}
	if c.JSON {
		out := json.NewEncoder(s.out)
		out.SetIndent("", "  ")
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	saved := fmt.Sprintf("%s: %d containers with %d items are saved in %s", c.Dir, r.Containers, r.Items, c.To)
	if len(r.Lost) > 0 {
		return fmt.Errorf("%s; %s", saved, count(len(r.Lost), "loss"))
	}
	if !c.JSON {
		fmt.Fprintln(s.out, saved+"; nothing is lost")
	}
	return nil
}

// check verifies the new store.
func (c *repairCmd) check(ctx context.Context, bar *progress.Bar) error {
	eng, err := server.OpenForReading(ctx, c.To)
	if err != nil {
		return err
	}
	var problems []error
	err = eng.CheckWatched(ctx, core.CheckWatch{
		Problem:  func(what string) { problems = append(problems, fmt.Errorf("%s has a problem: %s", c.To, what)) },
		Progress: bar.Set,
	})
	return errors.Join(errors.Join(problems...), err, eng.Close())
}
