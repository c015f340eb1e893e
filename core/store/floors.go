package store

import (
	"math"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// Where items are put in at the end and removed at the front, the front of the number and feed entries is a long run of
// removed keys, which an engine walks over one by one. The head has floors below which there is nothing. They are lower
// bounds: a commit lowers Lowest when its item's number was given out before, LSNs only grow. They are raised in the
// background, each time that a slot has removed some entries, and written with the next commit.

// raiseAfter is after how many removed entries the floors of a slot are looked for: who reads from a floor walks over
// about as many.
const raiseAfter = 1024

// removed counts the entries that a commit has removed. The caller holds the latch.
func (c *Container) removed(p *part) {
	for i := range p.chs {
		if p.chs[i].old != nil {
			p.sl.outdated++
		}
	}
	if p.sl.outdated += len(p.evicted); p.sl.outdated >= raiseAfter && c.raising.CompareAndSwap(false, true) {
		sl := p.sl
		if !c.st.work.Go("floors of container "+c.Name(), func() {
			defer c.raising.Store(false)
			_ = c.raiseFloors(sl) // or it is tried again after as many
		}) {
			c.raising.Store(false)
		}
	}
}

// raiseFloors looks for the first entries of a slot and raises its floors to them.
func (c *Container) raiseFloors(sl *Slot) error {
	snap, was, next, err := c.beginRaise(sl)
	if err != nil {
		return err
	}
	return c.endRaise(sl, snap, was, next)
}

// endRaise looks into what beginRaise has taken.
func (c *Container) endRaise(sl *Slot, snap kv.Snapshot, was Head, lowest uint64) error {
	defer snap.Close()
	floor := was.LSN + 1
	if !was.bare() { // else not all entries are there
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

// beginRaise takes the state of a slot: leastNew is of the items that are written behind it. next is the number that a
// new item has at least.
func (c *Container) beginRaise(sl *Slot) (snap kv.Snapshot, was Head, next uint64, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock() // whatever the engine does
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

// Lowest returns the counter below which no item of a slot has its number in the view: who reads number entries from
// the first on begins there.
func (v *View) Lowest(slot *ViewSlot) (uint64, error) {
	h, err := v.Head(slot)
	return h.Lowest, err
}
