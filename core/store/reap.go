package store

import (
	"bytes"
	"context"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
)

// Bounds of one call of Reap.
const (
	reapItems   = 1024 // deletes
	reapCommit  = 128  // deletes of one commit
	reapEntries = 8192 // feed entries that are skipped
)

// Reap removes expired items of a slot and returns how many it removed. more says that a bound was reached: there may
// be more to remove now.
//
// Items with their own ttl are found by their ttl entries. Items under the container's default are found in feed order.
// In each epoch the oldest writes come first, so the walk of an epoch ends at the first item under the default that
// hasn't expired. An item with its own ttl never becomes an item under the default without a new feed entry. So the
// items before that point are skipped only once: slot.reaped stores where the walk of the first epoch has ended.
//
// Items whose life a declared index ends are found by their index entries: see dueDeclared. Readers see them until
// then.
//
// Example: the default is 60 s and the feed has items written 90, 70 and 50 s ago. The first two are removed, and the
// third ends the walk.
func (c *Container) Reap(ctx context.Context, sl *Slot) (n int, more bool, err error) {
	if c.def.Load().DefaultTTL == nil && !c.Declared() {
		return 0, false, nil
	}
	due, more, err := c.due(ctx, sl)
	if err != nil {
		return 0, false, err
	}
	if len(due) == 0 {
		return 0, more, nil
	}
	l, err := c.lease(ctx, lease.Expiry)
	if l == nil { // another process removes them
		return 0, false, err
	}
	defer l.Release()
	ctx = l.Context()
	var last pending
	for len(due) > 0 && err == nil && ctx.Err() == nil {
		part := due[:min(len(due), reapCommit)]
		due = due[len(part):]
		var p pending
		var k int
		if p, k, err = c.reapBatch(ctx, sl, part); k > 0 {
			n, last = n+k, p
		}
	}
	if werr := last.wait(ctx); err == nil {
		err = werr
	}
	return n, more, err
}

// due returns the suffixes of expired items in a slot, and whether there may be more.
func (c *Container) due(ctx context.Context, sl *Slot) (out [][]byte, more bool, err error) {
	view, err := c.View(ctx)
	if err != nil {
		return nil, false, err
	}
	defer view.Close()
	slot := view.Of(sl)
	if slot == nil { // the slot was removed in the meantime
		return nil, false, nil
	}
	if view.ttl != nil {
		if out, more, err = c.dueByTTL(view, slot); err != nil || more {
			return out, more, err
		}
	}
	return c.dueDeclared(view, slot, out)
}

// dueByTTL returns the suffixes of items whose time to live has ended.
func (c *Container) dueByTTL(view *View, slot *ViewSlot) (out [][]byte, more bool, err error) {
	sl := slot.Slot
	lo, _ := keys.KindBounds(sl.key, keys.KindTTL)
	hi := keys.AppendTTL(nil, sl.key, uint64(view.now)+1, nil)
	err = view.walk(lo, hi, func(k, _ []byte) (bool, error) {
		out = append(out, bytes.Clone(k[keys.PrefixLen+8:]))
		return len(out) < reapItems, nil
	})
	if err != nil || *view.ttl <= 0 || len(out) == reapItems {
		return out, len(out) == reapItems, err
	}
	return c.dueByFeed(view, slot, out)
}

// dueByFeed appends the suffixes of expired items under the container's default ttl.
func (c *Container) dueByFeed(view *View, slot *ViewSlot, out [][]byte) (_ [][]byte, more bool, err error) {
	h, err := view.Head(slot)
	if err != nil {
		return out, false, err
	}
	w := feedWalk{view: view, sl: slot, out: out}
	from := max(uint64(h.FeedFloor)<<16, w.sl.reaped.Load())
	for i, r := range h.Runs() {
		w.pinned = i == 0 && !r.Mixed
		if err = w.run(r, from, w.pinned); err != nil || w.bound {
			break
		}
		from = max(from, uint64(r.End)<<16)
	}
	return w.out, w.bound && len(w.out)+w.steps > 0, err
}

// feedWalk finds expired items under the container's default.
type feedWalk struct {
	view   *View
	sl     *ViewSlot
	out    [][]byte
	mem    Mem
	passed int
	pinned bool // so far only items with their own ttl, in the first run
	steps  int  // number of entries by which slot.reaped has moved
	bound  bool // a bound was reached
}

