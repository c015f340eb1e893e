package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// tree makes the tree of an access path. It decides how the rows get into the wanted order.
func (x *chooser) tree(t *Tree) {
	r := &x.r
	x.narrow(&t.Access)
	if x.read.Kind == access.Nothing || x.Slots() == 0 {
		t.Root = t.node(Nothing, nil)
		t.Root.Why = t.Access.Why
		return
	}
	x.order(t)
	if r.Limit > 0 {
		t.Root = t.node(Limit, t.Root)
		t.Root.Count = r.Limit
	}
}

// order chooses the node that gives the wanted order. The first rule that applies wins. Each rule reads less than the
// rules below it, and only the last ones hold rows in memory.
func (x *chooser) order(t *Tree) {
	r := &x.r
	if why := x.creation(x.read); why != access.NoReason {
		x.created(t, why)
		return
	}
	switch {
	case len(r.OrderBy) == 0:
		x.filter(t, x.source(t))
	case x.idOrder(x.read):
		x.above(t, IDOrder, access.StoredByID)
	case x.keyOrder(t):
	case x.merges(x.read):
		n := t.node(Merge, x.source(t))
		if n.Once = x.once(x.read); x.read.Why == access.OrderInside {
			n.Count = x.passedMost()
			n.Kids = append(n.Kids, &Node{Op: PartitionScan, Why: access.IfFar})
		}
		x.filter(t, n)
	default:
		x.sort(t)
	}
}

// above adds an order node between the access path and the filter.
func (x *chooser) above(t *Tree, op Op, why access.Reason) {
	n := t.node(op, x.source(t))
	n.Why = why
	x.filter(t, n)
}

// filter adds the node of the language's filter at the top.
func (x *chooser) filter(t *Tree, below *Node) {
	if t.Root = below; x.r.Filtered {
		t.Root = t.node(Filter, below)
	}
}

// idOrder reports whether a scan of one logical partition gives the wanted order: the order of its ids. Languages order
// ids of different kinds differently, so all ids must be of one class.
//
// Example: the rows of a table's partition by RowKey.
func (x *chooser) idOrder(p *access.Plan) bool {
	r := &x.r
	return p.Kind == access.Scan && x.one && len(r.OrderBy) == 1 && !r.Desc[0] && !r.Computed &&
		isID(r.OrderBy[0].Segs) && !r.From.Cut && x.IDsInOneClass()
}

// keyOrder chooses how to give the order of partition key and id over all logical partitions. This is the order of the
// names in index entries. A walk reads and skips the rows that the filter refuses. If an index names few items, their
// names are gathered and sorted instead.
//
// Example: the first page of 20 entities of a table with 10,000. Without a filter the walk reads 20. If 5,000 satisfy
// the filter, the walk reads 40 items; gathering would read 5,000 entries. If 100 satisfy it, the walk would read 2,000
// items, so the 100 names are gathered.
//
// Where only so much is known that the index names many items, the walk begins, and its rows are the sample that tells
// how many satisfy the filter: see Turn.
func (x *chooser) keyOrder(t *Tree) bool {
	if !x.wantsKeyOrder() {
		return false
	}
	p, ks := x.read, x.KeyPaths()
	onKey := p.Leaf != nil && p.Leaf.Comp == nil && !p.Leaf.Path.Elements && slices.Equal(p.Leaf.Path.Segs, ks[0])
	switch p.Kind {
	case access.Scan:
	case access.Index, access.Ordered:
		if !onKey && !x.walksKeys(p) {
			return x.nameOrder(t)
		}
	default:
		return false
	}
	if !x.keysGiveOrder() {
		return false
	}
	n := t.node(PartitionScan, nil)
	n.Why = access.EachPartition
	n = t.node(KeyOrder, n)
	if leaf := x.unsure(p); leaf != nil {
		n.Kids = append(n.Kids, &Node{Op: scanOf(leaf), Leaf: leaf, Why: access.IfFewer})
	}
	n.Why = access.KeysGiveOrder
	if n.Leaf = p.Leaf; !onKey {
		if p.Kind != access.Scan {
			x.lose(*p)
		}
		n.Leaf = access.Exists(access.Path{Segs: ks[0]})
	}
	x.filter(t, n)
	return true
}

