package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
)

// Commit commits the writes and ends the transaction. They are durable when it returns. The error is RetryWith if an
// item has changed since the snapshot. After a refusal (RetryWith, Conflict, Forbidden, TooLarge, NotFound,
// TooManyRequests) nothing was written. After another error, UnknownOutcome or Timeout for example, the writes may have
// been committed: all of them or none. charge is that of all operations together. with is a record that is written in
// the same commit, whatever it was before; nil: none. note is the note of the changes in the journal, see Write.
func (t *Transaction) Commit(ctx context.Context, with *Attached, note []byte) (charge float64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return 0, err
	}
	defer t.end(errTxEnded())
	for lost := range maxRaces {
		if err := ctx.Err(); err != nil {
			return 0, translate(err)
		}
		raced, err := t.attempt(ctx, lost, with, note)
		if err != nil {
			return 0, err
		}
		if !raced {
			charge = t.spent
			for _, in := range t.all {
				for _, p := range in.order {
					charge += p.charge
				}
			}
			return charge, nil
		}
	}
	return 0, errRaces()
}

// Time returns the time of the commit by the journal's clock; 0 if the journal doesn't record it.
func (t *Transaction) Time() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.time
}

// txChange is a change of a Transaction, and where it comes from.
type txChange struct {
	part *Tx
	item *txItem
}

// changes makes the changes of all parts, for the slots as they are now. Slots may have been split or joined since the
// snapshot: that changes neither the number nor the LSN of an item, by which the commit recognizes it.
func (t *Transaction) changes(ctx context.Context) (chs []change, from []txChange, err error) {
	for _, in := range t.all {
		for _, p := range in.order {
			for _, it := range p.order {
				if it.old == nil && it.cur == nil {
					continue
				}
				ch := change{id: it.id, old: it.old, expired: it.exp, basis: p.basis, seen: p.seen, order: it.order,
					partial: !it.whole}
				if in.c.relocate(&ch.id); ch.id.slot != it.id.slot {
					ch.basis, ch.seen = nil, beforeAll
				}
				if err := ch.id.slot.turns.wait(ctx, ch.id.tuple); err != nil {
					return chs, from, err
				}
				var doc []byte
				if it.cur != nil {
					doc = it.cur.Doc
				}
				if err := in.c.prepare(ctx, &ch, doc, it.noIdx, false); err != nil {
					return chs, from, err
				}
				chs, from = append(chs, ch), append(from, txChange{p, it})
			}
		}
	}
	if len(chs) > 1<<16-1 {
		err = status.New(status.TooLarge, "A transaction has at most 65535 writes.")
	}
	return chs, from, err
}

// attempt makes one attempt to commit. lost is how many have lost before. raced says that nothing was written, and
// that another attempt may succeed: others have written to the slots, but perhaps not to these items, or a slot was
// replaced.
func (t *Transaction) attempt(ctx context.Context, lost int, with *Attached, note []byte) (raced bool, err error) {
	chs, from, err := t.changes(ctx)
	defer func() {
		for i := range chs {
			chs[i].release()
		}
	}()
	if err != nil || len(chs) == 0 {
		return false, err
	}
	if with != nil {
		a := &attached{Attached: with}
		if t.st.others {
			if a.was, err = t.st.ReadRecord(ctx, with.Name); err != nil {
				return false, translate(err)
			}
		}
		chs[0].with = a
		chs[0].id.slot.c.decideAttached(a)
	}
	at := make([]int, len(chs))
	for i := range at {
		at[i], chs[i].note = i, note
	}
	bySlot(chs, at)
	d, err := chs[0].id.slot.c.plan(chs)
	if err != nil {
		return false, err
	}
	d.together = true
	waits, raced, err := t.write(ctx, d, chs[0].with, lost)
	if h := heldBy(err); h != nil && h.expired {
		err = h.slot.c.removeExpired(ctx, h)
		return err == nil, err
	}
	for i := range waits { // also for a refusal, which depends on what was visible
		if werr := waits[i].wait(ctx); werr != nil {
			return false, werr
		}
	}
	if raced && t.st.others { // perhaps another process has replaced a slot
		for _, in := range t.all {
			if err := in.c.keepUp(ctx); err != nil {
				return false, err
			}
		}
		return true, nil
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
// shown. with is the record of the commit; nil: none. The draft must not be used afterwards.
func (t *Transaction) write(ctx context.Context, d *draft, with *attached, lost int) (waits []pending, raced bool,
	err error) {
	unlock, err := d.lock(ctx)
	if err != nil {
		d.free()
		return nil, false, err
	}
	defer unlock()
	var on *holdOfAll
	if t.st.others && d.contested(lost) {
		on, raced, err = d.holdAll(ctx)
		defer on.end()
	}
	if err == nil && !raced {
		err = d.adopt(ctx)
	}
	if err == nil && !raced {
		raced, err = t.compare(ctx, d)
	}
	if raced || err != nil {
		d.free()
		return nil, raced, err
	}
	for i := range d.parts {
		waits = append(waits, pending{slot: d.parts[i].sl, lsn: d.parts[i].sl.head.LSN})
	}
	if on == nil {
		d.base(t.snap)
	}
	if err := d.fill(ctx, false); err != nil {
		d.free()
		if err == errBehind {
			return nil, true, nil
		}
		if h := heldBy(err); h != nil && !h.expired {
			p, err := h.refusal()
			return []pending{p}, false, err
		}
		return waits, false, err
	}
	for i := range d.parts {
		waits[i].lsn = d.parts[i].h.LSN
	}
	if on != nil {
		if err := on.has(ctx, with); err != nil {
			d.free()
			if errors.Is(err, kv.ErrConflict) {
				return nil, true, nil
			}
			return nil, false, translate(err)
		}
		d.on = on.snap
	}
	p, err := d.write(ctx)
	d.done()
	if err == nil {
		t.time = p.time
		return append([]pending{p}, waits...), false, nil // the other waits find that the commit is durable
	}
	var fatal error
	for i := range waits {
		if _, lerr := waits[i].slot.c.lost(waits[i].slot, err); lerr != nil {
			fatal = lerr
		}
	}
	return nil, fatal == nil, fatal
}

// compare looks whether the items of a draft are still the ones of the snapshot; if not, the error is that of a
// conflict. raced says that a slot isn't what it was when the changes were made. The caller holds the latches.
func (t *Transaction) compare(ctx context.Context, d *draft) (raced bool, err error) {
	for i := range d.parts {
		if p := &d.parts[i]; !p.sl.c.allCurrent(p.chs) {
			return true, nil
		}
	}
	for i := range d.parts {
		p := &d.parts[i]
		c := p.sl.c
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
