package store

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Transaction is a transaction on items of any logical partitions of a container. Its isolation is that of a snapshot:
//
//  1. It reads one snapshot, taken when it began, together with its own writes.
//  2. Its writes are one write of the engine, over all slots that it touches: they are committed together or not at
//     all.
//  3. They are committed only if no item that it writes has changed since the snapshot: the first committer wins. What
//     it has only read may have changed, so write skew is possible.
//
// Nobody waits for it while it is open. Its commit holds the latches of its slots, in the order of their ids, as every
// commit of several slots does. In a slot its items have one LSN and different positions.
//
// In each logical partition it reads and buffers its writes with a Tx, which it commits itself. Documents and keys that
// are passed in must not be changed until it ends. Its methods may be called concurrently; one waits for the other.
//
// Example: T moves 10 from account a to account b, in different slots. It reads both in its snapshot and writes both.
// Meanwhile somebody writes b. T's commit finds that b isn't the version of the snapshot, and writes nothing.
type Transaction struct {
	c *Container

	mu    sync.Mutex
	snap  kv.Snapshot // nil: the transaction has ended
	ended error       // what its methods return then
	of    *Slots      // the slot map of the snapshot
	heads [][]byte    // the stored heads of the slots in the snapshot, with a shared engine; else nil
	parts map[string]*Tx
	order []*Tx     // parts, in the order of their first use
	until time.Time // when its life ends
}

// beforeAll is an LSN that no slot has: what a Transaction has read is compared item by item.
const beforeAll = -1

// Begin begins a transaction. Calls after life fail. The caller calls Commit or Abort: also after life, because the
// engine keeps what the snapshot shows until then.
func (c *Container) Begin(ctx context.Context, life time.Duration) (*Transaction, error) {
	t := &Transaction{c: c, parts: map[string]*Tx{}, until: realTime.Now().Add(life)}
	if err := t.look(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// look takes the snapshot, and finds the slot map that it shows.
func (t *Transaction) look(ctx context.Context) error {
	c := t.c
	if c.st.others {
		l, err := c.look(ctx, func(of *Slots) ([]*Slot, [][]byte) { return of.all, nil })
		if err != nil {
			return err
		}
		t.snap, t.of = l.snap, l.of
		for i := range l.of.all {
			t.heads = append(t.heads, bytes.Clone(l.head(i)))
		}
		return nil
	}
	for {
		if err := c.Alive(); err != nil {
			return err
		}
		of := c.Slots()
		snap, err := c.st.eng.Snapshot(ctx)
		if err != nil {
			return translate(err)
		}
		if of.m.MapVersion == c.Slots().m.MapVersion {
			t.snap, t.of = snap, of
			return nil
		}
		_ = snap.Close() // it may have nothing of some slots any more
	}
}

// over returns why the transaction has ended; nil if it hasn't. The caller holds mu.
func (t *Transaction) over() error {
	if !realTime.Now().Before(t.until) {
		t.end(status.New(status.RetryWith, "The transaction was aborted because it was open for too long."))
	}
	return t.ended
}

// end ends the transaction, unless it has ended. err is what its methods return from now on. The caller holds mu.
func (t *Transaction) end(err error) {
	if t.snap == nil {
		return
	}
	_ = t.snap.Close()
	t.snap, t.ended = nil, err
	for _, p := range t.order {
		t.c.Spend(p.at.place, p.charge)
	}
	t.parts, t.order, t.heads = nil, nil, nil
}

// errTxEnded is the error of a call after the end of a transaction.
func errTxEnded() error { return status.New(status.BadRequest, "The transaction has ended.") }

// errTxConflict is the error of a transaction that has lost to another writer.
func errTxConflict() error {
	return status.New(status.RetryWith, "An item that the transaction writes was changed after it began. Retry the "+
		"whole transaction.")
}

// Abort ends the transaction, and drops its writes. After its end Abort does nothing.
func (t *Transaction) Abort() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(errTxEnded())
}

// part returns the Tx of a logical partition.
func (t *Transaction) part(ctx context.Context, pk PartitionKey) (*Tx, error) {
	at, err := t.c.locate(nil, pk, value.Value{})
	if err != nil {
		return nil, err
	}
	if p := t.parts[string(at.tuple)]; p != nil {
		p.ctx = ctx
		return p, nil
	}
	n := t.of.m.Slot(at.place)
	at.slot, at.version = t.of.all[n], t.of.m.MapVersion
	p := &Tx{c: t.c, ctx: ctx, snap: t.snap, of: t.of, at: at, pk: pk, items: map[string]*txItem{}, strict: true,
		seen: beforeAll, begun: at.slot.begun.Load()}
	if t.heads != nil {
		var h Head
		if err := h.parse(t.heads[n], new(indexFlags)); err != nil {
			return nil, err
		}
		p.basis, p.seen, p.begun = t.heads[n], h.LSN, h.LSN
	}
	t.parts[string(at.tuple)] = p
	t.order = append(t.order, p)
	return p, nil
}

// Read returns an item as the transaction sees it; NotFound when it is absent.
func (t *Transaction) Read(ctx context.Context, pk PartitionKey, id value.Value) (*Item, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return nil, err
	}
	p, err := t.part(ctx, pk)
	if err != nil {
		return nil, err
	}
	it, err := p.Read(id)
	return it, t.shown(ctx, p, err)
}