// PartitionOrder returns the operation that gives one logical partition in the order of its ids, below a KeyOrder:
// IDOrder, or Sort where the ids are of several classes. The source asks for each partition that it opens, because it
// may never open most of them.
func PartitionOrder(st Stats) Op {
	if st.IDsInOneClass() {
		return IDOrder
	}
	return Sort
}

// wantsKeyOrder reports whether the wanted order is that of partition key and id over all logical partitions.
func (x *chooser) wantsKeyOrder() bool {
	r, ks := &x.r, x.KeyPaths()
	return len(r.OrderBy) == 2 && len(ks) == 1 && !r.Desc[0] && !r.Desc[1] && !r.Computed && !r.OrderBy[0].Elements &&
		slices.Equal(r.OrderBy[0].Segs, ks[0]) && isID(r.OrderBy[1].Segs) && !r.From.Cut && !x.one && !r.ByID
}

// keysGiveOrder reports whether the index of the partition key gives that order. It asks once.
func (x *chooser) keysGiveOrder() bool {
	if !x.keysAsked {
		k := x.KeyPaths()[0]
		x.keysAsked = true
		x.keysOrdered = x.IndexReady() && x.Policy().Covers(k, false) && x.OnlyTexts(access.Path{Segs: k})
	}
	return x.keysOrdered
}

// walksKeys reports whether a walk over all items in key order finds a page sooner than the names that the access path
// gives can be gathered.
func (x *chooser) walksKeys(p *access.Plan) bool {
	if p.Leaf == nil {
		return false
	}
	share := x.share(p.Leaf, lastCount)
	named := share * float64(x.Size())
	if named > MaxCreation {
		return true
	}
	page := x.page()
	walk, gather := page/share*costPassed, named*costGathered+page*costNamed
	return page > 0 && named > page && walk < gather
}

// page is how many rows the query takes at first; 0 = unknown.
func (x *chooser) page() float64 { return float64(cmp.Or(x.r.Page, x.r.Limit)) }

// enough is how many entries of a slot are counted at most of a condition that has no other to compare with. Where it
// has more, a walk in key order begins, and its first rows tell more than a longer count.
//
// Example: a page of 20 entities in key order, of 100,000 in four slots. A walk passes 20/share of them, at a cost of
// 160/share; to gather the names costs 400,000 x share. From a share of 2 % on the walk costs less. That is 500 entries
// of a slot. 256 are counted, which costs as much as a sample of 32 rows.
func (x *chooser) enough() int {
	page, size := x.page(), float64(x.Size())
	if page == 0 || size == 0 || !x.wantsKeyOrder() || !x.keysGiveOrder() {
		return lastCount
	}
	most := x.entriesOf(min(1, math.Sqrt(page*costPassed/costGathered/size), MaxCreation/size))
	if x.r.Filtered {
		most = min(most, FirstSample*costPassed)
	}
	return most
}

// FirstSample is how many rows a walk in key order passes before Turn is asked for the first time.
const FirstSample = 32

// unsure returns the condition that has more entries than were counted, nil when there is none. Then a scan was chosen,
// but the entries may be far fewer than the rows of the walk.
func (x *chooser) unsure(p *access.Plan) *access.Pred {
	if p.Kind != access.Scan || !x.r.Filtered || len(x.counts) != 1 || x.page() == 0 ||
		x.r.From.At == AtKeys && !x.r.From.Texts {
		return nil
	}
	c := &x.counts[0]
	if c.share < 1 || c.entries == lastCount || c.leaf.Comp != nil || c.leaf.Op == access.OpSpatial {
		return nil
	}
	return c.leaf
}

