package core

import (
	"cmp"
	"context"
	"time"

	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// Transaction is a transaction on items of any containers. It reads a snapshot and its own writes, and its writes are
// committed together or not at all. The first committer of an item wins; what is only read may be changed by others.
// The caller calls Commit or Abort. Its methods may be called concurrently.
type Transaction struct {
	rt *store.Transaction
	e  *Engine
	// Containers that the transaction creates, in the order of their creation.
	fresh []*Container
}

// Begin begins a transaction, whose snapshot shows what is there now. After life its calls fail with RetryWith. The
// caller calls Commit or Abort in any case, because the store keeps what the snapshot shows until then. A transaction
// writes at most 16 MiB of documents.
func (e *Engine) Begin(ctx context.Context, life time.Duration) (*Transaction, error) {
	rt, err := e.store.Begin(ctx, life)
	if err != nil {
		return nil, err
	}
	return &Transaction{rt: rt, e: e}, nil
}

// Begin begins a transaction that reads this container first. A container that is used later ends the transaction with
// RetryWith if it was split or renamed since the beginning; this one doesn't.
func (c *Container) Begin(ctx context.Context, life time.Duration) (*Transaction, error) {
	rt, err := c.rt.Begin(ctx, life)
	if err != nil {
		return nil, err
	}
	return &Transaction{rt: rt, e: c.e}, nil
}

// Read returns an item as the transaction sees it; NotFound when it is absent. pk and id must not be changed until the
// transaction ends.
func (t *Transaction) Read(ctx context.Context, c *Container, pk PartitionKey, id value.Value) (*Item, error) {
	if c.rt.Throttled() {
		if _, err := c.admit(pk); err != nil {
			return nil, err
		}
	}
	return t.rt.Read(ctx, c.rt, pk, id)
}

// Query starts a query on a container as the transaction sees it: without OrderBy in creation order. It has its own
// writes until now. The caller closes the Rows.
func (t *Transaction) Query(ctx context.Context, c *Container, q *exec.Query) (*exec.Rows, error) {
	in, err := t.rt.Within(ctx, c.rt)
	if err != nil {
		return nil, err
	}
	rows, err := exec.OpenWithin(ctx, in, q, c.e.bud, c.e.spill)
	if err == nil && q.Continuation == "" {
		if err = rows.Admit(); err != nil {
			rows.Close()
			return nil, err
		}
	}
	return rows, err
}

// Write does one write. The transaction ends with RetryWith if somebody has changed the item since it began, and with
// TooLarge if it has written too much. After another error it is as it was before the call. What w refers to must not
// be changed until the transaction ends. Result.Item gets its LSN, number and etag when Commit succeeds.
func (t *Transaction) Write(ctx context.Context, c *Container, w Write) (Result, error) {
	if c.rt.Throttled() {
		if _, err := c.admitWrite(&w); err != nil {
			return Result{}, err
		}
	}
	return t.rt.Write(ctx, c.rt, &w)
}

// Fetch reads the items of writes at once, if the store is over a network. It is never needed: Write reads what isn't
// there yet.
func (t *Transaction) Fetch(ctx context.Context, c *Container, ws []Write) error {
	return t.rt.Fetch(ctx, c.rt, ws)
}

// Create creates a container that only the transaction sees. Commit creates it for all, just before it commits the
// writes. Should the process end in between, or the writes be refused, the container is there without items. The
// database must exist then.
func (t *Transaction) Create(ctx context.Context, db string, s ContainerSpec) (*Container, error) {
	if err := cmp.Or(validate(&s), store.FirstDeclared(&s)); err != nil {
		return nil, err
	}
	def, err := t.e.cat.Unborn(ctx, db, s)
	if err != nil {
		return nil, err
	}
	rt, err := t.e.store.Unborn(def)
	if err != nil {
		return nil, err
	}
	c := &Container{Definition: Definition{rt.Def()}, e: t.e, rt: rt}
	t.fresh = append(t.fresh, c)
	return c, nil
}

// Change changes the spec of a container that the transaction creates with f. Its id and partition key stay.
func (t *Transaction) Change(ctx context.Context, c *Container, f func(*ContainerSpec) error) error {
	s := c.Spec().Clone()
	if err := f(&s); err != nil {
		return err
	}
	if err := cmp.Or(validate(&s), store.FirstDeclared(&s)); err != nil {
		return err
	}
	def, err := t.e.cat.Unborn(ctx, c.Database(), s)
	if err != nil {
		return err
	}
	if err := c.rt.Redraw(def); err != nil {
		return err
	}
	c.Definition = Definition{c.rt.Def()}
	return nil
}

// Commit ends the transaction and makes its writes durable. The error is RetryWith if an item that it writes was
// changed since it began, or a container that it creates was created. After a refusal (RetryWith, Conflict, Forbidden,
// TooLarge, NotFound, TooManyRequests) nothing was written. After another error, UnknownOutcome or Timeout for example,
// all writes may have been committed, or none. charge is that of all operations together, in request units.
func (t *Transaction) Commit(ctx context.Context) (charge float64, err error) {
	return t.CommitWith(ctx, nil, nil)
}

// CommitWith is Commit. With its writes it writes a record, whatever that was before; nil: none. A transaction without
// writes writes none. note is BSON that the journal has with each change.
func (t *Transaction) CommitWith(ctx context.Context, with *Attached, note []byte) (charge float64, err error) {
	for _, c := range t.fresh {
		is, err := t.e.CreateContainer(ctx, c.Database(), *c.Spec())
		if status.Is(err, status.Conflict) {
			err = status.Wrap(status.RetryWith, err, "A container that the transaction creates was created after it "+
				"began. Retry the whole transaction.")
		}
		if err == nil {
			err = t.rt.Born(ctx, c.rt, is.rt)
		}
		if err != nil {
			t.rt.Abort()
			return 0, err
		}
	}
	return t.rt.Commit(ctx, with, note)
}

// Time returns the time of the commit by the journal's clock; 0 if the journal doesn't record it.
func (t *Transaction) Time() uint64 { return t.rt.Time() }

// Abort ends the transaction and drops its writes. After its end it does nothing.
func (t *Transaction) Abort() { t.rt.Abort() }
