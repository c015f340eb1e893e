package store

import (
	"context"

	"github.com/orrerydb/orrery/core/kv"
)

// A query in a Transaction reads its snapshot and what it has written, like one in a Tx: see package exec. The snapshot
// is closed when the transaction has ended and no view of it is open.

// Querying is a transaction as a query sees it: a Tx in its logical partition, or a Within in its container.
type Querying interface {
	// Container returns the container that is read.
	Container() *Container
	// View returns a view of the snapshot. It doesn't show what the transaction has written. Its reads end with ctx, or
	// with the ctx of the Tx. The caller closes it.
	View(ctx context.Context) (*View, error)
	// Dirty reports whether the transaction has written anything here.
	Dirty() bool
	// Own returns the items that it has written and not deleted, which must not be changed, and the identities
	// (partition key, id) of all that it has written or deleted.
	Own() (own []*Item, wrote map[string]bool)
	// Outlived records that the engine can't read the snapshot any more.
	Outlived()
}

var _, _ Querying = (*Tx)(nil), (*Within)(nil)

// Within returns the transaction in a container, for a query.
func (t *Transaction) Within(ctx context.Context, c *Container) (*Within, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return nil, err
	}
	return t.of(ctx, c)
}

// Container implements Querying.
func (in *Within) Container() *Container { return in.c }

// View implements Querying.
func (in *Within) View(ctx context.Context) (*View, error) {
	t := in.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return nil, err
	}
	if in.heads == nil { // its owner has the heads in memory, but perhaps of another moment
		if err := in.readHeads(ctx); err != nil {
			return nil, err
		}
	}
	v := &View{c: in.c, snap: &lent{kv.With(ctx, t.snap), t}, held: true, now: t.st.clk.Now().Unix(),
		ttl: in.c.def.Load().DefaultTTL, opened: realTime.Now(), of: in.of}
	err := v.decide(v.of.all, func(i int) []byte {
		if in.heads[i] == nil {
			return FirstHead()
		}
		return in.heads[i]
	})
	if err != nil {
		return nil, err
	}
	for i := range v.slots {
		v.slots[i].seen = v.slots[i].Slot.seen()
	}
	t.views++
	return v, nil
}

// lent is the snapshot of a transaction in a view.
type lent struct {
	kv.Snapshot
	t *Transaction
}

// Close ends the use of the snapshot by the view.
func (l *lent) Close() error {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.t.views--; l.t.snap == nil && l.t.views == 0 {
		return l.Snapshot.Close()
	}
	return nil
}

// Dirty implements Querying.
func (in *Within) Dirty() bool {
	in.t.mu.Lock()
	defer in.t.mu.Unlock()
	for _, p := range in.order {
		if p.Dirty() {
			return true
		}
	}
	return false
}

// Own implements Querying.
func (in *Within) Own() (own []*Item, wrote map[string]bool) {
	in.t.mu.Lock()
	defer in.t.mu.Unlock()
	wrote = map[string]bool{}
	for _, p := range in.order {
		own = p.appendOwn(own, wrote)
	}
	return own, wrote
}

// Outlived implements Querying: the transaction ends.
func (in *Within) Outlived() {
	in.t.mu.Lock()
	defer in.t.mu.Unlock()
	in.t.end(errTxConflict())
}