// Turn decides whether a walk in key order goes on, or the names that an index gives are gathered instead. The walk has
// passed rows of size items, of which hits satisfy the filter. Turn returns 0 when the walk goes on. Else it returns
// how many entries may be gathered before that costs more than to walk on. It is asked after FirstSample rows, and
// again whenever twice as many have been passed.
//
// Example: of 100,000 items 64 were passed for a page of 20, and one satisfies the filter. So 3 % are expected to. To
// find 19 more, the walk would pass 627 items at a cost of 5,016. To gather the 3,030 names of the index would cost
// 12,120: the walk goes on. If none of the 64 did, the walk would pass 1,320 at a cost of 10,560, and the 1,515 names
// would cost 6,060: up to 2,640 entries are gathered.
func (t *Tree) Turn(passed, hits, size int64) (entries int) {
	want := float64(max(1, int64(cmp.Or(t.page, t.limit))-hits))
	share := float64(hits+1) / float64(passed+2)
	named, walk := share*float64(size), want/share*costPassed
	if named > MaxCreation || walk <= named*costGathered+want*costNamed {
		return 0
	}
	return int(min(MaxCreation, walk/costGathered))
}

// nameOrder reports whether the index gathers few names, and these sort as the keys and ids do.
func (x *chooser) nameOrder(t *Tree) bool {
	f := &x.r.From
	if x.read.Missing || f.At == AtKeys && !f.Texts || !x.CountTexts(x.read, MaxCreation) {
		return false
	}
	x.above(t, NameOrder, access.NamesSorted)
	return true
}

// maxStreams is the largest number of iterators that a merge opens.
const maxStreams = 256

// merges reports whether the streams of an ordered access path can be merged: their bytes are in the order of the
// values, and there are at most maxStreams. For a composite index the order is known for each column.
//
// Example: ORDER BY n over the entries of 4 slots needs 4 streams. WHERE a IN (30 values) ORDER BY b with an index on
// (a, b) needs 120.
func (x *chooser) merges(p *access.Plan) bool {
	if p.Kind != access.Ordered || x.r.From.Cut {
		return false
	}
	if p.Leaf.Comp == nil {
		return p.Why == access.EntryOfKey || p.Why == access.OrderInside || x.InOrder(p.Leaf.Path)
	}
	return !p.Leaf.Comp.Merged() || x.Slots()*p.Leaf.Comp.Streams() <= maxStreams
}

// minWindow is the smallest window of a sort. Without it a reader with pages of one row would read everything for each
// row.
const minWindow = 16

// Window returns how many rows a sort holds at a time for a page of that many rows; 0 = all.
func Window(page int) int {
	if page == 0 {
		return 0
	}
	return max(page+1, minWindow)
}

// sort adds the node that reads and sorts all candidates. If few rows are wanted, it holds only those. If these are the
// nearest to a place, it reads only candidates near the place.
//
// Example: ORDER BY n LIMIT 10 without an index on n: 10,000 items are read, 10 are held.
func (x *chooser) sort(t *Tree) {
	r := &x.r
	window := Window(r.Page)
	if r.From.At == AtKeys && r.From.Cut { // rows with the same cut sort keys must all be held to tell them apart
		window = 0
	}
	bound := window
	if window == 0 || r.Limit > 0 && r.Limit <= window {
		bound = r.Limit
	}
	dist, ring := x.rings(x.read, bound)
	x.filter(t, x.source(t))
	op := Sort
	switch {
	case ring != nil:
		op, t.Access.Why = Rings, access.GrowingRings
	case bound > 0:
		op = TopK
	}
	n := t.node(op, t.Root)
	n.Count, n.Leaf, t.Ring = window, ring, dist
	t.Root = n
}

// rings returns the first ring for an order of distances. It returns nil if a sort of all candidates is needed or costs
// no more. The filter must demand a shape at the path: items without a distance come first, and no index finds those.
//
// Example: the 10 nearest of a million shops. The first ring of 100 m has 3 shops, the ring of 400 m has 60: these 60
// are sorted.
func (x *chooser) rings(p *access.Plan, want int) (dist float64, ring *access.Pred) {
	r := &x.r
	if r.Near == nil || len(r.OrderBy) != 1 || r.Desc[0] || want == 0 || x.one ||
		r.From.At == AtKeys && (r.From.Cut || r.From.Dist < 0) {
		return 0, nil
	}
	switch {
	case p.Kind == access.Index && p.Leaf != nil && p.Leaf.Op == access.OpSpatial:
		if most := fewForRings(want); x.CountPlaces(p.Leaf, most) < most {
			return 0, nil
		}
	case p.Kind != access.Scan:
		return 0, nil
	}
	dist = r.Near.First
	if r.From.At == AtKeys {
		dist = max(dist, r.From.Dist)
	}
	return Reach(x.Stats, r, dist, want)
}

