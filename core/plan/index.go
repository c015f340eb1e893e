package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// byIndex picks the leaf, the union of leaves or the intersection with the least to read. It picks a scan if the index
// would name too many items. items is the approximate number of items; with 0 no intersection is made.
//
// A single equality isn't counted: it is assumed to be selective. A range is counted: if half of all items satisfy it,
// fetching them one by one costs several times as much as a scan.
//
// Example: category = 5 AND price > 10 over 10,000 items, of which 100 have the category and 9,000 the price. The index
// on the category walks 100 entries and fetches 100 items, a cost of 1,100. The index on the price costs 99,000, a scan
// 16,500.
func (x *chooser) byIndex(cs []*access.Pred, items int64) access.Plan {
	leaves, unions := x.candidates(cs)
	alone := len(leaves)+len(unions) == 1
	if !alone || len(leaves) == 1 && leaves[0].Op != access.OpIn {
		x.compare(leaves)
	}
	var best access.Plan
	least := 2.0
	take := func(p access.Plan, share float64) {
		if share < least {
			p, best, least = best, p, share
		}
		if p.Kind != access.Nothing {
			x.lose(p)
		}
	}
	for _, l := range leaves {
		share := 0.0
		if !alone || l.Op != access.OpIn {
			share = x.share(l, firstCount)
		}
		take(access.Plan{Kind: access.Index, Leaf: l, Why: access.MostSelective}, share)
	}
	for _, u := range unions {
		share := 0.0
		for _, l := range u {
			if share += x.share(l, lastCount); share > scanShare { // a scan costs less
				break
			}
		}
		take(access.Plan{Kind: access.Index, Union: u, Why: access.EveryAlternative}, share)
	}
	switch {
	case least > 1:
		return access.Plan{Kind: access.Scan, Why: access.NoCondition}
	case least > scanShare:
		x.lose(best)
		return access.Plan{Kind: access.Scan,
			Why: access.TooMany}
	}
	x.lose(access.Plan{Kind: access.Scan})
	if best.Leaf != nil && best.Leaf.Comp == nil {
		if p, ok := x.intersection(leaves, items); ok {
			x.lose(best)
			return p
		}
	}
	return best
}

// candidates returns the conditions that the index can answer, and the unions for the disjunctions of which the index
// can answer every alternative.
func (x *chooser) candidates(cs []*access.Pred) (leaves []*access.Pred, unions [][]*access.Pred) {
	leaves = make([]*access.Pred, 0, len(cs))
	for _, c := range cs {
		if x.usable(c) {
			leaves = append(leaves, c)
		} else if c.Op == access.OpOr {
			if u := x.unionOf(c); u != nil {
				unions = append(unions, u)
			}
		}
	}
	return append(leaves, x.composites(2)...), unions
}

// unionOf returns the leaves of a disjunction if the index can answer a leaf of each alternative, else nil. A range of
// ids with all ids that aren't strings is of use only in an order: to count it for a union costs more than it saves.
func (x *chooser) unionOf(p *access.Pred) []*access.Pred {
	var out []*access.Pred
	for _, k := range p.Kids {
		var leaf *access.Pred
		for _, c := range k.Conjuncts() {
			if x.usable(c) && !(c.Any && isID(c.Path.Segs)) && (leaf == nil || c.Op < leaf.Op) {
				leaf = c
			}
		}
		if leaf == nil {
			return nil
		}
		out = append(out, leaf)
	}
	return out
}

// usable reports whether the index can answer a leaf.
func (x *chooser) usable(p *access.Pred) bool { return usable(x.Stats, p) }

func usable(st Stats, p *access.Pred) bool {
	if p.Op < access.OpIn || p.Op == access.OpSpatial {
		return p.Placed()
	}
	if p.Comp != nil {
		return true
	}
	if access.Missing(p.Vals) {
		return false
	}
	if len(p.Path.Segs) == 1 && p.Path.Segs[0] == index.SystemTS {
		return true
	}
	if missesGraphForm(p) && st.MayHoldGraphForm() {
		return false
	}
	return len(p.Path.Segs) > 0 && st.Policy().Covers(p.Path.Segs, p.Path.Elements)
}

// missesGraphForm reports whether a leaf needs entries that graph elements don't have (index.GraphForm).
func missesGraphForm(p *access.Pred) bool {
	n := len(p.Path.Segs)
	if n > 1 && slices.Contains(p.Path.Segs[1:], "id") || n == 1 && slices.Contains(index.EdgeCopies, p.Path.Segs[0]) {
		return true
	}
	for _, v := range p.Vals {
		if v.Kind() == value.Object {
			return true
		}
	}
	if slices.ContainsFunc(p.Kids, missesGraphForm) {
		return true
	}
	return p.Lo != nil && p.Lo.Value.Kind() == value.Object || p.Hi != nil && p.Hi.Value.Kind() == value.Object
}

// oneClass reports whether a leaf's values are of one class. Inside a class the byte order is the order of every
// language.
func oneClass(p *access.Pred) bool {
	if p.Op == access.OpRange {
		return p.Lo == nil || p.Hi == nil || keys.Class(p.Lo.Value) == keys.Class(p.Hi.Value)
	}
	for _, v := range p.Vals {
		if keys.Class(v) != keys.Class(p.Vals[0]) {
			return false
		}
	}
	return true
}
