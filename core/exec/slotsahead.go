package exec

import (
	"bytes"

	"github.com/orrerydb/orrery/core/store"
)

// A source that reads one slot after the other waits for the first entry of each. Over a network it begins the slots
// that come next side by side: a few at first, more each time, and all of them where the reader reads to the end.
//
// Example: a page of 20 of an equality that 100 items in 400 slots satisfy. 4 slots are begun together, then 16, then
// 64, until the page is full: some 80 slots in 3 round trips.
//
// What was passed in a slot counts when the reader comes to it, so a page has the same charge as without.
//
// A local engine finds the first entry of a slot with the iterator of the slot before in about three microseconds: so
// little that goroutines for it would cost other requests more than they spare this one.

const (
	slotsAtFirst = 4
	slotsGrowth  = 4
)

// slotsAhead begins slots ahead of a source. The zero value has begun none.
type slotsAhead[T any] struct {
	begun []slotBegun[T] // behind the present one
	size  int            // of the next group
}

// slotBegun is a slot that was begun.
type slotBegun[T any] struct {
	at     int // its first span
	what   T
	passed int // index entries that were examined
	err    error
}

// take returns what was begun of the slot whose first span is at, and counts what was passed there. Where it isn't
// begun yet it begins it with those that come next, by f.
func (s *slotsAhead[T]) take(b *builder, at int, f func(own *builder, at int, to *T) error) (
	what T, err error) {
	for len(s.begun) > 0 && s.begun[0].at < at {
		s.begun = s.begun[1:]
	}
	if len(s.begun) == 0 || s.begun[0].at != at {
		s.begin(b, at, f)
	}
	first := s.begun[0]
	s.begun = s.begun[1:]
	b.rows.stats.Entries += first.passed
	return first.what, first.err
}

// begin begins the slots from a span on.
func (s *slotsAhead[T]) begin(b *builder, at int, f func(own *builder, at int, to *T) error) {
	switch {
	case b.q.Whole:
		s.size = len(b.spans)
	case s.size == 0:
		s.size = slotsAtFirst
	default:
		s.size *= slotsGrowth
	}
	s.begun = make([]slotBegun[T], 0, min(s.size, len(b.spans)-at))
	for at < len(b.spans) && len(s.begun) < s.size {
		s.begun = append(s.begun, slotBegun[T]{at: at})
		_, at = b.slotOf(at)
	}
	_ = b.beside(remoteAtOnce, len(s.begun), func(own *builder, i, _ int) error {
		x := &s.begun[i]
		x.err = f(own, x.at, &x.what)
		x.passed, own.rows.stats.Entries = own.rows.stats.Entries, 0
		return nil // it is told when the reader comes to the slot
	})
}

// close gives back what was begun and not taken.
func (s *slotsAhead[T]) close(f func(*T)) {
	for i := range s.begun {
		f(&s.begun[i].what)
	}
	s.begun = nil
}

// begunWalk is a walk of a slot's entries that stands on the first of them.
type begunWalk struct {
	e     *entries
	found bool
}

func (w *begunWalk) close() {
	if w.e != nil {
		w.e.close()
	}
}

// beginSlot begins the walk of the present slot, and moves to its first entry; false when there is none.
func (s *indexScan) beginSlot(sps []span) (bool, error) {
	if !s.b.view.Remote() {
		s.e.start(sps, s.from)
		return s.e.next()
	}
	w, err := s.ahead.take(s.b, s.i, func(own *builder, at int, to *begunWalk) (err error) {
		sps, _ := own.slotOf(at)
		to.e = &entries{b: own, leaf: &s.leaf, once: s.e.once}
		to.e.use(make([]byte, entryMem))
		to.e.start(sps, s.fromIn(sps[0].slot))
		to.found, err = to.e.next()
		to.e.b = s.b
		return err
	})
	if err != nil {
		w.close()
		return false, err
	}
	s.e.close()
	s.e = *w.e
	return w.found, nil
}

// fromIn returns where the walk of a slot begins: nil = with its first entry.
func (s *indexScan) fromIn(slot *store.ViewSlot) *position {
	if s.from != nil && bytes.Equal(s.from.slotMin, slot.Min()) {
		return s.from
	}
	return nil
}

// gather fills the list with the items of the present slot that come next.
func (u *union) gather() error {
	if u.above || !u.b.view.Remote() { // above: the slot was begun before
		return u.gatherSlot()
	}
	begun, err := u.ahead.take(u.b, u.i, func(own *builder, at int, to **union) error {
		x := &union{b: own, leaves: u.leaves, also: u.also, cover: u.cover, most: u.most, i: at}
		x.e, x.alsoE = entriesOf(own, x.leaves), entriesOf(own, x.also)
		defer x.close()
		*to = x
		return x.gatherSlot()
	})
	if err != nil {
		return err
	}
	u.list, u.names, u.at, u.upto, u.more, u.last = begun.list, begun.names, 0, begun.upto, begun.more, begun.last
	return nil
}

func entriesOf(b *builder, leaves []leaf) []entries {
	out := make([]entries, len(leaves))
	for i := range out {
		out[i] = entries{b: b, leaf: &leaves[i]}
	}
	return out
}