// fewForRings is the largest number of places that are sorted without rings.
func fewForRings(want int) int { return 64 + 4*want }

// source makes the node that finds the candidates.
func (x *chooser) source(t *Tree) *Node {
	p := x.read
	var n *Node
	switch {
	case p.Kind == access.Points:
		n = t.node(Points, nil)
		n.Count = len(p.Keys)
	case p.Kind == access.Scan && x.one:
		n = t.node(PartitionScan, nil)
	case p.Kind == access.Scan:
		n = t.node(Scan, nil)
	case p.Both != nil:
		n = x.several(t, Intersect, p.Both)
	case p.Union != nil:
		n = x.several(t, Union, p.Union)
	default:
		return x.scan(t)
	}
	n.Why = p.Why
	return n
}

// several makes a node above the scans of several leaves.
func (x *chooser) several(t *Tree, op Op, leaves []*access.Pred) *Node {
	n := t.node(op, nil)
	n.ByNumber = true
	mem := make([]Node, len(leaves))
	n.Kids = make([]*Node, len(leaves))
	for i, l := range leaves {
		k := &mem[i]
		k.Op, k.Leaf = scanOf(l), l
		n.Kids[i] = k
	}
	return n
}

func scanOf(l *access.Pred) Op {
	switch {
	case l.Comp != nil:
		return CompositeScan
	case l.Op == access.OpSpatial:
		return SpatialScan
	}
	return IndexScan
}

// scan makes the node of one leaf. Rows are in the order of numbers where they can't be in the order of values: a shape
// has several entries, and the columns of a composite index may change with the policy.
func (x *chooser) scan(t *Tree) *Node {
	r, p := &x.r, x.read
	n := t.node(scanOf(p.Leaf), nil)
	n.Leaf, n.Why, n.Covered = p.Leaf, p.Why, p.Covered
	comp := p.Leaf.Comp
	n.ByNumber = p.Leaf.Op == access.OpSpatial ||
		comp != nil && (len(r.OrderBy) == 0 && !r.Whole || comp.Index.Array != nil)
	if !p.Covered || n.ByNumber {
		return n
	}
	unordered := len(r.OrderBy) == 0
	n.Repeat = r.Repeat && r.Whole && unordered && (comp != nil && x.allColumns(comp) || x.onlyLeaf(p.Leaf))
	if unordered && r.From.At == AtStart && comp == nil && x.onlyLeaf(p.Leaf) {
		switch {
		case r.Want == WantEnds && !p.Missing:
			n.Op = EndsScan
			return n
		case r.Want == WantTally && !r.Filtered && r.WholeSlots && p.Leaf.Op == access.OpExists &&
			x.TellsCount(p.Leaf.Path):
			n.Op = TallyScan
			return n
		}
	}
	if p.Missing {
		return t.node(Missing, n)
	}
	n.Once = x.once(p)
	return n
}

// once reports whether one entry for each value is enough.
func (x *chooser) once(p *access.Plan) bool {
	return p.Covered && x.r.Want == WantValues && x.onlyLeaf(p.Leaf)
}

// allColumns reports whether a query looks only at columns.
func (x *chooser) allColumns(c *access.Composite) bool {
	for _, n := range x.r.Needs {
		if c.Column(n.Segs) < 0 {
			return false
		}
	}
	return true
}

// AllTexts reports whether all sort keys of a position are strings.
func AllTexts(keys []value.Value) bool {
	for _, v := range keys {
		if v.Kind() != value.String {
			return false
		}
	}
	return true
}