// run walks over a run of the feed, beginning at a place (LSN << 16 | position). In a run without order no item ends
// the walk. If the walk over a run other than the first finds nothing before a bound, the next walk continues there.
func (w *feedWalk) run(r Run, from uint64, first bool) error {
	roamed := w.sl.roamed.Load()
	if roamed = max(roamed, from); !first && (r.End == lastRun || roamed>>16 < uint64(r.End)) {
		from = roamed
		w.sl.roamed.Store(0)
	}
	lo := keys.AppendFeed(nil, w.sl.key, from>>16, uint16(from))
	_, hi := keys.KindBounds(w.sl.key, keys.KindFeed)
	if r.End != lastRun {
		hi = keys.AppendFeed(nil, w.sl.key, uint64(r.End), 0)
	}
	if bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	return w.view.walk(lo, hi, func(k, suffix []byte) (bool, error) {
		var it Item
		alive, err := w.view.FetchSuffix(&it, w.sl, suffix, &w.mem)
		if err != nil || alive && it.TTL == 0 && !r.Mixed {
			return false, err
		}
		lsn, pos, ok := keys.Feed(k)
		place := lsn<<16 | uint64(pos) + 1
		switch {
		case !alive && it.TTL == 0:
			w.pinned = false
			w.out = append(w.out, bytes.Clone(suffix))
		case ok && w.pinned:
			w.sl.reaped.Store(place)
			w.steps++
		}
		w.passed++
		w.bound = len(w.out) >= reapItems || w.passed >= reapEntries
		if w.bound && len(w.out) == 0 && !first {
			w.sl.roamed.Store(place)
		}
		return !w.bound, nil
	})
}

// walk calls f for the keys of a range until it returns false.
func (v *View) walk(lo, hi []byte, f func(key, val []byte) (bool, error)) error {
	it, err := v.Iter(lo, hi)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if more, err := f(it.Key(), it.Value()); err != nil || !more {
			return err
		}
	}
	return translate(it.Err())
}

// maxReapRaces is how often a commit of deletes is tried again. The remaining items are left for the next call.
const maxReapRaces = 4

// reapBatch deletes, in one commit, those of the items that still exist and are expired. It returns how many.
func (c *Container) reapBatch(ctx context.Context, sl *Slot, suffixes [][]byte) (p pending, n int, err error) {
	ids := make([]identity, len(suffixes))
	for i, s := range suffixes {
		if ids[i], err = c.identityOf(s); err != nil {
			return p, 0, err
		}
	}
	for range maxReapRaces {
		for i := range ids {
			if c.relocate(&ids[i]); ids[i].slot != sl {
				return p, 0, nil // the slot no longer exists: the walk over the current slots finds the items
			}
		}
		p, n, raced, err := c.reapAttempt(ctx, sl, ids)
		if raced && err == nil {
			err = c.keepUpShared(ctx)
		}
		if !raced || err != nil {
			return p, n, err
		}
	}
	return p, 0, nil
}

// identityOf splits a suffix (place, tuple, id) into its parts. The identity has no slot yet.
func (c *Container) identityOf(suffix []byte) (identity, error) {
	place := c.placeLen()
	if len(suffix) < place { // of a damaged entry
		return identity{}, status.New(status.Corruption, "malformed identity %x", suffix)
	}
	rest := suffix[place:]
	for range c.keyPaths() {
		var err error
		if rest, err = keys.SkipExact(rest); err != nil {
			return identity{}, err
		}
	}
	tuple := suffix[place : len(suffix)-len(rest)]
	return identity{place: suffix[:place:place], tuple: tuple, ident: suffix[place:], suffix: suffix}, nil
}

// reapAttempt makes one attempt. raced says that an item or the slot has changed in between.
func (c *Container) reapAttempt(ctx context.Context, sl *Slot, ids []identity) (
	p pending, n int, raced bool, err error) {
	chs := make([]change, 0, len(ids))
	defer func() {
		for i := range chs {
			chs[i].release()
		}
	}()
	for _, id := range ids {
		ch := change{id: id, seen: sl.lsn.Load()}
		if err := c.readOld(ctx, &ch, false); err != nil {
			return p, 0, false, err
		}
		if ch.old == nil || !ch.expired && !c.overdue(ch.old) {
			continue
		}
		if err := c.prepare(ctx, &ch, nil, false, true); err != nil {
			return p, 0, false, err
		}
		chs = append(chs, ch)
	}
	if len(chs) == 0 {
		return p, 0, false, nil
	}
	d, err := c.plan(chs)
	if err != nil {
		return p, 0, false, err
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if !d.unchanged(ctx) {
		d.free()
		return p, 0, true, nil
	}
	p, raced, err = d.commit(ctx)
	if raced || err != nil {
		return p, 0, raced, err
	}
	return p, len(chs), false, nil
}
