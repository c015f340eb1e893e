package exec

import "bytes"

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
	begunAhead[T]
	size int // of the next group
}

// begunAhead holds parts of the container that were begun together and aren't reached yet: slots, or spans.
type begunAhead[T any] struct {
	begun []partBegun[T] // after the current one
}

// partBegun is a slot or a span that was begun.
type partBegun[T any] struct {
	at     int // its first span
	what   T
	passed int // index entries that were examined
	err    error
}

// take returns the begun state of the slot whose first span is at, and counts the entries that were examined there. If
// the slot isn't begun yet, take begins it and the next ones, with f.
func (s *slotsAhead[T]) take(b *builder, at int, f func(own *builder, at int, to *T) error) (T, error) {
	if !s.has(at) {
		s.begin(b, s.group(b, at), f)
	}
	return s.pop(b)
}

// group returns the first spans of the slots that are begun next, from a span on.
func (s *slotsAhead[T]) group(b *builder, at int) (out []int) {
	switch {
	case b.q.Whole:
		s.size = len(b.spans)
	case s.size == 0:
		s.size = slotsAtFirst
	default:
		s.size *= slotsGrowth
	}
	for at < len(b.spans) && len(out) < s.size {
		out = append(out, at)
		_, at = b.slotOf(at)
	}
	return out
}

// has reports whether the part whose first span is at was begun. It drops parts before that one.
func (s *begunAhead[T]) has(at int) bool {
	for len(s.begun) > 0 && s.begun[0].at < at {
		s.begun = s.begun[1:]
	}
	return len(s.begun) > 0 && s.begun[0].at == at
}

// begin begins parts.
func (s *begunAhead[T]) begin(b *builder, parts []int, f func(own *builder, at int, to *T) error) {
	s.begun = make([]partBegun[T], len(parts))
	_ = b.beside(remoteAtOnce, len(parts), func(own *builder, i, _ int) error {
		x := &s.begun[i]
		x.at = parts[i]
		x.err = f(own, x.at, &x.what)
		x.passed, own.rows.stats.Entries = own.rows.stats.Entries, 0
		return nil // pop returns the error when the reader reaches the part
	})
}

// pop returns the state of the first part, and counts the entries that were examined there.
func (s *begunAhead[T]) pop(b *builder) (what T, err error) {
	first := s.begun[0]
	s.begun = s.begun[1:]
	b.rows.stats.Entries += first.passed
	return first.what, first.err
}

// close releases what was begun and not taken.
func (s *begunAhead[T]) close(f func(*T)) {
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
		to.e.start(sps, s.fromIn(&sps[0]))
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

// fromIn returns the position after which the walk of a unit begins; nil = at its first entry.
func (s *indexScan) fromIn(sp *span) *position {
	if s.from != nil && bytes.Equal(s.from.unit.lo, sp.places().lo) {
		return s.from
	}
	return nil
}

// gather fills the list with the next items of the current slot.
func (u *union) gather() error {
	if u.above || !u.b.view.Remote() { // above: the slot was begun before
		return u.gatherUnit()
	}
	begun, err := u.ahead.take(u.b, u.i, func(own *builder, at int, to **union) error {
		x := &union{b: own, leaves: u.leaves, also: u.also, cover: u.cover, most: u.most, i: at}
		x.e, x.alsoE = entriesOf(own, x.leaves), entriesOf(own, x.also)
		defer x.close()
		*to = x
		return x.gatherUnit()
	})
	if err != nil {
		return err
	}
	u.list, u.names, u.at, u.upto, u.more, u.last = begun.list, begun.names, 0, begun.upto, begun.more, begun.last
	u.slots = begun.slots
	return nil
}

func entriesOf(b *builder, leaves []leaf) []entries {
	out := make([]entries, len(leaves))
	for i := range out {
		out[i] = entries{b: b, leaf: &leaves[i]}
	}
	return out
}
