package kv

import "context"

// Ingester is an Engine that can take over many new keys as sorted tables. Such keys are written once, at the place
// where the engine keeps them, and not to a log before. An engine that is shared isn't one: whoever copies in such a
// store must not hold a snapshot for long.
type Ingester interface {
	// Tables begins sorted tables, which end with ctx. nil: the engine takes none.
	Tables(ctx context.Context) Tables
}

// Tables are keys on their way into an engine. They become visible with Ingest. Not safe for concurrent use.
//
// The keys must be new: nothing was written under them before, and the caller has nothing else written to the range
// from the first to the last of them until Ingest has returned.
type Tables interface {
	// Add adds a key that is greater than all added before. It may wait, so that requests come first. Both arguments
	// may be reused. The errors are those of Engine.Write; after one of them only Close follows.
	Add(key, value []byte) error
	// Size returns the bytes of keys and values that were added since the last Ingest.
	Size() int
	// Ingest checks the preconditions and makes the keys that were added visible, both in one atomic step. They are
	// durable when it returns, and so is every Commit made before. On error nothing is applied, except with
	// ErrUnknownOutcome. Without keys it does nothing.
	Ingest(pre []Precondition) error
	// Close removes what was not ingested.
	Close()
}

// BeginTables begins sorted tables of any engine; nil: the engine takes none.
func BeginTables(ctx context.Context, e Engine) Tables {
	if i, ok := e.(Ingester); ok {
		return i.Tables(ctx)
	}
	return nil
}
