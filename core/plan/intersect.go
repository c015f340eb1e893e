package plan

import (
	"cmp"
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// An intersection walks the entries of several conditions of a conjunction and fetches only the items that all of them
// name. Walking an entry is cheap beside fetching an item, so a second condition pays where it is not much less
// selective than the first.
//
// Whatever leaves it takes, its order is that of the item numbers in each slot. So a continuation needs to know no more
// than that it began with one.

const (
	minSaved = 20  // fetches: below them the second walk's seeks cost as much
	worthIt  = 0.8 // share of the cost that must be left
	maxBoth  = 4   // leaves
)

// intersection returns a plan that walks the most selective of the leaves, and others that save more fetches than their
// entries cost; false when there is none. It takes the conditions for independent. The leaves were compared.
//
// Example: of 10,000 items each of two conditions holds for 100. One alone costs 100 entries and 100 fetches, 1,100.
// Both cost 200 entries and the fetch of the one item that is in both, 210. Where the second holds for 1,500 they cost
// 1,600 entries and 15 fetches, 1,750: the first alone is better.
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
	slices.SortStableFunc(by, func(a, b counted) int { return cmp.Compare(a.share, b.share) })
	both, left, walked := []*access.Pred{by[0].leaf}, by[0].share, by[0].share
	for _, l := range by[1:] {
		before, after := walked+left*costFetch, walked+l.share+left*l.share*costFetch
		if float64(items)*left*(1-l.share) < minSaved || after > before*worthIt || len(both) == maxBoth {
			break
		}
		both, left, walked = append(both, l.leaf), left*l.share, walked+l.share
	}
	return access.Plan{Kind: access.Index, Both: both, Why: "few items satisfy all of the conditions"}, len(both) > 1
}

// againBoth returns an intersection for a continuation that began with one: of the two most selective conditions, or
// what the index can still answer of them.
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
	slices.SortStableFunc(by, func(a, b counted) int { return cmp.Compare(a.share, b.share) })
	p := access.Plan{Kind: access.Index, Why: began}
	for _, l := range by[:min(2, len(by))] {
		p.Both = append(p.Both, l.leaf)
	}
	return p, true
}
