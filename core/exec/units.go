package exec

import (
	"bytes"
	"slices"
)

// A source that reads the index of one slot after another has an order in each slot: its positions name the slot's
// placements and the place in that order. When the slot has been cut since, or joined with another, the next page reads
// these placements as one unit, in the order that the slot had. The spans are cut at the ends of the unit. After it
// come the remaining placements, in units of whole slots, or of the part of a slot that lies behind the position's
// unit.
//
// Example: a page ended at (n = 5, number 70) in the slot 40 to 80. Then the slot was cut at 60. The unit 40 to 80 has
// the spans 40 to 60 and 60 to 80, whose entries after (5, 70) are merged. If instead the slot was joined with the one
// after it, 40 to C0, the unit has the span 40 to 80 of that slot, and the next unit is 80 to C0.

// places returns the unit of the span.
func (s *span) places() places {
	if s.unit != nil {
		return *s.unit
	}
	return places{s.slot.Min(), s.slot.Max()}
}

// least returns a lower bound of the suffixes in the span.
func (s *span) least() []byte {
	if s.lo != nil {
		return s.lo
	}
	return s.slot.Min()
}

// holds reports whether a span begins in the placements.
func (p *places) holds(s *span) bool {
	least := s.least()
	return bytes.Compare(p.lo, least) <= 0 && (p.hi == nil || bytes.Compare(least, p.hi) < 0)
}

// cut cuts the spans at the ends of the position's unit.
func (b *builder) cut() error {
	p := b.from
	if p == nil || p.kind != posIndex && p.kind != posMixed && p.kind != posCreation {
		return nil
	}
	if p.ofSlot && !b.formerUnit() || p.unit.hi != nil && bytes.Compare(p.unit.lo, p.unit.hi) >= 0 {
		return errToken()
	}
	for _, at := range [][]byte{p.unit.lo, p.unit.hi} {
		b.cutAt(at)
	}
	if p.kind == posCreation {
		return nil
	}
	for i := range b.spans {
		if s := &b.spans[i]; p.unit.holds(s) && !b.isSlot(s, &p.unit) {
			s.unit = &p.unit
		}
	}
	return nil
}

// isSlot reports whether a unit is the slot of a span.
func (b *builder) isSlot(s *span, u *places) bool {
	max := s.slot.Max()
	return bytes.Equal(s.slot.Min(), u.lo) && (max == nil) == (u.hi == nil) && bytes.Equal(max, u.hi)
}

// cutAt cuts the unit that holds a placement in two, and a span of it that does.
func (b *builder) cutAt(at []byte) {
	if at == nil {
		return
	}
	var front, back *places
	for i := 0; i < len(b.spans); i++ {
		s := &b.spans[i]
		u := s.places()
		if bytes.Compare(at, u.lo) <= 0 || u.hi != nil && bytes.Compare(at, u.hi) >= 0 {
			continue
		}
		if front == nil { // placements lie in one unit only
			front, back = &places{u.lo, at}, &places{at, u.hi}
		}
		switch {
		case bytes.Compare(s.least(), at) >= 0:
			s.unit = back
		case s.full, s.hi != nil && bytes.Compare(s.hi, at) <= 0:
			s.unit = front
		default:
			rest := *s
			s.hi, s.unit = at, front
			rest.lo, rest.unit = at, back
			b.spans = slices.Insert(b.spans, i+1, rest)
			i++
		}
	}
}

// formerUnit completes a position that names only the beginning of its slot. It reports whether there was such a slot.
func (b *builder) formerUnit() bool {
	p := b.from
	max, ok := b.view.Version().Map().Former(1, p.unit.lo)
	p.unit.hi, p.ofSlot = max, false
	return ok
}

// unitOf returns the index of the span after the unit of spans[i].
func (b *builder) unitOf(i int) (next int) {
	if b.spans[i].unit == nil {
		_, next = b.slotOf(i)
		return next
	}
	for next = i + 1; next < len(b.spans) && b.spans[next].unit == b.spans[i].unit; next++ {
	}
	return next
}

// unitFrom returns the first span to read after a position. It returns no position if the position is in an earlier
// unit.
func unitFrom(b *builder, from *position) (int, *position) {
	i := 0
	if from != nil {
		for i < len(b.spans) && bytes.Compare(b.spans[i].places().lo, from.unit.lo) < 0 {
			i++
		}
		if i < len(b.spans) && !bytes.Equal(b.spans[i].places().lo, from.unit.lo) {
			from = nil
		}
	}
	return i, from
}

// beginUnit begins the walk of the unit at span s.i and moves to its first entry. It returns false when there is none.
func (s *indexScan) beginUnit() (bool, error) {
	s.upto = s.b.unitOf(s.i)
	sps, next := s.b.slotOf(s.i)
	s.many = s.leaf.several(s.b, sps[0].slot)
	if next == s.upto {
		return s.beginSlot(sps)
	}
	for at := s.i; at < s.upto; at = next {
		sps, next = s.b.slotOf(at)
		s.many = s.many || s.leaf.several(s.b, sps[0].slot)
		e := &entries{b: s.b, leaf: &s.leaf, once: s.e.once}
		e.use(make([]byte, entryMem))
		e.start(sps, s.from)
		s.others = append(s.others, e)
		if err := s.drop(e.next()); err != nil {
			return false, err
		}
	}
	return s.least(false), nil
}

// drop removes the last of the other slots when it has no entry.
func (s *indexScan) drop(found bool, err error) error {
	if !found {
		n := len(s.others) - 1
		s.others[n].close()
		s.others = s.others[:n]
	}
	return err
}

// advance moves to the unit's next entry. It returns false at the end.
func (s *indexScan) advance() (bool, error) {
	ok, err := s.e.next()
	if err != nil || len(s.others) == 0 {
		return ok, err
	}
	return s.least(ok), nil
}

// least makes s.e the slot with the least entry. valid says that s.e is on an entry; if it isn't, it has no more.
func (s *indexScan) least(valid bool) bool {
	at, best := -1, &s.e
	for i, e := range s.others {
		if at < 0 && !valid || e.before(best) {
			at, best = i, e
		}
	}
	switch {
	case at < 0:
		return valid
	case valid:
		s.e, *s.others[at] = *s.others[at], s.e
	default:
		s.e.close()
		s.e = *s.others[at]
		s.others = slices.Delete(s.others, at, at+1)
	}
	return true
}

// before reports whether the current entry comes before another's.
func (e *entries) before(o *entries) bool {
	c := bytes.Compare(e.cur.Value, o.cur.Value)
	return c < 0 || c == 0 && e.cur.Number < o.cur.Number
}
