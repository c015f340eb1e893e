package core

import (
	"context"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// Types of the records that APIs keep in a shared store, see package store.
type (
	// RecordName names a record.
	RecordName = store.RecordName
	// Record is the value of a record. The zero value stands for one that doesn't exist.
	Record = store.Record
	// Attached is a record that a write reads together with its item, and changes in the same commit.
	Attached = store.Attached
	// Mark is a record that a write leaves in its commit, in a store of one process.
	Mark = store.Mark
)

// The kinds of records. The values are stored.
const (
	// CursorRecord is an open cursor of the MongoDB API. Its name is the cursor's id.
	CursorRecord byte = 1
	// StatementRecord is the last retryable statement of a session of the MongoDB API. Its name is the session and the
	// statement's number in its command.
	StatementRecord byte = 2
	// EdgeRecord is an edge id that a request of the Gremlin API is giving to an edge. Its name is the container and
	// the id's hash.
	EdgeRecord byte = 3
	// SnapshotRecord is a time that a process of the MongoDB API has given to a snapshot. Its name is the time.
	SnapshotRecord byte = 4
)

// MarkName returns the name of the record of a mark.
func MarkName(kind byte, session [16]byte, number uint32) RecordName {
	return store.MarkName(kind, session, number)
}

// Record returns a record of an API. A store of one process has only records of marks and of transactions.
func (e *Engine) Record(ctx context.Context, n RecordName) (Record, error) {
	return e.store.ReadRecord(ctx, n)
}

// RecordParts appends n parts of a record to dst, beginning with one of them. ok is false if one is missing: the record
// was removed meanwhile.
func (e *Engine) RecordParts(ctx context.Context, dst []byte, name RecordName, first, n int) (_ []byte, ok bool,
	err error) {
	return e.store.ReadParts(ctx, dst, name, first, n)
}

// WriteRecord gives a record a new content, if it is still the one that it was. ok is false if it isn't. A record that
// nobody has written for idle, at least a second, is removed. Parts are what needn't be written again with each change:
// new ones are stored behind those that the record has, and all are removed with it.
func (e *Engine) WriteRecord(ctx context.Context, n RecordName, was Record, data []byte, idle time.Duration,
	parts ...[]byte) (now Record, ok bool, err error) {
	return e.store.WriteRecord(ctx, n, was, data, idle, parts...)
}

// DropRecord removes a record with its parts, if it is still the one that it was. ok is false if it isn't.
func (e *Engine) DropRecord(ctx context.Context, n RecordName, was Record) (ok bool, err error) {
	return e.store.DropRecord(ctx, n, was)
}

// Records calls f for the records of a kind whose names have n bytes and begin with a prefix, until it returns an
// error. A record is valid during the call.
func (e *Engine) Records(ctx context.Context, kind byte, n int, prefix string,
	f func(RecordName, Record) error) error {
	return e.store.Records(ctx, kind, n, prefix, f)
}

// recordTurn is the time between two looks for records that have expired. It is added to their time.
const recordTurn = 30 * time.Second

// recordSights is what this process has seen of the records.
type recordSights struct {
	mu sync.Mutex
	of store.RecordSights
}

// ExpireRecords removes the records that nobody has written for their time, as far as this process has watched them for
// that time, and has the lease. The background does the same periodically.
func (e *Engine) ExpireRecords(ctx context.Context) (err error) {
	e.records.mu.Lock()
	defer e.records.mu.Unlock()
	e.records.of, err = e.store.ExpireRecords(ctx, e.records.of)
	return err
}

// expireRecords is ExpireRecords until the engine is closed.
func (e *Engine) expireRecords() {
	for e.work.Sleep(recordTurn) {
		err := e.work.Try("removal of records that have expired", func() error {
			return e.ExpireRecords(e.work.Context())
		})
		if err != nil && e.work.Context().Err() == nil && !status.Is(err, status.Unavailable) {
			e.log.Warn("Records that have expired can't be removed; it is tried again", "error", err)
		}
	}
}
