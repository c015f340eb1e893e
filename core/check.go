package core

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/orrerydb/orrery/core/jobs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// ScrubStatus is the result of the background scrub.
type ScrubStatus = jobs.ScrubStatus

// ScrubStatus returns what the background scrub has found so far.
func (e *Engine) ScrubStatus() ScrubStatus {
	if e.scrub == nil {
		return ScrubStatus{}
	}
	return e.scrub.Status()
}

// ChoreStatus is what this process has done of a chore of the storage engine.
type ChoreStatus = jobs.ChoreStatus

// Upkeep returns what this process has done of the chores of the storage engine; nothing if that has none.
func (e *Engine) Upkeep() []ChoreStatus {
	if e.keep == nil {
		return nil
	}
	return e.keep.Status()
}

// Scrub reads the files of the store and compares index entries with items, without pauses. The background does the
// same once a day, with pauses.
func (e *Engine) Scrub(ctx context.Context) error {
	if e.scrub == nil {
		return nil
	}
	return e.scrub.Round(ctx, ctx.Err)
}

// CheckWatch has functions that receive the results and the progress of a check. Each may be nil.
type CheckWatch struct {
	Problem  func(string)
	Progress func(done, total int64) // items; may be nil
}

// Check verifies the whole store and returns the problems as text; nothing when there are none.
func (e *Engine) Check(ctx context.Context) (problems []string, err error) {
	err = e.CheckWatched(ctx, CheckWatch{Problem: func(p string) { problems = append(problems, p) }})
	return problems, err
}

// CheckWatched verifies the whole store. Data that can't be read is a problem. An error is returned only if the check
// itself fails. It uses the same memory for any number of items.
func (e *Engine) CheckWatched(ctx context.Context, w CheckWatch) error {
	problem := func(format string, args ...any) {
		if w.Problem != nil {
			w.Problem(fmt.Sprintf(format, args...))
		}
	}
	var done, total int64
	for st, err := range e.Stats(ctx, "") {
		if err == nil {
			total += st.Items
		}
	}
	gens, err := e.unnamed(ctx)
	switch local := !e.kv.Remote() && ctx.Err() == nil && !errors.Is(err, kv.ErrClosed); {
	case err == nil:
	case status.Is(err, status.Corruption), local && status.Is(err, status.Unavailable):
		problem("the data of containers can't be listed: %v", err)
	default:
		return err
	}
	for _, g := range gens {
		problem("there is data of a container, generation %d, whose definition is missing", g)
	}
	for _, d := range e.cat.Databases() {
		for def, err := range e.cat.Containers(ctx, d.ID, 0) {
			if err != nil {
				problem("a container of database %q: %v", d.ID, err)
				continue
			}
			c, closed, err := e.store.Visit(ctx, def)
			if err != nil {
				problem("container %q of database %q can't be opened: %v", def.ID, d.ID, err)
				continue
			}
			err = c.Check(ctx, store.Watch{Problem: w.Problem, Items: func(n int) {
				if done += int64(n); w.Progress != nil {
					w.Progress(min(done, total), total)
				}
			}})
			closed()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// unnamed returns the generations that have data, but neither a container nor a note that the data is to be removed.
// Containers may be created and dropped meanwhile: first it looks at the containers, then at the notes, and then at the
// data.
func (e *Engine) unnamed(ctx context.Context) ([]uint32, error) {
	if e.cat.Version() == 0 { // from before there were notes: the next start removes the data
		return nil, nil
	}
	live, next := e.cat.Generations()
	left, err := e.cat.Left(ctx)
	if err != nil || len(left.Databases) > 0 { // whose containers have no notes yet
		return nil, err
	}
	for _, g := range left.Generations {
		live[g] = true
	}
	gens, err := e.store.Generations(ctx)
	return slices.DeleteFunc(gens, func(g uint32) bool { return live[g] || g >= next }), err
}
