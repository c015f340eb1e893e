package plan

import (
	"math/bits"
	"slices"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// The conditions on the path of the wanted order say where a walk in that order begins and ends. They are a range, or a
// set of ranges (access.Ranges).

// ordered returns a plan whose index order is the wanted order.
//
// Example: WHERE n > 5 ORDER BY n LIMIT 10. In each slot the entries of /n above 5 are in that order. Merged over the
// slots they give 10 rows for 10 fetches, however many items satisfy the filter.
func (x *chooser) ordered() (access.Plan, bool) {
	if len(x.r.OrderBy) != 1 || len(x.cs) == 0 {
		return access.Plan{}, false
	}
	on, rest := x.onOrder()
	p := x.rangeOfOrder(on)
	return p, p.Leaf != nil && worthOrder(x, p.Leaf, rest)
}

// onOrder returns the conditions on the path of the wanted order, and the others.
func (x *chooser) onOrder() (on, rest []*access.Pred) {
	for _, c := range x.cs {
		if isOn(c, x.r.OrderBy[0].Segs) {
			on = append(on, c)
		} else {
			rest = append(rest, c)
		}
	}
	return on, rest
}

// rangeOfOrder returns the plan of conditions on the path of the wanted order, without a leaf if there is none.
func (x *chooser) rangeOfOrder(on []*access.Pred) access.Plan {
	p := access.Plan{Kind: access.Ordered, Leaf: ranges(x, on), Why: access.RangesAndOrder}
	if p.Leaf == nil {
		p.Leaf, p.Why = oneRange(x, on), access.RangeAndOrder
	}
	return p
}

// isOn reports whether a condition demands something of a path.
func isOn(c *access.Pred, segs []string) bool {
	if c.Op >= access.OpIn {
		return c.Op <= access.OpExists && slices.Equal(c.Path.Segs, segs)
	}
	leaf, _ := access.Ranges(c, segs, true)
	return leaf != nil
}

// oneRange returns the first condition whose values are of one class.
func oneRange(x *chooser, on []*access.Pred) *access.Pred {
	for _, c := range on {
		if !x.usable(c) || c.Op != access.OpRange && c.Op != access.OpIn && c.Op != access.OpPrefix || c.Any ||
			!oneClass(c) || c.Path.Elements && !x.InOrder(c.Path) || c.Foreign && x.MayHoldForeign() {
			continue
		}
		return c
	}
	return nil
}

// ranges returns the conditions on the path of the order as one leaf, where they are more than one range, and the
// leaf's entries are in the wanted order.
//
// Example: a client goes on in the order of n behind 5: WHERE n > 5 OR IS_STRING(n) OR IS_ARRAY(n) OR IS_OBJECT(n). The
// walk begins behind 5. In descending order the client asks for n < 5 OR IS_NULL(n) OR NOT IS_DEFINED(n), for instance:
// the entries below 5, if every item has one.
func ranges(x *chooser, on []*access.Pred) *access.Pred {
	if len(on) == 0 || len(on) == 1 && on[0].Op != access.OpOr && on[0].Op != access.OpExists {
		return nil
	}
	json := onlyJSON(x)
	leaf, absent := on[0], false
	if len(on) > 1 || leaf.Op == access.OpOr {
		leaf, absent = access.Ranges(access.And(on...), x.r.OrderBy[0].Segs, json)
	}
	if leaf == nil || leaf.Foreign && !json || !x.usable(leaf) || !x.InOrder(leaf.Path) || !inOneOrder(x, leaf) ||
		absent && !x.NamesEveryItem(leaf.Path) {
		return nil
	}
	return leaf
}

// onlyJSON reports whether all values are of the kinds of JSON.
func onlyJSON(x *chooser) bool {
	const others = 1<<(value.ClassMinKey>>3) | 1<<(value.ClassMaxKey>>3) | index.Odd
	return !x.MayHoldForeign() && x.Classes()&others == 0
}

// inOneOrder reports whether the values in a leaf's entries are in the wanted order, if those of each class are: there
// is one class, or the classes are in the order of JSON's types.
func inOneOrder(x *chooser, leaf *access.Pred) bool {
	if isID(leaf.Path.Segs) { // languages may show other ids as texts
		return x.OnlyTexts(leaf.Path)
	}
	return bits.OnesCount32(leaf.Bits()&x.Classes()) <= 1 ||
		x.r.Collation == access.JSONOrder && onlyJSON(x)
}

// worthOrder reports whether a leaf whose entries are in the wanted order is better than the index of the other
// conditions, whose rows must be sorted.
//
// Example: WHERE user = "a" AND n > 5 ORDER BY n. Of 10,000 items 9,000 have n > 5. If 10 have the user, these are
// fetched and sorted. If 2,000 have it, the index on n gives the order. If 1,000 have it, it does so for a page of up
// to 100 rows, which are among the first 1,000 entries.
func worthOrder(x *chooser, leaf *access.Pred, rest []*access.Pred) bool {
	if len(rest) == 0 {
		return true
	}
	before := len(x.lost)
	other := x.byIndex(rest, 0)
	x.lost = x.lost[:before] // byIndex is called again if the order isn't worth its cost
	worth := other.Kind != access.Index
	if !worth && other.Both == nil {
		left := 0.0
		if other.Leaf != nil {
			left = x.share(other.Leaf, lastCount)
		}
		for _, l := range other.Union {
			left += x.share(l, lastCount)
		}
		page := x.page()
		worth = left > scanShare || page > 0 && page <= left*left*float64(x.Size()) ||
			x.share(leaf, x.entriesOf(worthSorting*left)) <= worthSorting*left
	}
	if !worth {
		other = access.Plan{Kind: access.Ordered, Leaf: leaf}
	}
	x.lose(other)
	return worth
}

// oneLeaf returns a disjunction as one leaf if all alternatives are on the same path, else nil. A continuation can't
// identify such a leaf.
func oneLeaf(p *access.Pred) *access.Pred {
	if p == nil || p.Op != access.OpOr {
		return nil
	}
	first := p
	for len(first.Kids) > 0 {
		first = first.Kids[0]
	}
	leaf, absent := access.Ranges(p, first.Path.Segs, false)
	if absent {
		return nil
	}
	return leaf
}
