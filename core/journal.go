package core

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
)

// Journal returns the record of the store's changes, for streams of them.
func (e *Engine) Journal() *journal.Journal { return e.cat.Journal() }

// RecordChanges begins to record the changes of a namespace, unless that is done already, and returns the time since
// when. Every commit that is acknowledged after the call is in the journal.
func (e *Engine) RecordChanges(ctx context.Context, ns journal.Namespace) (since uint64, err error) {
	if e.Shared() {
		return e.recordShared(ctx, ns)
	}
	return e.Journal().Record(ctx, ns, e.store.Quiet)
}

// recordShared is RecordChanges in a store that several processes share. A process that ends within it leaves a scope
// that isn't ready; the next caller goes on with it.
func (e *Engine) recordShared(ctx context.Context, ns journal.Namespace) (since uint64, err error) {
	j := e.Journal()
	if err := e.fresh(ctx); err != nil {
		return 0, err
	}
	if at := j.Since(ns); at != 0 {
		return at, nil
	}
	if j.ReadOnly() {
		return 0, status.New(status.NotSupported, "The store is only read.")
	}
	if err := e.cat.Record(ctx, ns, 0); err != nil {
		return 0, err
	}
	if err := e.followScopes(ctx, ns); err != nil {
		return 0, err
	}
	if since, err = j.Now(ctx); err != nil {
		return 0, err
	}
	if err := e.cat.Record(ctx, ns, max(since, 1)); err != nil {
		return 0, err
	}
	return j.Since(ns), nil
}

// followScopes makes the containers of a namespace do what is recorded, as far as they don't.
func (e *Engine) followScopes(ctx context.Context, ns journal.Namespace) error {
	for _, d := range e.cat.Databases() {
		if ns.DB != "" && ns.DB != d.ID {
			continue
		}
		for def, err := range e.cat.Containers(ctx, d.ID, 0) {
			if err == nil && (ns.Coll == "" || ns.Coll == def.ID) {
				err = e.followScope(ctx, def)
			}
			if err != nil && !status.Is(err, status.NotFound) { // it was dropped
				return err
			}
		}
	}
	return nil
}

func (e *Engine) followScope(ctx context.Context, def *catalog.Container) error {
	c, done, err := e.store.Visit(ctx, def)
	if err != nil {
		return err
	}
	defer done()
	return c.FollowJournal(ctx)
}

// beforeJournal prepares a drop or a rename in a store that several processes share, so that the journal has it behind
// what the container's commits have written, and so that a container whose new name is recorded is recorded before it
// has that name. With id "" it is about all containers of a database.
func (e *Engine) beforeJournal(ctx context.Context, db, id, to string) error {
	if !e.Shared() || !e.Journal().Active() {
		return nil
	}
	if err := e.fresh(ctx); err != nil {
		return err
	}
	defs := e.cat.Containers(ctx, db, 0)
	if id != "" {
		defs = func(yield func(*catalog.Container, error) bool) { yield(e.cat.Container(ctx, db, id)) }
	}
	for def, err := range defs {
		if err != nil {
			continue // the drop or the rename has the error
		}
		c, done, err := e.store.Visit(ctx, def)
		if err == nil {
			err = c.Refresh(ctx)
			if err == nil && to != "" && e.Journal().Records(db, to) {
				err = c.BeginJournal(ctx)
			}
			done()
		}
		if err != nil && !status.Is(err, status.NotFound) {
			return err
		}
	}
	return nil
}

const (
	// journalLook is the time between two looks for what other processes have changed, while somebody watches.
	journalLook = 100 * time.Millisecond
	// journalPause is the least time between two looks: commits of this process are gathered together.
	journalPause = 5 * time.Millisecond
)

// followJournal tells those who watch of what all processes of a shared store have changed, until the engine is closed.
func (e *Engine) followJournal() {
	j, failed := e.Journal(), false
	late := time.NewTimer(journalLook)
	defer late.Stop()
	for e.work.Sleep(journalPause) {
		look := late.C
		if !j.Watching() {
			look = nil
		}
		select {
		case <-look:
		case <-j.Nudged():
		case <-e.work.Context().Done():
			return
		}
		if !j.Watching() {
			continue
		}
		err := e.work.Try("look for changes of other processes", func() error { return j.Gather(e.work.Context()) })
		if err != nil && !failed && e.work.Context().Err() == nil {
			e.log.Warn("Changes of the store can't be read; it is tried again", "error", err)
		}
		failed = err != nil
		late.Reset(journalLook)
	}
}

// journalTurn is the time between two looks for entries of the journal that are too old or too many.
const journalTurn = 10 * time.Second

// TrimJournal removes what is too old or too much in the journal, and ends the record of what nobody reads.
func (e *Engine) TrimJournal(ctx context.Context) error {
	if _, err := e.Journal().Trim(ctx); err != nil || !e.Shared() {
		return err
	}
	for _, ns := range e.Journal().Idle() {
		if err := e.cat.Forget(ctx, ns); err != nil {
			return err
		}
		if err := e.followScopes(ctx, ns); err != nil {
			return err
		}
	}
	return nil
}

// trimJournal removes old entries of the journal until the engine is closed.
func (e *Engine) trimJournal() {
	for e.work.Sleep(journalTurn) {
		err := e.work.Try("removal of old entries of the journal", func() error {
			return e.TrimJournal(e.work.Context())
		})
		if err != nil && e.work.Context().Err() == nil {
			e.log.Warn("Old entries of the journal can't be removed; it is tried again", "error", err)
		}
	}
}
