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

// repeats counts the entries after the current one that have the same value in the same form. Their rows would be
// equal.
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

// wholeSlots reports whether the query reads whole slots.
func (b *builder) wholeSlots() bool {
	for i := range b.spans {
		if !b.spans[i].whole() {
			return false
		}
	}
	return b.texts == nil
}

// missing gives the rows of an index scan of all entries of a path. Then it gives an empty item for each item without
// an entry. A slot's head tells how many items it has.
type missing struct {
	scan *indexScan
	n    []int64 // items given, by the number of the slot in the view
	i    int     // the span whose items without entries are being given
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

func (m *missing) follows() (bool, error) { return true, nil }
func (m *missing) close()                 { m.scan.close() }

// ends gives the items at both ends of each class of values in each slot. At each end it gives items up to the first
// one whose entry tells a value that the filter accepts. Of arrays and objects, whose entries have no order, it gives
// one. Classes with kinds that JSON lacks are given completely, and so is every class that shares its entries with such
// a kind. An item may be given twice.
//
// Example: SELECT MIN(c.n), MAX(c.n) FROM c WHERE c.n > 5. In each slot the walk of the numbers above 5 stops after its
// first entry, and the walk from the upper end after its first entry: two entries for each slot.
type ends struct {
	scan  *indexScan // the walk, its memory and its span
	parts []access.ClassInterval
	one   leaf // the current part
	p     int  // the number of the current part
	back  bool // the walk goes from the upper end
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
		if !ok || x.many && !r.covered && !bytes.Equal(x.first(&r.item), x.e.cur.Value) {
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

// enough reports whether a matching row ends the walk of its part.
func (s *ends) enough(r *row) bool {
	switch s.parts[s.p].Class {
	case value.ClassArray, value.ClassObject:
		return true
	}
	return r.covered && s.ordered()
}

// ordered reports whether the current part is walked from both ends.
func (s *ends) ordered() bool {
	switch s.parts[s.p].Class {
	case value.ClassNull, value.ClassBool, value.ClassNumber, value.ClassString:
		return s.scan.b.sharp(s.sps[0].slot) && !s.scan.leaf.many(s.scan.b, s.sps[0].slot)
	}
	return false
}

// step ends the current walk. The next walk is from the other end of the part, or over the next part, or in the next
// slot.
func (s *ends) step() {
	s.open = false
	if !s.back && s.ordered() && s.parts[s.p].Class != value.ClassNull {
		s.back = true
		return
	}
	s.back = false
	s.p++
}

// start begins the next walk. It returns false at the end.
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

func (s *ends) follows() (bool, error) { return true, nil }
func (s *ends) close()                 { s.scan.close() }
