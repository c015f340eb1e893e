package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/progress"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// checkCmd verifies a store.
type checkCmd struct {
	Dir    string
	Engine string
	JSON   bool
}

func (c *checkCmd) command(s *streams, engines []server.EngineKind) *cobra.Command {
	cmd := &cobra.Command{Use: "check [DIR]", Args: cobra.MaximumNArgs(1),
		Short: "Verify a store in a directory that no server has open, or a store that servers share."}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > 0 && c.Engine != "":
			return errors.New("a directory and --engine can't be used together")
		case c.Engine == "" && len(args) == 0:
			return errors.New("want one argument, the directory of the store, or --engine")
		case len(args) > 0:
			if err := asDirectory(&c.Dir)(args[0]); err != nil {
				return err
			}
		}
		return runs(func() error { return c.run(s, engines) })(nil, nil)
	}
	f := cmd.Flags()
	f.StringVar(&c.Engine, "engine", "", "`ADDRESS` of a store that servers share, instead of a directory. Servers "+
		"may be using it.")
	f.BoolVar(&c.JSON, "json", false, "Print one JSON document instead of lines.")
	return cmd
}

// place is what is checked, for people.
func (c *checkCmd) place() string {
	if c.Engine != "" {
		return server.ShownAddress(c.Engine)
	}
	return c.Dir
}

// checkResult is the output of check --json.
type checkResult struct {
	Directory  string             `json:"directory"` // or the address
	Clean      bool               `json:"clean"`
	Problems   []pebblekv.Problem `json:"problems"`
	Notes      []pebblekv.Problem `json:"notes,omitempty"`
	Containers int                `json:"containers"`
	Items      int64              `json:"items"`
}

// run verifies the store. It prints every problem on a line, and fails if there is one. It doesn't change anything
// in the directory.
func (c *checkCmd) run(s *streams, engines []server.EngineKind) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &checkResult{Directory: c.place(), Problems: []pebblekv.Problem{}}
	bar := progress.New(s.errOut)
	report := func(p pebblekv.Problem) {
		if p.Level == pebblekv.Note {
			r.Notes = append(r.Notes, p)
		} else {
			r.Problems = append(r.Problems, p)
		}
		if !c.JSON {
			bar.Clear()
			if p.Level == pebblekv.Note {
				fmt.Fprintf(s.out, "note: %s\n", p)
			} else {
				fmt.Fprintln(s.out, p)
			}
		}
	}
	err := c.check(ctx, engines, r, report, bar)
	bar.Clear()
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
		err := fmt.Errorf("%s: %s in %d containers with %d items", c.place(), count(len(r.Problems), "problem"),
			r.Containers, r.Items)
		if c.Dir != "" {
			err = fmt.Errorf("%w; orrery repair %s --to NEWDIR saves what can be read", err, c.Dir)
		}
		return err
	}
	if !c.JSON {
		fmt.Fprintf(s.out, "%s: clean, %d containers with %d items\n", c.place(), r.Containers, r.Items)
	}
	return nil
}

// open opens the store. It returns no engine for a store that is too damaged, which it has reported.
func (c *checkCmd) open(ctx context.Context, engines []server.EngineKind, report func(pebblekv.Problem),
	bar *progress.Bar) (*core.Engine, error) {
	if c.Engine != "" {
		return server.OpenAddressForReading(ctx, c.Engine, engines, slog.Default())
	}
	bar.Task("files", true)
	return server.Examine(ctx, c.Dir, pebblekv.Watch{Report: report, Progress: bar.Set})
}

func (c *checkCmd) check(ctx context.Context, engines []server.EngineKind, r *checkResult,
	report func(pebblekv.Problem), bar *progress.Bar) error {
	eng, err := c.open(ctx, engines, report, bar)
	if err != nil || eng == nil {
		return err
	}
	if eng.Older() {
		report(pebblekv.Problem{Level: pebblekv.Note, What: "the store is of an older format, or its upgrade isn't " +
			"over: index entries that are to be made again aren't looked at; everything else is checked"})
	}
	bar.Task("items", false)
	err = eng.CheckWatched(ctx, core.CheckWatch{
		Problem:  func(what string) { report(pebblekv.Problem{What: what, Level: pebblekv.Damage}) },
		Progress: bar.Set,
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
