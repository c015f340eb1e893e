package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Tx is a transaction on one logical partition. It keeps two invariants:
//  1. Every write of a Tx carries the same LSN; the order of its items is their position.
//  2. All of its writes commit together or none does, and only when nobody else has written to the logical partition since
//     the Tx began.
//
// It reads its own writes over a snapshot. Nobody waits while its function runs: the latch is taken for the commit
// alone. A Tx must not outlive its function; byte slices passed in may be reused after WithTx returns. Not safe for
// concurrent use.
type Tx struct {
	c      *Container
	ctx    context.Context
	snap   kv.Snapshot
	at     identity // of the logical partition: no id
	pk     PartitionKey
	base   LogicalHead
	items  map[string]*txItem // by identity
	order  []*txItem
	charge float64
	shown  int64 // greatest LSN of the items that were read: nothing leaves before it is durable
}

// txItem is one item that the Tx has read or written.
type txItem struct {
	id    identity
	old   *Item // as in the snapshot, nil = absent
	exp   bool
	cur   *Item // as the Tx sees it now
	dirty bool
	noIdx bool
}

// maxTxRuns is how often WithTx runs its function before it gives RetryWith.
const maxTxRuns = 5

// WithTx runs fn in a transaction on the logical partition pk and commits when fn returns nil. fn may run again after a
// conflict, so it must have no effects beyond the Tx. It is durable when WithTx returns; the charge is what all
// operations cost together.
func (c *Container) WithTx(ctx context.Context, pk PartitionKey, fn func(*Tx) error) (lsn int64, charge float64, err error) {
	at, err := c.locate(nil, pk, value.Value{})
	if err != nil {
		return 0, 0, err
	}
	for range maxTxRuns {
		tx := &Tx{c: c, ctx: ctx, at: at, pk: pk, items: map[string]*txItem{}}
		p, raced, err := tx.run(fn)
		if raced {
			continue
		}
		if p.commit == nil { // a commit is later than what it read
			if werr := c.slots[at.slot].waitDurable(tx.shown); werr != nil && err == nil {
				err = werr
			}
		}
		if err != nil {
			return 0, tx.charge, err
		}
		return p.lsn, tx.charge, p.wait()
	}
	return 0, 0, status.New(status.RetryWith, "Conflicting request to resource has been attempted. Retry to avoid conflicts.")
}

func (tx *Tx) run(fn func(*Tx) error) (p pending, raced bool, err error) {
	tx.snap = tx.c.st.eng.Snapshot()
	defer tx.snap.Close()
	if tx.base, err = tx.logical(tx.snap); err != nil {
		return p, false, err
	}
	if err = fn(tx); err != nil {
		return p, false, err
	}
	return tx.commit()
}

// getter is what both an engine and a snapshot can do.
type getter interface {
	Get(key []byte) ([]byte, error)
}

func (tx *Tx) logical(g getter) (h LogicalHead, err error) {
	b, err := g.Get(append(keys.AppendPrefix(nil, tx.c.slots[tx.at.slot].key, keys.KindLogical), tx.at.suffix...))
	if errors.Is(err, kv.ErrNotFound) {
		return h, nil
	}
	if err != nil {
		return h, translate(err)
	}
	return h, h.decode(b)
}

// item returns the Tx's state of an item, read on first use. With create, for which there is nothing to read, the
// slot's id filter may say that the item is absent: were it otherwise in the snapshot, somebody has written since and
// the commit finds out.
func (tx *Tx) item(id value.Value, create bool) (*txItem, error) {
	at, err := tx.c.locate(make([]byte, 0, 96), tx.pk, id)
	if err != nil {
		return nil, err
	}
	if t := tx.items[string(at.ident)]; t != nil {
		return t, nil
	}
	t := &txItem{id: at}
	if create && tx.c.lacks(&at, true) {
		tx.items[string(at.ident)] = t
		return t, nil
	}
	b, err := tx.snap.Get(append(keys.AppendPrefix(nil, tx.c.slots[at.slot].key, keys.KindItem), at.suffix...))
	switch {
	case errors.Is(err, kv.ErrNotFound):
	case err != nil:
		return nil, translate(err)
	default:
		t.old = &Item{ident: at.ident, paths: len(tx.pk)}
		if err := decodeEnvelope(b, t.old); err != nil {
			return nil, err
		}
		if t.exp = tx.c.expired(t.old); !t.exp {
			t.cur = t.old
			tx.shown = max(tx.shown, t.old.LSN)
		}
	}
	tx.items[string(at.ident)] = t
	return t, nil
}

