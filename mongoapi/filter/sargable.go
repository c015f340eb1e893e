package filter

import (
	"slices"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
)

type sargKind uint8

const (
	sargNone sargKind = iota
	sargEq
	sargIn
	sargGt
	sargGte
	sargLt
	sargLte
	sargRegex
	sargPlace
	sargExists  // there is a value, with not: there is none
	sargNotNull // there is a value other than null
)

// sarg is the part of a condition that an index can answer.
type sarg struct {
	kind   sargKind
	v      value.Value
	vs     []value.Value
	prefix string
	elem   func(v value.Value) bool // $elemMatch: the test of one element
	inner  node                     // $elemMatch: the condition on one element, nil if it has no paths

	regions []*geo.Region
	coll    *collate.Collation // of the strings in v and vs; nil: there are none, or they are compared by their bytes
}

// Pred returns the part of the filter that an index can answer. It selects a superset of the matches. A condition that
// it can't express exactly, or in a weaker form, becomes "all": whole arrays and documents, most negations, array
// indexes. The variables of $expr have the values of e; without e it is "all".
func (f *Filter) Pred(e *expr.Env) *access.Pred { return (&predicates{e, f.coll}).of(f.root, nil) }

// predicates makes the predicates of conditions.
type predicates struct {
	e    *expr.Env
	coll *collate.Collation
}

// Collated returns the part of the filter that an index under its collation can answer, apart from Pred: conditions on
// strings. under is the name of the collation in their paths (core.CollatedPath).
func (f *Filter) Collated(under string) *access.Pred {
	var ps []*access.Pred
	for _, l := range f.leaves {
		if l.sarg.coll == nil {
			continue
		}
		own := *l
		own.sarg = l.sarg.keyed()
		if p := own.pred(&predicates{}, nil); p.Op != access.OpAll {
			p.Path.Segs = append([]string{under}, p.Path.Segs...)
			ps = append(ps, p)
		}
	}
	return access.And(ps...)
}

// keyed returns the condition with sort keys for strings, which are compared by their bytes.
func (s sarg) keyed() sarg {
	s.v = s.coll.Key(s.v)
	s.vs = slices.Clone(s.vs)
	for i := range s.vs {
		s.vs[i] = s.coll.Key(s.vs[i])
	}
	s.coll = nil
	return s
}

// allOf returns the conjunction of conditions, without those that are nil or that all documents satisfy.
func allOf(ps []*access.Pred) *access.Pred {
	ps = slices.DeleteFunc(ps, func(p *access.Pred) bool { return p == nil || p.Op == access.OpAll })
	switch len(ps) {
	case 0:
		return access.All()
	case 1:
		return ps[0]
	}
	return access.And(ps...)
}

func (b *predicates) of(n node, prefix []string) *access.Pred {
	switch n := n.(type) {
	case andNode:
		var ps, weak []*access.Pred
		for _, k := range n {
			if p := b.of(k, prefix); p != nil && p.Op == access.OpExists {
				weak = append(weak, p) // often nearly all documents: not worth a count beside another condition
			} else {
				ps = append(ps, p)
			}
		}
		if p := allOf(ps); p.Op != access.OpAll {
			return p
		}
		return allOf(weak)
	case orNode:
		var ps []*access.Pred
		for _, k := range n {
			p := b.of(k, prefix)
			if p == nil || p.Op == access.OpAll {
				return access.All()
			}
			ps = append(ps, p)
		}
		return access.Or(ps...)
	case constNode:
		if !n {
			return access.None()
		}
	case *pathNode:
		return n.pred(b, prefix)
	case exprNode:
		if n.sarg != nil && b.e != nil && prefix == nil {
			return n.sarg.pred(b.e, b.coll)
		}
	case nearNode:
		return n.pred()
	case textNode:
		return n.pred()
	}
	return access.All()
}

func (p *pathNode) pred(b *predicates, prefix []string) *access.Pred {
	segs := prefix
	if p.path != "" || prefix == nil {
		segs = append(prefix[:len(prefix):len(prefix)], p.segs...)
	}
	if len(segs) == 0 || p.sarg.coll != nil || p.not && p.sarg.kind < sargExists {
		return access.All()
	}
	for _, s := range segs {
		if arrayIndex(s) >= 0 { // may be an index or a name
			return access.All()
		}
	}
	path := access.NewPath(segs...)
	if p.sarg.kind == sargPlace {
		return placePred(path, p.sarg.regions)
	}
	if len(segs) > 1 || segs[0] != "_id" { // an _id is never an array
		path = path.Element()
	}
	if p.sarg.inner != nil {
		return b.of(p.sarg.inner, segs)
	}
	switch p.sarg.kind {
	case sargEq:
		return equalTo(path, []value.Value{p.sarg.v}, prefix)
	case sargIn:
		return equalTo(path, p.sarg.vs, prefix)
	case sargExists:
		switch {
		case !p.not:
			return access.Exists(path)
		case prefix == nil:
			return access.Eq(path, value.Undef())
		}
	case sargNotNull:
		if len(segs) == 1 { // elsewhere an array on the way may have no element with the field
			above := access.Range(path, &access.Bound{Value: value.BoolOf(false), Inclusive: true}, nil)
			above.Any = true // of the classes only those of MinKey and null are below booleans
			return access.Or(above, access.Eq(path, value.MinKeyValue()))
		}
	case sargGt, sargGte, sargLt, sargLte:
		return p.rangePred(path)
	case sargRegex:
		if p.sarg.prefix != "" {
			return access.WithForeign(access.Prefix(path, p.sarg.prefix)) // a stored regex matches itself
		}
	}
	return access.All()
}

// equalTo returns the condition that the value at a path, or an array element there, equals one of vs. A missing value
// equals null. It has an entry only in some indexes, and only where no array is on the way to the path. In an array it
// is the element that lacks the value, and nothing tells that.
func equalTo(path access.Path, vs []value.Value, prefix []string) *access.Pred {
	null := false
	for _, v := range vs {
		null = null || v.Kind() == value.Null
		if !indexable(v) && v.Kind() != value.Null {
			return access.All()
		}
	}
	if null {
		if prefix != nil {
			return access.All()
		}
		vs = append(vs[:len(vs):len(vs)], value.Undef())
	}
	return access.In(path, vs...)
}

// ordered reports whether the values of v's kind are in one order in an index, and v is in it.
func ordered(v value.Value) bool {
	switch v.Kind() {
	case value.Int32, value.Int64, value.Double, value.Decimal, value.String, value.ObjectID, value.Date,
		value.Timestamp:
		return !isNaNDouble(v)
	}
	return false
}

// indexable reports whether equality with v corresponds to a single index value.
func indexable(v value.Value) bool {
	switch v.Kind() {
	case value.Bool, value.Int32, value.Int64, value.Double, value.Decimal, value.String, value.ObjectID, value.Date,
		value.Timestamp,
		value.UUID:
		return !isNaNDouble(v)
	}
	return false
}

func (p *pathNode) rangePred(path access.Path) *access.Pred {
	v := p.sarg.v
	if !ordered(v) {
		return access.All()
	}
	b := &access.Bound{Value: v, Inclusive: p.sarg.kind == sargGte || p.sarg.kind == sargLte}
	if p.sarg.kind == sargGt || p.sarg.kind == sargGte {
		return access.Range(path, b, nil)
	}
	return access.Range(path, nil, b)
}
