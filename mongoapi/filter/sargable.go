package filter

import (
	"slices"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
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
// it can't express exactly, or in a weaker form, becomes "all": null (missing fields satisfy it), whole arrays and
// documents, negations, array indexes.
func (f *Filter) Pred() *access.Pred { return predOf(f.root, nil) }

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
		if p := own.pred(nil); p.Op != access.OpAll {
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

func predOf(n node, prefix []string) *access.Pred {
	switch n := n.(type) {
	case andNode:
		var ps []*access.Pred
		for _, k := range n {
			ps = append(ps, predOf(k, prefix))
		}
		return allOf(ps)
	case orNode:
		var ps []*access.Pred
		for _, k := range n {
			p := predOf(k, prefix)
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
		return n.pred(prefix)
	case nearNode:
		return n.pred()
	case textNode:
		return n.pred()
	}
	return access.All()
}

func (p *pathNode) pred(prefix []string) *access.Pred {
	segs := prefix
	if p.path != "" || prefix == nil {
		segs = append(prefix[:len(prefix):len(prefix)], p.segs...)
	}
	if p.not || len(segs) == 0 || p.sarg.coll != nil {
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
		return predOf(p.sarg.inner, segs)
	}
	switch p.sarg.kind {
	case sargEq:
		if indexable(p.sarg.v) {
			return access.Eq(path, p.sarg.v)
		}
	case sargIn:
		if len(p.sarg.vs) == 0 {
			return access.None()
		}
		for _, v := range p.sarg.vs {
			if !indexable(v) {
				return access.All()
			}
		}
		return access.In(path, p.sarg.vs...)
	case sargGt, sargGte, sargLt, sargLte:
		return p.rangePred(path)
	case sargRegex:
		if p.sarg.prefix != "" {
			return access.WithForeign(access.Prefix(path, p.sarg.prefix)) // a stored regex matches itself
		}
	}
	return access.All()
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
	switch v.Kind() {
	case value.Int32, value.Int64, value.Double, value.Decimal, value.String, value.ObjectID, value.Date,
		value.Timestamp:
	default:
		return access.All()
	}
	if isNaNDouble(v) {
		return access.All()
	}
	b := &access.Bound{Value: v, Inclusive: p.sarg.kind == sargGte || p.sarg.kind == sargLte}
	if p.sarg.kind == sargGt || p.sarg.kind == sargGte {
		return access.Range(path, b, nil)
	}
	return access.Range(path, nil, b)
}
