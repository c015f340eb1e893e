package plan

import (
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// PassedRow is how many entries a walk inside one logical partition could pass over for the cost of a row that the
// filter refuses.
const PassedRow = costNamed

// walkPays is how much less a walk in the wanted order must cost than to read and sort a logical partition. Whether the
// partition's entries lie evenly among those of others isn't known before.
const walkPays = 2

// orderInside returns the walk over the entries of the order's path, for a query inside one logical partition that
// wants few rows. The entries of the slot's other partitions lie between those of this one, and are passed over. If
// they are too many, the partition is read and sorted after all: see passedMost.
//
// Example: the 10 latest of a device's 30,000 readings, in a slot with 60,000 items. The walk reads 20 entries and
// fetches 10 items. To sort, 30,000 items would be read. If the device has only 100 of the 60,000, these are sorted.
func (x *chooser) orderInside(other *access.Plan) (access.Plan, bool) {
	r := &x.r
	page := x.page()
	if len(r.OrderBy) != 1 || page == 0 || r.ByID || r.From.Cut || !x.IndexReady() ||
		other.Kind == access.Nothing || other.Kind == access.Points ||
		other.Kind == access.Ordered && other.Leaf.Comp != nil || x.PartitionItems() <= smallPartition ||
		x.idOrder(&access.Plan{Kind: access.Scan}) {
		return access.Plan{}, false
	}
	leaf, rest := x.orderLeaf()
	if leaf == nil {
		return access.Plan{}, false
	}
	part, each := float64(x.PartitionItems()), x.between()*costEntry+costNamed
	share, sort := x.leastShare(rest, math.Sqrt(page*each/(costEntry+costFetch)/part)), part*costScanned
	if share < 1 {
		sort = min(sort, share*part*(costEntry+costFetch))
	}
	if q, n := x.leastInside(rest); q.Kind == access.Index {
		named := max(1, float64(n)/x.between())
		share, sort = min(share, named/part), min(sort, float64(n)*costEntry+named*costFetch)
	}
	if walkPays*page/share*each > sort {
		return access.Plan{}, false
	}
	return x.coverChosen(access.Plan{Kind: access.Ordered, Leaf: leaf, Why: access.OrderInside}), true
}

// leastShare returns the share of the logical partition's items that the most selective equality names, 1 if there is
// none. Above even a walk costs less than to sort what the equality names: twice as many entries are counted at most.
func (x *chooser) leastShare(cs []*access.Pred, even float64) float64 {
	least := 1.0
	entries := x.entriesOf(min(1, walkPays*even))
	for _, c := range cs {
		if c.Op != access.OpIn || len(c.Vals) > fewValues || !x.usable(c) || x.isKeyPath(c.Path) {
			continue
		}
		share := max(x.share(c, entries), 1/float64(x.PartitionItems()))
		if share == 1 { // at least as many as were counted
			share = min(1, float64(min(entries, maxPassed))/float64(x.PartitionItems()))
		}
		least = min(least, share)
	}
	return least
}

// orderLeaf returns the entries of the order's path that give the wanted order, nil if there are none, and the
// conditions on other paths.
func (x *chooser) orderLeaf() (leaf *access.Pred, rest []*access.Pred) {
	if x.r.Own {
		return x.ownLeaf(), x.cs
	}
	on, rest := x.onOrder()
	if leaf = x.rangeOfOrder(on).Leaf; leaf == nil {
		leaf = access.AnyEntry(x.r.OrderBy[0])
		if !x.usable(leaf) || !x.EveryItemHas(leaf.Path) && !x.NamesEveryItem(leaf.Path) || !inOneOrder(x, leaf) ||
			x.isKeyPath(leaf.Path) {
			leaf = nil
		}
	}
	if leaf != nil && !x.InOrder(leaf.Path) {
		leaf = nil
	}
	return leaf, rest
}

// ownLeaf returns the entries of the keys of an order where items count at one of their entries; nil if a condition on
// the keys would have the walk begin far from its first row.
func (x *chooser) ownLeaf() *access.Pred {
	leaf := access.Exists(x.r.OrderBy[0])
	if x.r.Limit == 0 || x.r.From.At != AtStart || slices.ContainsFunc(x.cs, x.ofKey) || !x.usable(leaf) ||
		!x.OwnInOrder(leaf.Path, x.r.Beside) {
		return nil
	}
	return leaf
}

// between is how many entries of a slot there are for one of the logical partition.
func (x *chooser) between() float64 {
	return max(1, float64(x.SlotItems())/float64(max(1, x.PartitionItems())))
}

// passedMost is how many entries of other logical partitions a walk passes over, before the partition is read and
// sorted instead: as many as that costs. A row that the filter refuses counts as PassedRow of them. So at the worst the
// walk doubles the cost.
//
// Example: the device's last reading is a year old, and 500,000 of others are later. After 49,500 of them its 30,000
// items are read.
func (x *chooser) passedMost() int { return int(float64(x.PartitionItems()) * costScanned) }

// rangeInside returns the scan of the entries of a range, a prefix, a long list or a disjunction, for a query inside
// one logical partition. Entries of the slot's other partitions are passed over, so the slot must have few of the
// range. A range of ids needs no index: the items are stored in their order.
//
// Example: a device's readings of one hour are 20 of its 30,000, and the slot has 43 of that hour. The scan walks 43
// entries and fetches 20 items. If the slot had 5,000 of that hour, the 30,000 items would be read.
func (x *chooser) rangeInside() (access.Plan, bool) {
	if !x.IndexReady() || x.r.From.At == AtItem || x.PartitionItems() <= smallPartition {
		return access.Plan{}, false
	}
	p, n := x.leastInside(x.cs)
	named := float64(n) / x.between()
	cost, scan := float64(n)*costEntry+named*costFetch, float64(x.PartitionItems())*costScanned
	if x.page() > 0 && x.idOrder(&access.Plan{Kind: access.Scan}) {
		scan *= min(1, x.page()/max(1, named)) // it ends when it has found enough
	}
	return p, p.Kind == access.Index && cost < scan
}

// leastInside returns the index scan of the condition that has the fewest entries in the slot, and their number.
// Equalities have plans of their own. It returns no plan if every condition has more than a partOfPartition-th of the
// logical partition's items.
func (x *chooser) leastInside(cs []*access.Pred) (p access.Plan, least int) {
	least = int(x.PartitionItems() / partOfPartition)
	take := func(q access.Plan, n int) {
		if n < least {
			p, least = q, n
		}
	}
	leaves, unions := x.candidates(cs)
	for _, l := range leaves {
		if l.Comp == nil && l.Op != access.OpSpatial && (l.Op != access.OpIn || len(l.Vals) > fewValues) &&
			!x.isKeyPath(l.Path) && !isID(l.Path.Segs) {
			take(access.Plan{Kind: access.Index, Leaf: l, Why: access.RangeInside}, x.inSlot(l, least))
		}
	}
	for _, u := range unions {
		n := 0
		for i := 0; i < len(u) && n < least; i++ {
			n += x.inSlot(u[i], least-n)
		}
		take(access.Plan{Kind: access.Index, Union: u, Why: access.RangeInside}, n)
	}
	return p, least
}

// inSlot is CountInSlot that keeps what it has counted.
func (x *chooser) inSlot(leaf *access.Pred, limit int) int {
	for _, c := range x.inSlots {
		if c.leaf == leaf && (c.n < c.limit || limit <= c.limit) {
			return min(c.n, limit)
		}
	}
	n := x.CountInSlot(leaf, limit)
	x.inSlots = append(x.inSlots, slotCount{leaf, n, limit})
	return n
}

// slotCount is the number of a leaf's entries in the slot. They were counted up to a limit.
type slotCount struct {
	leaf     *access.Pred
	n, limit int
}
