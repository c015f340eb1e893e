package core

import (
	"context"
	"errors"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// Dropped data can't be found after the commit of the drop. It is removed in the background, in pieces of bounded size.
// The catalog keeps notes of what remains, so that the next process continues after a crash.

// dropped is one piece of dropped data.
type dropped struct {
	database uint32      // whose entries are to be removed; 0 = none
	gens     []uint32    // whose data is to be removed
	slots    []keys.Slot // whose data is to be removed
	// of is a container whose slot map isn't known: only those slots are removed that it doesn't have. May be nil.
	of *store.Container
	// search says that the outcome of a drop is unknown: everything that has a note is to be removed.
	search bool
}

// dropAtOnce is the number of generations in one piece.
const dropAtOnce = 64

// DropDatabase removes a database with its containers.
func (e *Engine) DropDatabase(ctx context.Context, id string) error {
	if err := e.beforeJournal(ctx, id, "", ""); err != nil {
		return err
	}
	num, err := e.cat.DropDatabase(ctx, id)
	if err != nil {
		return e.unsureDrop(err)
	}
	e.store.ForgetDatabase(num)
	e.dropLater(dropped{database: num})
	e.published(ctx)
	return nil
}

// DropContainer removes a container. Later writes get NotFound with sub-status 1003.
func (e *Engine) DropContainer(ctx context.Context, db, id string) error {
	if err := e.beforeJournal(ctx, db, id, ""); err != nil {
		return err
	}
	def, err := e.cat.DropContainer(ctx, db, id)
	if err != nil {
		return e.unsureDrop(err)
	}
	e.drop(def.Gen)
	e.published(ctx)
	return nil
}

// drop removes a generation's data in the background.
func (e *Engine) drop(gen uint32) {
	e.store.Forget(gen)
	e.dropLater(dropped{gens: []uint32{gen}})
}

// unsureDrop has what a drop has left removed if its outcome is unknown: it may have been made. It returns err.
func (e *Engine) unsureDrop(err error) error {
	if status.Is(err, status.UnknownOutcome) {
		e.dropLater(dropped{search: true})
	}
	return err
}

// dropLater removes a piece in the background. On a shared store the notes of the drop are the queue (turns.go).
func (e *Engine) dropLater(d dropped) {
	if !e.leases().Shared() {
		e.drops.Add(d)
	}
}

// remove removes one piece. It adds the pieces that result from it.
func (e *Engine) remove(d dropped) error {
	ctx := e.work.Context()
	if d.search {
		return e.search(ctx)
	}
	if d.of != nil {
		rest, err := d.of.Without(ctx, d.slots)
		if err != nil || len(rest) == 0 {
			return err
		}
		d.slots = rest
	}
	if len(d.slots) > 0 {
		if err := e.store.DropSlots(ctx, d.slots); err != nil {
			return err
		}
		return e.cat.RemovedSlots(ctx, d.slots)
	}
	if len(d.gens) > 0 {
		if err := e.store.DropGenerations(ctx, d.gens); err != nil {
			return err
		}
		return e.cat.Removed(ctx, d.gens)
	}
	gens, err := e.cat.ClearDropped(ctx, d.database)
	switch {
	case errors.Is(err, kv.ErrUnknownOutcome): // it is repeated, and doesn't find generations that have their notes now
		e.dropLater(dropped{search: true})
		return err
	case err != nil:
		return err
	case len(gens) == 0:
		e.store.Cleared(d.database)
	default:
		e.drops.Add(dropped{gens: gens}, d)
	}
	return nil
}

// search has the data removed of all containers and databases that have a note. Some may be removed already, or wait
// to be: to remove them twice does no harm. Slots may have notes because they are being made, and are left alone.
func (e *Engine) search(ctx context.Context) error {
	if _, err := e.cat.Refresh(ctx); err != nil { // the drop may not be visible in this process yet
		return err
	}
	left, err := e.cat.Left(ctx)
	if err != nil {
		return err
	}
	for gens := range slices.Chunk(left.Generations, dropAtOnce) {
		for _, gen := range gens {
			e.store.Forget(gen)
		}
		e.drops.Add(dropped{gens: gens})
	}
	for _, num := range left.Databases {
		e.store.ForgetDatabase(num)
		e.drops.Add(dropped{database: num})
	}
	return nil
}

// DropsLeft returns the number of pieces that wait to be removed. On a shared store it is the number of notes.
func (e *Engine) DropsLeft() int {
	if !e.leases().Shared() {
		return e.drops.Len()
	}
	left, err := e.cat.Left(e.work.Context())
	if err != nil {
		return 1 // it isn't known
	}
	return len(left.Databases) + len(left.Generations) + len(left.Slots)
}

// resumeDrops continues removals that the end of the previous process has interrupted. A store from before notes
// existed is searched for data without a container.
func (e *Engine) resumeDrops(ctx context.Context) error {
	if e.cat.Version() == 0 {
		if err := e.noteOrphans(ctx); err != nil {
			if e.Health().State >= kv.Full { // a later start with more room does it
				return nil
			}
			return err
		}
	}
	left, err := e.cat.Left(ctx)
	if err != nil {
		return err
	}
	for slots := range slices.Chunk(left.Slots, dropAtOnce) {
		e.drops.Add(dropped{slots: slots})
	}
	for gens := range slices.Chunk(left.Generations, dropAtOnce) {
		e.drops.Add(dropped{gens: gens})
	}
	for _, num := range left.Databases {
		e.drops.Add(dropped{database: num})
	}
	return nil
}

// noteOrphans writes notes for the data of generations that the catalog doesn't name.
func (e *Engine) noteOrphans(ctx context.Context) error {
	live, next := e.cat.Generations()
	gens, err := e.store.Generations(ctx)
	if err != nil {
		return err
	}
	gens = slices.DeleteFunc(gens, func(g uint32) bool { return live[g] || g >= next })
	return e.cat.Note(ctx, gens)
}
