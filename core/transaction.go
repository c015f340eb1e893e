package core

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// Transaction is a transaction on items of any logical partitions of a container. It reads a snapshot and its own
// writes, and its writes are committed together or not at all. The first committer of an item wins; what is only read
// may be changed by others. The caller calls Commit or Abort. Its methods may be called concurrently.
type Transaction struct {
	rt *store.Transaction
	c  *Container
}

// Begin begins a transaction. After life its calls fail with RetryWith. The caller calls Commit or Abort in any case,
// because the store keeps what the snapshot shows until then. A transaction writes at most 16 MiB of documents.
func (c *Container) Begin(ctx context.Context, life time.Duration) (*Transaction, error) {
	rt, err := c.rt.Begin(ctx, life)
	if err != nil {
		return nil, err
	}
	return &Transaction{rt, c}, nil
}

// Read returns an item as the transaction sees it; NotFound when it is absent. pk and id must not be changed until the
// transaction ends.
func (t *Transaction) Read(ctx context.Context, pk PartitionKey, id value.Value) (*Item, error) {
	if t.c.rt.Throttled() {
		if _, err := t.c.admit(pk); err != nil {
			return nil, err
		}
	}
	return t.rt.Read(ctx, pk, id)
}

// Write does one write. The transaction ends with RetryWith if somebody has changed the item since it began, and with
// TooLarge if it has written too much. After another error it is as it was before the call. What w refers to must not
// be changed until the transaction ends. Result.Item gets its LSN, number and etag when Commit succeeds.
func (t *Transaction) Write(ctx context.Context, w Write) (Result, error) {
	if t.c.rt.Throttled() {
		if _, err := t.c.admitWrite(&w); err != nil {
			return Result{}, err
		}
	}
	return t.rt.Write(ctx, &w)
}

// Commit ends the transaction and makes its writes durable. The error is RetryWith if an item that it writes was
// changed since it began. After a refusal (RetryWith, Conflict, Forbidden, TooLarge, NotFound, TooManyRequests) nothing
// was written. After another error, UnknownOutcome or Timeout for example, all writes may have been committed, or none.
// charge is that of all operations together, in request units.
func (t *Transaction) Commit(ctx context.Context) (charge float64, err error) {
	return t.rt.Commit(ctx)
}

// Abort ends the transaction and drops its writes. After its end it does nothing.
func (t *Transaction) Abort() { t.rt.Abort() }