// Read returns an item as the Tx sees it; NotFound when it is absent.
func (tx *Tx) Read(id value.Value) (*Item, error) {
	t, err := tx.item(id, false)
	if err != nil {
		return nil, err
	}
	tx.charge += ru.Read(itemSize(t.cur))
	if t.cur == nil {
		return nil, errNotFound()
	}
	return t.cur, nil
}

// Write does one write inside the Tx. An error leaves the Tx as it was before the call; whether to go on is the
// caller's choice. Result.Item gets its LSN, number and etag when WithTx commits: read them after it has returned.
func (tx *Tx) Write(w *Write) (Result, error) {
	if w.PK == nil {
		w.PK = tx.pk
	}
	at, err := tx.c.identify(w)
	if err != nil {
		return Result{}, err
	}
	if string(at.tuple) != string(tx.at.tuple) {
		return Result{}, errKeyMismatch()
	}
	id, _, err := keys.DecodeExact(at.ident[len(at.tuple):])
	if err != nil {
		return Result{}, status.Wrap(status.BadRequest, err, "The id is malformed.")
	}
	t, err := tx.item(id, w.Kind == Create)
	if err != nil {
		return Result{}, err
	}
	doc, keep, err := decide(w, t.cur)
	if err != nil {
		return Result{}, err
	}
	res := Result{Item: t.cur, Kept: keep, Slot: at.slot}
	if keep {
		res.Charge = ru.Read(itemSize(t.cur))
		tx.charge += res.Charge
		return res, nil
	}
	return tx.put(t, w, doc, res)
}

// put records the new state of an item.
func (tx *Tx) put(t *txItem, w *Write, doc []byte, res Result) (Result, error) {
	if doc != nil && len(doc) > tx.c.st.lim.Item {
		return Result{}, status.New(status.TooLarge, "Request size is too large")
	}
	res.Created, res.Deleted = t.cur == nil && doc != nil, doc == nil
	res.Charge = ru.Write(max(len(doc), itemSize(t.cur)), 1)
	tx.charge += res.Charge
	if !t.dirty {
		t.dirty = true
		tx.order = append(tx.order, t)
	}
	t.noIdx, t.cur = w.NoIndex, nil
	if doc != nil {
		t.cur = &Item{Doc: doc, ident: t.id.ident, paths: len(tx.pk), Ticks: tx.c.now()}
	}
	res.Item = t.cur
	return res, nil
}

// commit writes everything under the slot's latch when the logical partition is still as the snapshot saw it.
func (tx *Tx) commit() (p pending, raced bool, err error) {
	c, sl := tx.c, tx.c.slots[tx.at.slot]
	chs := make([]change, 0, len(tx.order))
	defer func() {
		for i := range chs {
			chs[i].release()
		}
	}()
	for _, t := range tx.order {
		if t.old == nil && t.cur == nil {
			continue
		}
		ch := change{id: t.id, old: t.old, expired: t.exp}
		var doc []byte
		if t.cur != nil {
			doc = t.cur.Doc
		}
		if err := c.prepare(tx.ctx, &ch, doc, t.noIdx, false); err != nil {
			return p, false, err
		}
		chs = append(chs, ch)
	}
	if len(chs) == 0 {
		return p, false, nil
	}
	if len(chs) > 1<<16-1 {
		return p, false, status.New(status.TooLarge, "A transaction has at most 65535 writes.")
	}
	d, err := c.plan(chs)
	if err != nil {
		return p, false, err
	}
	if err := sl.mu.LockFor(tx.ctx); err != nil {
		d.free()
		return p, false, err
	}
	defer sl.mu.Unlock()
	now, err := tx.logical(c.st.eng)
	if err != nil || now != tx.base || !followed(chs, sl) {
		d.free()
		return p, err == nil, err
	}
	d.parts[0].known = &now
	p, raced, err = d.commit(tx.ctx)
	if raced || err != nil {
		return p, raced, err
	}
	i := 0
	for _, t := range tx.order { // the items as they were committed: LSN, position, time
		if t.old == nil && t.cur == nil {
			continue
		}
		if t.cur != nil {
			*t.cur = *chs[i].item
		}
		i++
	}
	return p, false, nil
}

// followed reports whether the terms of all changes were made as the slot's index entries are kept now.
func followed(chs []change, sl *slot) bool {
	for i := range chs {
		if chs[i].upkeep != sl.head.upkeep() {
			return false
		}
	}
	return true
}
