package plan

import (
	"cmp"
	"slices"

	"github.com/orrerydb/orrery/core/few"
	"github.com/orrerydb/orrery/core/plan/access"
)

// An intersection walks the entries of several conditions of a conjunction. It fetches only the items that all
// conditions name. Walking an entry costs much less than fetching an item. So a second condition pays off unless it is
// much less selective than the first.
//
// Rows are in the order of the item numbers in each slot, whatever leaves are taken. So a continuation only has to hold
// that the query began with an intersection.

const (
	minSaved = 20  // fetches that must be saved: fewer cost no more than the seeks of the second walk
	worthIt  = 0.8 // the largest share of the cost that may remain
	maxBoth  = 4   // leaves of an intersection
)

// intersection returns a plan that walks the most selective leaf, and those others that save more fetches than their
// entries cost. It returns false when there is none. It assumes that the conditions are independent. The leaves must
// have been compared.
//
// Example: two conditions hold for 100 of 10,000 items each. The first alone costs 100 entries and 100 fetches, 1,100.
// Both cost 200 entries and the fetch of the one item that satisfies both, 210. If the second holds for 1,500 items,
// both cost 1,600 entries and 15 fetches, 1,750: then the first alone is better.
func (x *chooser) intersection(leaves []*access.Pred, items int64) (access.Plan, bool) {
	if len(leaves) < 2 {
		return access.Plan{}, false
	}
	by := make([]counted, 0, len(leaves))
	for _, l := range leaves {
		if l.Comp == nil {
			by = append(by, counted{leaf: l, share: x.share(l, firstCount)})
		}
	}
	if len(by) < 2 {
		return access.Plan{}, false
	}
	few.Sort(by, func(a, b counted) int { return cmp.Compare(a.share, b.share) })
	both, left, walked := []*access.Pred{by[0].leaf}, by[0].share, by[0].share
	for _, l := range by[1:] {
		before, after := walked+left*costFetch, walked+l.share+left*l.share*costFetch
		if float64(items)*left*(1-l.share) < minSaved || after > before*worthIt || len(both) == maxBoth {
			break
		}
		both, left, walked = append(both, l.leaf), left*l.share, walked+l.share
	}
	return access.Plan{Kind: access.Index, Both: both, Why: access.FewInAll}, len(both) > 1
}

// againBoth returns an intersection for a continuation that began with one. It takes the two most selective conditions,
// or those of them that the index can still answer.
func (x *chooser) againBoth() (access.Plan, bool) {
	var by []counted
	leaves, _ := x.candidates(x.cs)
	leaves = slices.DeleteFunc(leaves, func(l *access.Pred) bool { return l.Comp != nil })
	if len(leaves) > 2 {
		x.compare(leaves)
	}
	for _, l := range leaves {
		by = append(by, counted{leaf: l, share: x.share(l, firstCount)})
	}
	if len(by) == 0 {
		return access.Plan{}, false
	}
	few.Sort(by, func(a, b counted) int { return cmp.Compare(a.share, b.share) })
	p := access.Plan{Kind: access.Index, Why: access.Began}
	for _, l := range by[:min(2, len(by))] {
		p.Both = append(p.Both, l.leaf)
	}
	return p, true
}
