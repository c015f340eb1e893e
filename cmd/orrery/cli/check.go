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
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// checkCmd verifies a store.
type checkCmd struct {
	Dir  string
	JSON bool
}

func (c *checkCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "check DIR", Short: "Verify a store that no server has open.",
		Args: only(asDirectory(&c.Dir)), RunE: runs(func() error { return c.run(s) })}
	cmd.Flags().BoolVar(&c.JSON, "json", false, "Print one JSON document instead of lines.")
	return cmd
}

// checkResult is the output of check --json.
type checkResult struct {
	Directory  string             `json:"directory"`
	Clean      bool               `json:"clean"`
	Problems   []pebblekv.Problem `json:"problems"`
	Notes      []pebblekv.Problem `json:"notes,omitempty"`
	Containers int                `json:"containers"`
	Items      int64              `json:"items"`
}

// run verifies the store. It prints every problem on a line, and fails if there is one. It doesn't change anything
// in the directory.
func (c *checkCmd) run(s *streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &checkResult{Directory: c.Dir, Problems: []pebblekv.Problem{}}
	bar := newBar(s.errOut)
	report := func(p pebblekv.Problem) {
		if p.Level == pebblekv.Note {
			r.Notes = append(r.Notes, p)
		} else {
			r.Problems = append(r.Problems, p)
		}
		if !c.JSON {
			bar.clear()
			if p.Level == pebblekv.Note {
				fmt.Fprintf(s.out, "note: %s\n", p)
			} else {
				fmt.Fprintln(s.out, p)
			}
		}
	}
	err := c.check(ctx, r, report, bar)
	bar.clear()
	if err != nil {
		return err
	}
	r.Clean = len(r.Problems) == 0
	if c.JSON {
		out := json.NewEncoder(s.out)
		out.SetIndent("", "  ")
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	if !r.Clean {
		return fmt.Errorf("%s: %s in %d containers with %d items; orrery repair %s --to NEWDIR saves what can be read",
			c.Dir, count(len(r.Problems), "problem"), r.Containers, r.Items, c.Dir)
	}
	if !c.JSON {
		fmt.Fprintf(s.out, "%s: clean, %d containers with %d items\n", c.Dir, r.Containers, r.Items)
	}
	return nil
}

func (c *checkCmd) check(ctx context.Context, r *checkResult, report func(pebblekv.Problem), bar *bar) error {
	bar.task("files", true)
	eng, err := server.Examine(ctx, c.Dir, pebblekv.Watch{Report: report, Progress: bar.set})
	if err != nil || eng == nil {
		return err
	}
	if eng.Older() {
		report(pebblekv.Problem{Level: pebblekv.Note, What: "the store is of an older format, or its upgrade isn't " +
			"over: " +
			"index entries that are to be made again aren't looked at; everything else is checked"})
	}
	bar.task("items", false)
	err = eng.CheckWatched(ctx, core.CheckWatch{
		Problem:  func(what string) { report(pebblekv.Problem{What: what, Level: pebblekv.Damage}) },
		Progress: bar.set,
	})
	for k, cerr := range eng.Stats(ctx, "") {
		if cerr == nil { // otherwise it has been reported
			r.Containers++
			r.Items += k.Items
		}
	}
	return errors.Join(err, eng.Close())
}

// count returns a number with its noun, such as "3 items".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if what == "loss" {
		return fmt.Sprintf("%d losses", n)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
