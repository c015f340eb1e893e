package access

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// A condition that is made of conditions on one path demands a set of ranges of the values there: an OR their union, an
// AND their intersection. All types of values are in one order, so a condition on types is a range too.
//
// Example: n > 5 OR n is a string OR n is an array, which is what clients of the NoSQL API ask for to go on behind
// n = 5 in the order of n. The numbers above 5, the strings and the arrays are next to each other: it is one range.

// Ranges returns the conditions on one path in p as one leaf, nil where p demands nothing of the path. The leaf may be
// weaker than p. absent says that items without a value at the path satisfy it too, which may have no entry. json says
// that there are no values of kinds that JSON lacks.
func Ranges(p *Pred, segs []string, json bool) (leaf *Pred, absent bool) {
	leaf = &Pred{Op: opRanges, Kids: []*Pred{p}, Path: Path{Segs: segs}}
	if p != nil && p.Op == OpOr {
		leaf.Kids = p.Kids
	}
	first := true
	s, ok := p.within(func(k *Pred) (s set, ok bool) {
		if k.Op < OpIn || k.Op > OpExists || !slices.Equal(k.Path.Segs, segs) ||
			!first && !SamePath(k.Path, leaf.Path) {
			return s, false
		}
		leaf.Path, first = k.Path, false
		leaf.Foreign = leaf.Foreign || k.Foreign && !json
		one := *k
		one.Foreign, one.Vals = k.Foreign && !json, nil
		for _, v := range k.Vals {
			if s.absent = s.absent || !v.IsDefined(); v.IsDefined() {
				one.Vals = append(one.Vals, v)
			}
		}
		if s.ivs, _, ok = one.Intervals(); s.absent { // some indexes have entries of missing values
			s.ivs = normalise(append(s.ivs, classInterval(value.ClassUndefined)))
		}
		return s, ok
	})
	if !ok {
		return nil, false
	}
	leaf.ivs = s.ivs
	return leaf, s.absent
}

// set is a set of values: intervals, sorted and without overlap, and whether the missing value is one of them.
type set struct {
	ivs    []Interval
	absent bool
}

// within returns the values that p demands at a path, whose leaves on knows. ok is false where p demands nothing there.
// Different elements of an array may satisfy the parts of an AND, so only one of these counts then.
func (p *Pred) within(on func(*Pred) (set, bool)) (s set, ok bool) {
	switch {
	case p == nil || p.Op == OpAll:
		return s, false
	case p.Op == OpNone:
		return s, true
	case p.Op != OpAnd && p.Op != OpOr:
		return on(p)
	}
	for _, k := range p.Kids {
		of, has := k.within(on)
		switch {
		case !has && p.Op == OpOr:
			return set{}, false
		case !has:
		case !ok:
			s, ok = of, true
		case p.Op == OpOr:
			s.ivs, s.absent = joinClasses(normalise(append(s.ivs, of.ivs...))), s.absent || of.absent
		case !k.elements():
			s.ivs, s.absent = intersect(s.ivs, of.ivs), s.absent && of.absent
		}
	}
	return s, ok
}

// elements reports whether a condition of p is on array elements.
func (p *Pred) elements() bool {
	return p.Path.Elements || slices.ContainsFunc(p.Kids, (*Pred).elements)
}

