package core

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/journal"
)

// Journal returns the record of the store's changes, for streams of them.
func (e *Engine) Journal() *journal.Journal { return e.cat.Journal() }

// RecordChanges begins to record the changes of a namespace, unless that is done already, and returns the time since
// when. Every commit that is acknowledged after the call is in the journal. It fails with NotSupported on a store that
// several processes share.
func (e *Engine) RecordChanges(ctx context.Context, ns journal.Namespace) (since uint64, err error) {
	return e.Journal().Record(ctx, ns, e.store.Quiet)
}

// journalTurn is the time between two looks for entries of the journal that are too old or too many.
const journalTurn = 10 * time.Second

// trimJournal removes old entries of the journal until the engine is closed.
func (e *Engine) trimJournal() {
	for e.work.Sleep(journalTurn) {
		err := e.work.Try("removal of old entries of the journal", func() error {
			_, err := e.Journal().Trim(e.work.Context())
			return err
		})
		if err != nil && e.work.Context().Err() == nil {
			e.log.Warn("Old entries of the journal can't be removed; it is tried again", "error", err)
		}
	}
}
