package access

import (
	"cmp"
	"slices"
)

// An intersection walks the entries of several conditions of a conjunction and fetches only the items that all of them
// name. Walking an entry is cheap beside fetching an item, so a second condition pays where it is not much less
// selective than the first.
//
// Whatever leaves it takes, its order is that of the item numbers in each slot. So a continuation needs to know no more
// than that it began with one.

// SigBoth is the signature of every intersection.
const SigBoth = 3

const (
	fetchCost = 10  // of fetching an item, in entries walked
	minSaved  = 20  // fetches: below them the second walk's seeks cost as much
	worthIt   = 0.8 // share of the cost that must be left
	maxBoth   = 4   // leaves
)

// shared is a leaf with the share of the items that it names.
type shared struct {
	leaf  *Pred
	share float64
}

// intersection returns a plan that walks the first of the leaves, by their shares, and others that save more fetches
// than their entries cost; false when there is none. It takes the conditions for independent.
func intersection(leaves []shared, items int64) (Plan, bool) {
	leaves = slices.DeleteFunc(slices.Clone(leaves), func(s shared) bool { return s.leaf.Comp != nil })
	if len(leaves) < 2 {
		return Plan{}, false
	}
	slices.SortStableFunc(leaves, func(a, b shared) int { return cmp.Compare(a.share, b.share) })
	both, left, walked := []*Pred{leaves[0].leaf}, leaves[0].share, leaves[0].share
	for _, l := range leaves[1:] {
		before, after := walked+left*fetchCost, walked+l.share+left*l.share*fetchCost
		if float64(items)*left*(1-l.share) < minSaved || after > before*worthIt || len(both) == maxBoth {
			break
		}
		both, left, walked = append(both, l.leaf), left*l.share, walked+l.share
	}
	return Plan{Kind: Index, Both: both, Why: "few items satisfy all of the conditions"}, len(both) > 1
}

// againBoth returns an intersection for a continuation that began with one: of the two most selective conditions, or
// what the index can still answer of them.
func againBoth(src Source, cs []*Pred, why string) (Plan, bool) {
	var leaves []shared
	for _, c := range cs {
		if usable(src, c) {
			leaves = append(leaves, shared{c, src.Share(c)})
		}
	}
	if len(leaves) == 0 {
		return Plan{}, false
	}
	slices.SortStableFunc(leaves, func(a, b shared) int { return cmp.Compare(a.share, b.share) })
	p := Plan{Kind: Index, Why: why}
	for _, l := range leaves[:min(2, len(leaves))] {
		p.Both = append(p.Both, l.leaf)
	}
	return p, true
}
