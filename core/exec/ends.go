package exec

import (
	"bytes"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// scanIndex makes the source of one leaf.
func (b *builder) scanIndex(n *plan.Node, from *position) (source, error) {
	if n.ByNumber {
		u := newUnion(b, []*access.Pred{n.Leaf}, from)
		if n.Covered {
			u.cover = newCover(b, n.Leaf)
		}
		return u, nil
	}
	return b.indexScan(n, from), nil
}

func (b *builder) indexScan(n *plan.Node, from *position) *indexScan {
	s := newIndexScan(b, n.Leaf, from)
	if n.Covered {
		s.cover = newCover(b, n.Leaf)
	}
	s.repeat, s.e.once = n.Repeat, n.Once
	return s
}

// union and intersection make the sources of several leaves.
func (b *builder) union(n *plan.Node, from *position) (source, error) {
	return newUnion(b, leavesOf(n), from), nil
}

func (b *builder) intersection(n *plan.Node, from *position) (source, error) {
	return newIntersection(b, leavesOf(n), from), nil
}

func leavesOf(n *plan.Node) []*access.Pred {
	leaves := make([]*access.Pred, len(n.Kids))
	for i, k := range n.Kids {
		leaves[i] = k.Leaf
	}
	return leaves
}

// missing makes the source of an index scan and the items without an entry.
func (b *builder) missing(n *plan.Node, from *position) (source, error) {
	return &missing{scan: b.indexScan(n.Kids[0], from), n: make([]int64, len(b.view.Slots()))}, nil
}

// scanEnds makes the source of the ends of classes.
func (b *builder) scanEnds(n *plan.Node, _ *position) (source, error) { return b.endsOf(n), nil }

func (b *builder) endsOf(n *plan.Node) *ends {
	s := b.indexScan(n, nil)
	x := &ends{scan: s, parts: n.Leaf.ByClass(), one: s.leaf}
	x.one.ivs = make([]access.Interval, 1)
	return x
}

// repeats counts the entries behind the present one that have its value in its form, whose rows would be the same.
func (s *indexScan) repeats(r *row) error {
	s.value, r.pos = append(s.value[:0], s.e.cur.Value...), position{}
	flag := s.e.flag
	for {
		ok, err := s.e.next()
		if err != nil || !ok {
			return err
		}
		if s.e.flag != flag || !bytes.Equal(s.e.cur.Value, s.value) {
			s.peek = true
			return nil
		}
		r.more++
	}
}

// wholeSlots reports whether the query is about whole slots.
func (b *builder) wholeSlots() bool {
	for i := range b.spans {
		if !b.spans[i].whole() {
			return false
		}
	}
	return b.texts == nil
}

// missing gives what an index scan of all entries of a path gives, then an empty item for each item that has none: a
// slot's head tells how many it has.
type missing struct {
	scan *indexScan
	n    []int64 // items given, by the number of the slot in the view
	i    int     // span whose items without entries are being given
	left int64
	done bool // the scan has ended
}

var emptyDoc = []byte{5, 0, 0, 0, 0}

func (m *missing) next(r *row) (bool, error) {
	b := m.scan.b
	if !m.done {
		ok, err := m.scan.next(r)
		if ok {
			m.n[r.slot.Number()] += int64(1 + r.more)
		}
		if ok || err != nil {
			return ok, err
		}
		m.done, m.i, m.left = true, -1, 0
	}
	for m.left <= 0 {
		if m.i++; m.i >= len(b.spans) {
			return false, nil
		}
		slot := b.spans[m.i].slot
		h, err := b.view.Head(slot)
		if err != nil {
			return false, err
		}
		m.left = h.Items - m.n[slot.Number()]
	}
	if m.left--; b.q.Repeat {
		r.more, m.left = int(m.left), 0
	}
	if err := b.poll(); err != nil {
		return false, err
	}
	r.slot, r.pos = b.spans[m.i].slot, position{}
	b.view.FromEntry(&r.item, nil, 0, emptyDoc, 0)
	return true, nil
}

func (m *missing) empty() bool { return false }
func (m *missing) close()      { m.scan.close() }

// ends gives the items at the ends of each class of values in each slot: from either end up to the first whose entry
// tells a value that the filter takes. Of arrays and objects, whose entries have no order, it gives one. The entries of
// the kinds that JSON lacks, and all where such share a class with others, are given whole. An item may come twice.
type ends struct {
	scan  *indexScan // its entries, memory and place
	parts []access.ClassInterval
	one   leaf // the present part
	p     int  // which it is
	back  bool // from its upper end
	open  bool
	sps   []span
	mem   store.Mem
}

func (s *ends) next(r *row) (bool, error) {
	x := s.scan
	for {
		if !s.open && !s.start() {
			return false, nil
		}
		ok, err := x.e.next()
		if err != nil {
			return false, err
		}
		if !ok {
			s.step()
			continue
		}
		r.slot = s.sps[0].slot
		if ok, err = x.b.entryRow(r, &x.e, x.cover, &s.mem); err != nil {
			return false, err
		}
		if !ok || x.many && !r.covered && !bytes.Equal(x.leaf.first(x.b.Policy(), &x.terms, &r.item), x.e.cur.Value) {
			continue
		}
		if x.b.q.Match != nil {
			if ok, err = x.b.rows.match(&r.item); err != nil {
				return false, err
			}
			if !ok {
				continue
			}
		}
		r.matched, r.pos = true, position{}
		if s.enough(r) {
			s.step()
		}
		return true, nil
	}
}

// enough reports whether a row that matches ends the walk of its part.
func (s *ends) enough(r *row) bool {
	switch s.parts[s.p].Class {
	case value.ClassArray, value.ClassObject:
		return true
	}
	return r.covered && s.ordered()
}

// ordered reports whether the present part is walked from both ends.
func (s *ends) ordered() bool {
	switch s.parts[s.p].Class {
	case value.ClassNull, value.ClassBool, value.ClassNumber, value.ClassString:
		return s.scan.b.sharp(s.sps[0].slot) && !s.scan.leaf.many(s.scan.b, s.sps[0].slot)
	}
	return false
}

// step leaves the present walk: for the other end of its part, or the next part, or the next slot.
func (s *ends) step() {
	s.open = false
	if !s.back && s.ordered() && s.parts[s.p].Class != value.ClassNull {
		s.back = true
		return
	}
	s.back = false
	s.p++
}

// start begins the next walk; false at the end.
func (s *ends) start() bool {
	x := s.scan
	for {
		if s.sps == nil {
			if x.i >= len(x.b.spans) {
				return false
			}
			s.sps, x.upto = x.b.slotOf(x.i)
			x.many = x.leaf.several(x.b, s.sps[0].slot)
			s.p, s.back = 0, false
		}
		for ; s.p < len(s.parts); s.p++ {
			if s.parts[s.p].Touches(s.sps[0].slot.Classes()) {
				s.one.ivs[0] = s.parts[s.p].Interval
				x.e.leaf, x.e.desc = &s.one, s.back
				x.e.start(s.sps, nil)
				s.open = true
				return true
			}
		}
		s.sps, x.i = nil, x.upto
	}
}

func (s *ends) empty() bool { return false }
func (s *ends) close()      { s.scan.close() }