// shown waits until what a part has read is durable. If the snapshot can't be read any more, the transaction ends.
func (t *Transaction) shown(ctx context.Context, p *Tx, err error) error {
	if p.old {
		t.end(errTxConflict())
		return t.ended
	}
	if werr := p.at.slot.waitDurable(ctx, p.shown); werr != nil {
		return werr
	}
	return err
}

// Write does one write inside the transaction. If the item has changed since the snapshot, or the transaction has
// written too much, it ends, and the error is RetryWith or TooLarge. After another error it is as it was before the
// call. The unique keys of items that others have are found by Commit. Result.Item gets its LSN, number and etag when
// Commit succeeds.
func (t *Transaction) Write(ctx context.Context, w *Write) (Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return Result{}, err
	}
	if w.PK == nil && w.Doc != nil {
		pk, _, err := t.c.keyOf(w.Doc)
		if err != nil {
			return Result{}, err
		}
		w.PK = pk
	}
	p, err := t.part(ctx, w.PK)
	if err != nil {
		return Result{}, err
	}
	before := len(p.order)
	res, err := p.Write(w)
	if err = t.shown(ctx, p, err); err != nil {
		return Result{}, err
	}
	size := 0
	for _, p := range t.order {
		size += p.bytes
	}
	if size > maxTxBytes {
		t.end(status.New(status.TooLarge, "A transaction writes at most %d MiB.", maxTxBytes>>20))
		return Result{}, t.ended
	}
	if len(p.order) > before && !t.c.st.others { // over a network the commit finds it
		id := p.order[before].id
		t.c.relocate(&id)
		same, err := t.c.stands(ctx, &id, p.order[before].old)
		if err == nil && !same {
			t.end(errTxConflict())
			err = t.ended
		}
		if err != nil {
			return Result{}, err
		}
	}
	return res, nil
}

// Commit commits the writes and ends the transaction. They are durable when it returns. The error is RetryWith if an
// item has changed since the snapshot. After a refusal (RetryWith, Conflict, Forbidden, TooLarge, NotFound,
// TooManyRequests) nothing was written. After another error, UnknownOutcome or Timeout for example, the writes may have
// been committed: all of them or none. charge is that of all operations together.
func (t *Transaction) Commit(ctx context.Context) (charge float64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return 0, err
	}
	defer t.end(errTxEnded())
	for range maxRaces {
		if err := ctx.Err(); err != nil {
			return 0, translate(err)
		}
		raced, err := t.attempt(ctx)
		if err != nil {
			return 0, err
		}
		if !raced {
			for _, p := range t.order {
				charge += p.charge
			}
			return charge, nil
		}
	}
	return 0, errRaces()
}

// txChange is a change of a Transaction, and where it comes from.
type txChange struct {
	part *Tx
	item *txItem
}

