package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// Rows that nobody ordered come in creation order where somebody sees them and that is affordable: docs/decisions/0022.

// What creation order is given for: a range of so many items, or so many items that an index names.
const (
	MaxCreation = 10_000
	maxNamed    = 1_000
)

// creation says why rows come in creation order; "" when they are to come in the order of the access path.
//
// Example: a query selects 300 of 40,000 items by an index. The range is too large to be read or sorted for an order
// that nobody asked for. The index names at most 1,000: so these are gathered, sorted by counter, and fetched.
func (x *chooser) creation(p *access.Plan) string {
	r := x.r
	goesOn := r.From.At == AtCreation
	switch {
	case len(r.OrderBy) > 0, r.From.At != AtStart && !goesOn,
		!goesOn && (r.Shown == AnyOrder || r.Whole || r.Want != WantAll || p.Missing):
		return ""
	case goesOn:
		return began
	case p.Kind == access.Points && !r.Shown.exact() && !x.fewPoints(p.Keys):
		return ""
	case r.Shown.exact():
		return "the order was asked for"
	case p.Kind == access.Points:
		return "few points"
	case x.LargestStretch() <= MaxCreation:
		return "few items"
	case x.oneValue(p):
		return "items with one value stand in creation order in each slot"
	case p.Kind == access.Scan || p.Leaf != nil && p.Leaf.Every() || r.Limit == 1:
		return "" // for one of many items not all slots are looked at
	case x.CountNamed(p, maxNamed):
		return "the index names few items"
	}
	return ""
}

// fewPoints reports whether so few items are named by keys that they may be read before the first is given.
func (x *chooser) fewPoints(ks []access.Key) bool {
	return len(ks) >= 2 && len(ks) <= maxNamed && x.CountKeyed(ks, MaxCreation) <= MaxCreation
}

// oneValue reports whether all entries of an access path have one value. Where the partition key is the id, an entry
// holds its item's counter right behind the value. So the items that have one value stand in creation order in each
// slot, and the slots are merged: nothing is gathered, however many they are.
//
// Example: a job queue asks for the first document with state "waiting". One entry of each slot is read, and one
// document.
func (x *chooser) oneValue(p *access.Plan) bool {
	if !x.r.ByID || p.Kind != access.Index && p.Kind != access.Ordered || p.Leaf == nil || p.Leaf.Comp != nil ||
		p.Leaf.Op == access.OpSpatial {
		return false
	}
	ivs, _, ok := p.Leaf.Intervals()
	if !ok {
		return false
	}
	classes := x.Classes()
	ivs = slices.DeleteFunc(slices.Clone(ivs), func(iv access.Interval) bool { return !iv.Touches(classes) })
	return len(ivs) == 1 && ivs[0].One
}

// created makes the tree of creation order.
func (x *chooser) created(t *Tree, why string) {
	n := t.node(CreationOrder, x.source(t))
	n.Why = why
	n.OneValue = x.oneValue(&x.read)
	n.Gather = !n.OneValue || x.r.Limit == 0
	x.filter(t, n)
}

// How far the number entries of a stretch are walked, see Walked.
const (
	shareUnknown = 16 // how much of a stretch is walked where it isn't known how much is wanted
	shareKnown   = 5  // and at most where it is
	minWalked    = 64
	sortedAtOnce = 2048 // items of a range that is sorted at once where nobody says how much is wanted
	maxWalks     = 64   // slots whose number entries are merged for a range that could as well be sorted
)

// Stretch is a range of placements whose items come in one creation order.
type Stretch struct {
	Size     int64 // items, about
	Slots    int
	Numbered bool // its slots have number entries
}

// Walked returns how many items of a stretch that is scanned are walked by their numbers before the rest is read and
// sorted; below 0: all of them. A walk costs a look-up for each item. To read all items and sort them costs about an
// eighth of that for each, but all of them. So few rows are walked, many are sorted, and where nobody knows how many
// are wanted of a large range it begins to walk and sorts what is left when that costs more.
//
// Example: 8,000 items, a filter and no limit. After 500 items that were walked the other 7,500 are read and sorted.
func (r *Request) Walked(s Stretch) int64 {
	switch {
	case !s.Numbered:
		return 0
	case s.Size > MaxCreation:
		return -1
	case s.Slots > maxWalks:
		return 0
	}
	want := int64(r.Page)
	if want > 0 {
		want++ // the look whether there is more
	}
	if l := int64(r.Limit); l > 0 && (want == 0 || l < want) {
		want = l
	}
	switch {
	case want == 0 && s.Size <= sortedAtOnce:
		return 0
	case want == 0 || r.Filtered:
		return max(minWalked, s.Size/shareUnknown)
	}
	if want > minWalked && want > s.Size/shareKnown {
		return 0
	}
	return want
}
