package store

import (
	"math"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// Where items are added at the end and removed at the front, the front of the number and feed entries is a long run of
// removed keys. An engine walks over these one by one. So the head has floors: lower bounds of the entries that exist.
// A commit lowers Lowest when its item's number was given out earlier; LSNs only grow. The floors are raised in the
// background each time a slot has removed some entries, and are written with the next commit.
//
// Example: a queue has removed items 1 to 5,000. Without a floor the next read of its first item skips 5,000 removed
// keys. With Lowest = 4,900 it skips 100.

// raiseAfter is the number of removed entries after which the floors of a slot are raised. A reader that begins at a
// floor skips about so many.
const raiseAfter = 1024

// removed counts the entries that a commit has removed. The caller holds the latch.
func (c *Container) removed(p *part) {
	for i := range p.chs {
		if p.chs[i].old != nil {
			p.sl.outdated++
		}
	}
	if p.sl.outdated += int32(len(p.evicted)); p.sl.outdated >= raiseAfter && c.raising.CompareAndSwap(false, true) {
		sl := p.sl
		if !c.st.work.Go("floors of container "+c.Name(), func() {
			defer c.raising.Store(false)
			_ = c.raiseFloors(sl) // if it fails, it is tried again after as many removals
		}) {
			c.raising.Store(false)
		}
	}
}

// raiseFloors finds the first entries of a slot and raises its floors to them.
func (c *Container) raiseFloors(sl *Slot) error {
	snap, was, next, err := c.beginRaise(sl)
	if err != nil {
		return err
	}
	return c.endRaise(sl, snap, was, next)
}

// endRaise finds the first entries in the snapshot that beginRaise has taken.
func (c *Container) endRaise(sl *Slot, snap kv.Snapshot, was Head, lowest uint64) error {
	defer snap.Close()
	floor := was.LSN + 1
	if !was.bare() { // else some entries may be missing
		key, err := first(snap, keys.AppendNumber(nil, sl.key, was.Lowest), sl.key, keys.KindNumber)
		if err != nil {
			return err
		}
		if n, ok := keys.NumberCounter(key); ok {
			lowest = n
		}
	}
	key, err := first(snap, keys.AppendFeed(nil, sl.key, uint64(was.FeedFloor), 0), sl.key, keys.KindFeed)
	if err != nil {
		return err
	}
	if lsn, _, ok := keys.Feed(key); ok {
		floor = int64(lsn)
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if !was.bare() {
		sl.head.Lowest = max(sl.head.Lowest, min(lowest, sl.leastNew))
	}
	sl.head.FeedFloor = max(sl.head.FeedFloor, floor)
	return nil
}

// beginRaise takes the state of a slot. leastNew then covers the items that are written after the snapshot. next is the
// least number that a new item can have.
func (c *Container) beginRaise(sl *Slot) (snap kv.Snapshot, was Head, next uint64, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock() // even if the engine panics
	sl.outdated, sl.leastNew = 0, math.MaxUint64
	if snap, err = c.st.eng.Snapshot(c.st.work.Context()); err != nil {
		return nil, was, 0, translate(err)
	}
	return snap, sl.head, c.counter.numbered() + 1, nil
}

// first returns the first key of a kind from lo on; nil when there is none.
func first(snap kv.Snapshot, lo []byte, slot keys.Slot, kind keys.Kind) (key []byte, err error) {
	_, hi := keys.KindBounds(slot, kind)
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return nil, translate(err)
	}
	defer it.Close()
	if it.First() {
		key = append(key, it.Key()...)
	}
	return key, translate(it.Err())
}

// Lowest returns the counter below which no item of a slot has its number in the view. A reader that wants the number
// entries from the first one on begins there.
func (v *View) Lowest(slot *ViewSlot) (uint64, error) {
	h, err := v.Head(slot)
	return h.Lowest, err
}
