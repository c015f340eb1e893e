package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// Rows of a query without an order are given in creation order if the reader shows the order and its cost is bounded.
// docs/decisions/0022 has the reasons.

// Bounds for creation order: the number of items in a range, or the number of items that an index names.
const (
	MaxCreation = 10_000
	maxNamed    = 1_000
)

// creation returns the reason why rows are given in creation order. It returns "" when they are given in the order of
// the access path.
//
// Example: a query selects 300 of 40,000 items by an index. The range is too large to be read or sorted. But the index
// names at most 1,000 items, so these are gathered, sorted by counter, and fetched.
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
		return "" // to find one of many items, not all slots are read
	case x.CountNamed(p, maxNamed):
		return "the index names few items"
	}
	return ""
}

// fewPoints reports whether the keys name few enough items to read them all before the first row is given.
func (x *chooser) fewPoints(ks []access.Key) bool {
	return len(ks) >= 2 && len(ks) <= maxNamed && x.CountKeyed(ks, MaxCreation) <= MaxCreation
}

// oneValue reports whether all entries of an access path have the same value. Where the partition key is the id, an
// entry has its item's counter right behind the value. So in each slot the items of one value are in creation order,
// and the slots are merged. Nothing is gathered, however many items there are.
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

// created adds the nodes of creation order to the tree.
func (x *chooser) created(t *Tree, why string) {
	n := t.node(CreationOrder, x.source(t))
	n.Why = why
	n.OneValue = x.oneValue(&x.read)
	n.Gather = !n.OneValue || x.r.Limit == 0
	x.filter(t, n)
}

// Limits on how many number entries of a stretch are walked, see Walked.
const (
	shareUnknown = 16 // the divisor of a stretch's size that is walked, where the wanted number of rows is unknown
	shareKnown   = 5  // the same as an upper bound, where it is known
	minWalked    = 64
	sortedAtOnce = 2048 // items of a range that is sorted without a walk, where the wanted number is unknown
	maxWalks     = 64   // slots whose number entries are merged, for a range that could also be sorted
)

// Stretch is a range of placements whose items come in one creation order.
type Stretch struct {
	Size     int64 // approximate number of items
	Slots    int
	Numbered bool // its slots have number entries
}

// Walked returns how many items of a scanned stretch are walked by their numbers before the rest is read and sorted.
// Below 0: all of them are walked. A walk costs a look-up for each item. Reading and sorting costs about an eighth of
// that for each item, but it reads all items. So a few wanted rows are walked, and many are sorted. If the stretch is
// large and the wanted number of rows is unknown, the source begins with a walk. It sorts the rest when that becomes
// cheaper.
//
// Example: 8,000 items, a filter and no limit. The first 500 items are walked, then the other 7,500 are read and
// sorted.
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
		want++ // one more row tells whether the page is the last
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
