package plan

import (
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// byEntry chooses for a request with ByEntry: the walk of the entries at the path of the order, or else a plan without
// a Merge, which isn't run.
//
// A walk passes items that the other conditions refuse. If one of these names so few items that to read and sort them
// costs less, there is no walk. The entries of such a condition are counted only up to that number.
//
// Example: the first 10 of 100,000 items by n, of those with label = "a". If a share s of the items has the label, the
// walk fetches 10/s items, a cost of 160/s. To read them by the label costs 1,100,000 x s. So the walk is chosen if s
// is above 1.2 %, and at most 1,200 entries are counted.
func (x *chooser) byEntry() access.Plan {
	path := x.r.OrderBy[0]
	var leaf *access.Pred
	var others []*access.Pred
	for _, c := range x.cs {
		switch {
		case !slices.Equal(c.Path.Segs, path.Segs):
			others = append(others, c)
		case x.walkable(c) && (leaf == nil || leaf.Scalars()):
			leaf = c
		}
	}
	if leaf == nil {
		return access.Plan{Kind: access.Scan, Why: access.NoCondition}
	}
	rows, size := max(1, x.page()), float64(x.Size())
	even := math.Sqrt(rows * costNamed / (costEntry + costFetch) / max(1, size))
	for _, l := range others {
		if even < 1 && x.usable(l) && x.share(l, x.entriesOf(even)) < even {
			x.lose(access.Plan{Kind: access.Ordered, Leaf: leaf})
			return access.Plan{Kind: access.Index, Leaf: l, Why: access.MostSelective}
		}
	}
	return access.Plan{Kind: access.Ordered, Leaf: leaf, Why: access.RangeAndOrder}
}

// walkable reports whether the entries of a leaf are in the language's order.
func (x *chooser) walkable(c *access.Pred) bool {
	if !x.usable(c) || c.Any || c.Foreign && x.MayHoldForeign() {
		return false
	}
	switch c.Op {
	case access.OpRange, access.OpIn, access.OpPrefix:
		return oneClass(c)
	}
	return x.r.Collation == access.JSONOrder && c.Scalars()
}