// intersect returns what lies in both of two sets of intervals.
func intersect(a, b []Interval) (out []Interval) {
	for len(a) > 0 && len(b) > 0 {
		iv := a[0]
		if bytes.Compare(b[0].Lo, iv.Lo) > 0 {
			iv.Lo, iv.One = b[0].Lo, b[0].One
		}
		if bytes.Compare(b[0].Hi, a[0].Hi) < 0 {
			iv.Hi, iv.One = b[0].Hi, b[0].One
		}
		if bytes.Compare(iv.Lo, iv.Hi) < 0 {
			out = append(out, iv)
		}
		if bytes.Compare(a[0].Hi, b[0].Hi) < 0 {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// joinClasses joins an interval that ends with a class and one that begins with the next class: nothing is between
// them.
func joinClasses(ivs []Interval) []Interval {
	out := ivs[:0]
	for _, iv := range ivs {
		if n := len(out); n > 0 && !between(out[n-1].Hi, iv.Lo) {
			out[n-1] = Interval{Lo: out[n-1].Lo, Hi: iv.Hi}
			continue
		}
		out = append(out, iv)
	}
	return out
}

// between reports whether values may lie between the end of an interval and the beginning of the next one.
func between(hi, lo []byte) bool {
	if len(hi) > 1 || len(lo) > 1 {
		return !bytes.Equal(hi, lo)
	}
	return slices.ContainsFunc(classList[:], func(c byte) bool { return c >= hi[0] && c < lo[0] })
}

// Bits returns the classes of the values that a leaf takes, a bit for each class byte c at c>>3.
func (p *Pred) Bits() (bits uint32) {
	ivs, _, _ := p.Intervals()
	for _, iv := range ivs {
		if iv.Lo[0] != value.ClassAny || len(iv.Hi) > 1 || iv.Hi[0] > value.ClassAny+1 {
			bits |= iv.classBits()
		}
	}
	return bits
}

// Split cuts the scan of a composite index into the parts that a disjunction leaves of it, which concerns the column
// behind Front. on says which conditions a column answers. Nothing is cut where there is no such disjunction, or where
// there would be more than most parts.
//
// Example: an index on (a, b) and the filter a > 1 OR a = 1 AND b > 5. The parts are the entries with a = 1 from b = 5
// on, and those behind a = 1: together all that is behind (1, 5).
func (c *Composite) Split(cs []*Pred, most int, on func(*index.Column, *Pred) bool) {
	s := splitter{c: c, on: on, most: most}
	for _, p := range cs {
		if p.Op != OpOr || len(c.Front) == len(c.Index.Columns) {
			continue
		}
		if _, ok := s.values(p, len(c.Front)); !ok {
			continue
		}
		s.out = nil
		for _, k := range p.Kids {
			s.part(nil, 0, &Pred{Op: OpAnd, Kids: append([]*Pred{k}, cs...)})
		}
		if len(s.out) <= most {
			c.parts, c.either = normalise(s.out), p
			return
		}
	}
}

type splitter struct {
	c    *Composite
	on   func(*index.Column, *Pred) bool
	most int
	out  []Interval
}

// values returns the values that p demands in a column, encoded as in an ascending one.
func (s *splitter) values(p *Pred, i int) (set, bool) {
	return p.within(func(p *Pred) (of set, ok bool) {
		if p.Op < OpIn || p.Op > OpExists || !s.on(&s.c.Index.Columns[i], p) {
			return of, false
		}
		of.ivs = columnSet(p, s.c.Index.Cut)
		return of, true
	})
}

// part adds the intervals that a conjunction leaves of the entries that begin with base, the values of the columns
// before column i. It stops when there are too many.
func (s *splitter) part(base []byte, i int, p *Pred) {
	of, ok := s.values(p, i)
	if !ok {
		all := Interval{Lo: []byte{0}, Hi: []byte{0xFF}}
		if i > 0 {
			all = Interval{Lo: base, Hi: keys.After(base)}
		}
		s.out = append(s.out, all)
		return
	}
	desc, last := s.c.Index.Columns[i].Desc, i+1 == len(s.c.Index.Columns)
	for k := range of.ivs {
		iv := &of.ivs[k]
		lo, hi := behind(base, iv.Lo, desc), behind(base, iv.Hi, desc)
		switch {
		case len(s.out) > s.most:
			return
		case iv.One && !last:
			s.part(lo, i+1, p)
			continue
		case iv.One:
			hi = keys.After(lo)
		case desc: // as in columnInterval
			lo, hi = keys.After(hi), keys.After(lo)
		}
		s.out = append(s.out, Interval{Lo: lo, Hi: hi})
	}
}

// behind returns a bound of a column behind the values of the columns before it.
//
//go:noinline
func behind(base, b []byte, desc bool) []byte {
	out := append(append(make([]byte, 0, len(base)+len(b)), base...), b...)
	if desc {
		keys.Invert(out[len(base):])
	}
	return out
}

// columnSet returns the intervals of a condition on an ascending column.
func columnSet(p *Pred, cut int) (ivs []Interval) {
	switch p.Op {
	case OpIn:
		for _, v := range p.Vals {
			e, _ := keys.AppendColumn(nil, v, cut, false)
			ivs = append(ivs, Interval{Lo: e, Hi: keys.After(e), One: true})
		}
	case OpExists:
		return []Interval{{Lo: []byte{value.ClassAny}, Hi: []byte{value.ClassUndefined}},
			{Lo: []byte{value.ClassUndefined + 1}, Hi: []byte{value.ClassMaxKey + 1}}}
	default:
		lo, hi := columnBounds(p, cut)
		ivs = []Interval{{Lo: lo, Hi: hi}}
	}
	return normalise(ivs)
}
