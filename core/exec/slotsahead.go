package exec

import (
	"bytes"

	"github.com/orrerydb/orrery/core/store"
)

// A source that reads the slots in sequence waits for the first entry of each slot. On an engine over a network it
// begins the next slots in parallel: a few at first, more each time, and all of them if the reader reads to the end.
//
// Example: a page of 20 for an equality that 100 items in 400 slots satisfy. 4 slots are begun together, then 16, then
// 64, until the page is full: about 80 slots in 3 round trips.
//
// Entries that were read in a slot are counted when the reader reaches the slot. So a page has the same charge as
// without reading ahead.
//
// A local engine finds the first entry of a slot with the iterator of the previous slot in about three microseconds.
// Goroutines for that would take more time from other requests than they save here.

const (
	slotsAtFirst = 4
	slotsGrowth  = 4
)

// slotsAhead begins slots before a source reaches them. The zero value has begun none.
type slotsAhead[T any] struct {
	begun []slotBegun[T] // after the current one
	size  int            // of the next group
}

// slotBegun is a slot that was begun.
type slotBegun[T any] struct {
	at     int // its first span
	what   T
	passed int // index entries that were examined
	err    error
}

// take returns the begun state of the slot whose first span is at, and counts the entries that were examined there. If
// the slot isn't begun yet, take begins it and the next ones, with f.
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
		return nil // take returns the error when the reader reaches the slot
	})
}

// close releases what was begun and not taken.
func (s *slotsAhead[T]) close(f func(*T)) {
	for i := range s.begun {
		f(&s.begun[i].what)
	}
	s.begun = nil
}

// begunWalk is a walk of a slot's entries that is on the first of them.
type begunWalk struct {
	e     *entries
	found bool
}

func (w *begunWalk) close() {
	if w.e != nil {
		w.e.close()
	}
}

// beginSlot begins the walk of the current slot and moves to its first entry. It returns false when there is none.
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

// fromIn returns the position after which the walk of a slot begins; nil = at its first entry.
func (s *indexScan) fromIn(slot *store.ViewSlot) *position {
	if s.from != nil && bytes.Equal(s.from.slotMin, slot.Min()) {
		return s.from
	}
	return nil
}

// gather fills the list with the next items of the current slot.
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
