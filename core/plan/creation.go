package plan

import (
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// Rows of a query without an order are given in creation order if the reader shows the order and its cost is bounded.
// docs/decisions/0022 has the reasons.

// Bounds for creation order: the number of items in a range, or the number of items that an index names.
const (
	MaxCreation = 10_000
	maxNamed    = 1_000
)

// creation returns the reason why rows are given in creation order. It returns none when they are given in the order of
// the access path.
//
// Example: a query selects 300 of 40,000 items by an index. The range is too large to be read or sorted. But the index
// names at most 1,000 items, so these are gathered, sorted by counter, and fetched.
func (x *chooser) creation(p *access.Plan) access.Reason {
	r := &x.r
	goesOn := r.From.At == AtCreation
	switch {
	case len(r.OrderBy) > 0, r.From.At != AtStart && !goesOn,
		!goesOn && (r.Shown == AnyOrder || r.Whole || r.Want != WantAll || p.Missing):
		return access.NoReason
	case goesOn:
		return access.Began
	case p.Kind == access.Points && !r.Shown.exact() && !x.fewPoints(p.Keys):
		return access.NoReason
	case r.Shown.exact():
		return access.AskedFor
	case p.Kind == access.Points:
		return access.FewPoints
	case x.LargestStretch() <= MaxCreation:
		return access.FewItems
	case x.oneValue(p):
		return access.OneValue
	case p.Kind == access.Scan || p.Leaf != nil && p.Leaf.Every() || r.Limit == 1:
		return access.NoReason // to find one of many items, not all slots are read
	case x.CountNamed(p, maxNamed):
		return access.FewNamed
	}
	return access.NoReason
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
	return singleValue(x.Stats, p.Leaf)
}

// singleValue reports whether all entries of a leaf have the same value.
func singleValue(st Stats, leaf *access.Pred) bool {
	ivs, _, ok := leaf.Intervals()
	if !ok {
		return false
	}
	classes, n := st.Classes(), 0
	for i := range ivs {
		if ivs[i].Touches(classes) {
			if n++; n > 1 || !ivs[i].One {
				return false
			}
		}
	}
	return n == 1
}

// gatheredFirst is a number of entries. Up to it they are gathered slot by slot with one iterator, which costs less
// than one iterator for each slot.
const gatheredFirst = 256

// created adds the nodes of creation order to the tree.
func (x *chooser) created(t *Tree, why access.Reason) {
	n := t.node(CreationOrder, x.source(t))
	n.Why = why
	n.OneValue = x.oneValue(x.read)
	if n.OneValue && x.r.Limit == 0 {
		n.Count = gatheredFirst
	}
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

// wanted is how many rows the query takes at first, 0 = unknown.
func (t *Tree) wanted() int64 {
	want := int64(t.page)
	if want > 0 {
		want++ // one more row tells whether the page is the last
	}
	if l := int64(t.limit); l > 0 && (want == 0 || l < want) {
		want = l
	}
	return want
}

// SortWindow returns how many rows are held at a time, 0 = all, for a stretch of that many items that is sorted. A
// stretch that is larger than expected is given in several windows.
func (t *Tree) SortWindow(size int64) int {
	window := Window(t.page)
	if size > MaxCreation && (window == 0 || window > MaxCreation) {
		return MaxCreation
	}
	return window
}

// KeyLeaf returns the equality on a path of the partition key whose entries are those of all items of one logical
// partition, in creation order: the numbers of the partition's items begin with the same bytes. It returns nil when the
// index has no such path. Then the partition is sorted.
//
// Example: all items with customer = 7 stand together in the entries of /customer. A page of 20 reads 20 of them.
func KeyLeaf(st Stats, pk []value.Value) *access.Pred {
	if !st.IndexReady() {
		return nil
	}
	for i, segs := range st.KeyPaths() {
		if !st.Policy().Covers(segs, false) || !access.Scalars(pk[i:i+1]) {
			continue
		}
		if leaf := access.Eq(access.Path{Segs: segs}, pk[i]); singleValue(st, leaf) {
			return leaf
		}
	}
	return nil
}

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
func (t *Tree) Walked(s Stretch) int64 {
	switch {
	case !s.Numbered:
		return 0
	case s.Size > MaxCreation:
		return -1
	case s.Slots > maxWalks:
		return 0
	}
	want := t.wanted()
	switch {
	case want == 0 && s.Size <= sortedAtOnce:
		return 0
	case want == 0 || t.filtered:
		return max(minWalked, s.Size/shareUnknown)
	}
	if want > minWalked && want > s.Size/shareKnown {
		return 0
	}
	return want
}