// changes makes the changes of all parts, for the slots as they are now. Slots may have been split or joined since the
// snapshot: that changes neither the number nor the LSN of an item, by which the commit recognizes it.
func (t *Transaction) changes(ctx context.Context) (chs []change, from []txChange, err error) {
	for _, p := range t.order {
		for _, it := range p.order {
			if it.old == nil && it.cur == nil {
				continue
			}
			ch := change{id: it.id, old: it.old, expired: it.exp, basis: p.basis, seen: p.seen}
			if t.c.relocate(&ch.id); ch.id.slot != it.id.slot {
				ch.basis, ch.seen = nil, beforeAll
			}
			if err := ch.id.slot.turns.wait(ctx, ch.id.tuple); err != nil {
				return chs, from, err
			}
			var doc []byte
			if it.cur != nil {
				doc = it.cur.Doc
			}
			if err := t.c.prepare(ctx, &ch, doc, it.noIdx, false); err != nil {
				return chs, from, err
			}
			chs, from = append(chs, ch), append(from, txChange{p, it})
		}
	}
	if len(chs) > 1<<16-1 {
		err = status.New(status.TooLarge, "A transaction has at most 65535 writes.")
	}
	return chs, from, err
}

// attempt makes one attempt to commit. raced says that nothing was written, and that another attempt may succeed:
// others have written to the slots, but perhaps not to these items, or a slot was replaced.
func (t *Transaction) attempt(ctx context.Context) (raced bool, err error) {
	chs, from, err := t.changes(ctx)
	defer func() {
		for i := range chs {
			chs[i].release()
		}
	}()
	if err != nil || len(chs) == 0 {
		return false, err
	}
	at := make([]int, len(chs))
	for i := range at {
		at[i] = i
	}
	bySlot(chs, at)
	d, err := t.c.plan(chs)
	if err != nil {
		return false, err
	}
	waits, raced, err := t.write(ctx, d)
	if h := heldBy(err); h != nil && h.expired {
		err = t.c.removeExpired(ctx, h)
		return err == nil, err
	}
	for i := range waits { // also for a refusal, which depends on what was visible
		if werr := waits[i].wait(ctx); werr != nil {
			return false, werr
		}
	}
	if raced && t.c.st.others { // perhaps another process has replaced a slot
		return true, t.c.keepUp(ctx)
	}
	if raced || err != nil {
		return raced, err
	}
	for i := range chs {
		f := from[at[i]]
		f.part.charge += ru.Terms(chs[i].terms())
		if chs[i].item != nil {
			*f.item.cur = *chs[i].item
		}
	}
	return false, nil
}

// write makes a draft visible, under the latches of its slots. It returns what must be durable before the outcome is
// shown. The draft must not be used afterwards.
func (t *Transaction) write(ctx context.Context, d *draft) (waits []pending, raced bool, err error) {
	unlock, err := d.lock(ctx)
	if err != nil {
		d.free()
		return nil, false, err
	}
	defer unlock()
	if err = d.adopt(ctx); err == nil {
		raced, err = t.compare(ctx, d)
	}
	if raced || err != nil {
		d.free()
		return nil, raced, err
	}
	for i := range d.parts {
		waits = append(waits, pending{slot: d.parts[i].sl, lsn: d.parts[i].sl.head.LSN})
	}
	if err := d.fill(ctx, false); err != nil {
		d.free()
		if h := heldBy(err); h != nil && !h.expired {
			p, err := h.refusal()
			return []pending{p}, false, err
		}
		return waits, false, err
	}
	for i := range d.parts {
		waits[i].lsn = d.parts[i].h.LSN
	}
	p, err := d.write(ctx)
	d.done()
	if err == nil {
		return append([]pending{p}, waits...), false, nil // the other waits find that the commit is durable
	}
	var lost error
	for i := range waits {
		if _, lerr := t.c.lost(waits[i].slot, err); lerr != nil {
			lost = lerr
		}
	}
	return nil, lost == nil, lost
}

// compare looks whether the items of a draft are still the ones of the snapshot; if not, the error is that of a
// conflict. raced says that a slot isn't what it was when the changes were made. The caller holds the latches.
func (t *Transaction) compare(ctx context.Context, d *draft) (raced bool, err error) {
	c := t.c
	for i := range d.parts {
		if !c.allCurrent(d.parts[i].chs) {
			return true, nil
		}
	}
	for i := range d.parts {
		p := &d.parts[i]
		if c.st.others {
			same, err := c.allUnchanged(ctx, p.sl, p.chs)
			if err == nil && !same {
				err = errTxConflict()
			}
			if err != nil {
				return false, err
			}
			continue
		}
		for k := range p.chs {
			same, err := c.unchanged(ctx, p.sl, &p.chs[k])
			if err == nil && !same {
				err = errTxConflict()
			}
			if err != nil {
				return false, err
			}
		}
	}
	return false, nil
}
