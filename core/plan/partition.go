package plan

import (
	"github.com/orrerydb/orrery/core/plan/access"
)

const (
	// smallPartition is a number of items. A logical partition with at most so many is read whole: that costs less than
	// to look items up one by one.
	smallPartition = 48
	// fewValues is the largest number of values of an equality that an index answers inside one logical partition.
	fewValues = 16
	// An index whose entries of other logical partitions are passed over is worth it where it has less than a sixth of
	// the partition's items, and not more entries than are counted.
	partOfPartition = 6
	maxPassed       = 2048
)

// inPartition picks the leaf for a query inside one logical partition: an equality on a path that isn't the partition
// key (every item there satisfies an equality on the key), or a tuple path whose members all have conditions. Of
// several it picks the leaf with the fewest entries there, or an intersection. A single leaf isn't counted. Numbers
// begin with the place of the partition key, so the scan reads no entries of other partitions.
//
// Example: of a customer's 5,000 orders state = "open" names 40 and city = "Bern" names 900. The scan walks 40 entries.
func (x *chooser) inPartition() access.Plan {
	var eqs []*access.Pred
	for _, c := range x.cs {
		if c.Op == access.OpIn && len(c.Vals) <= fewValues && x.usable(c) && !x.isKeyPath(c.Path) {
			eqs = append(eqs, c)
		}
	}
	for _, c := range x.tuples(x.cs) {
		if len(c.Comp.Front) == len(c.Comp.Index.Columns) {
			eqs = append(eqs, c)
		}
	}
	scan := access.Plan{Kind: access.Scan, Why: access.ItemsInside}
	switch {
	case len(eqs) == 1:
		x.lose(access.Plan{Kind: access.Scan})
		return access.Plan{Kind: access.Index, Leaf: eqs[0], Why: access.EqualityInside}
	case len(eqs) > 1 && x.PartitionItems() <= smallPartition:
		return scan
	case len(eqs) > 1:
		x.lose(access.Plan{Kind: access.Scan})
		x.compare(eqs)
		best := access.Plan{Kind: access.Index, Leaf: eqs[0],
			Why: access.BestEqualityInside}
		for _, l := range eqs[1:] {
			other := best
			other.Leaf = l
			if x.share(l, firstCount) < x.share(best.Leaf, firstCount) {
				best, other = other, best
			}
			x.lose(other)
		}
		if p, ok := x.intersection(eqs, x.PartitionItems()); ok && best.Leaf.Comp == nil {
			x.lose(best)
			return p
		}
		return best
	}
	for _, c := range x.cs {
		if c.Op == access.OpSpatial && x.usable(c) {
			return access.Plan{Kind: access.Index, Leaf: c, Why: access.PlacesInside}
		}
	}
	return scan
}

func (x *chooser) isKeyPath(p access.Path) bool {
	for _, segs := range x.KeyPaths() {
		if access.SamePath(access.Path{Segs: segs}, access.Path{Segs: p.Segs}) {
			return true
		}
	}
	return false
}

// insidePartition adjusts a plan to one logical partition. It keeps the index if there is an equality, or a range of
// which the slot has few entries, and the partition is large. Otherwise it reads the partition's items in their stored
// order.
//
// Example: a partition of 30 items is read whole, whatever the filter is. That takes one seek, where an index takes one
// for its entries and one for each item.
func (x *chooser) insidePartition(p access.Plan) access.Plan {
	if p.Kind == access.Nothing {
		return p
	}
	if q, ok := x.orderInside(&p); ok {
		x.lose(p)
		return q
	}
	if x.coveredInside(&p) || x.r.From.At != AtItem && x.worthInside(&p) {
		return p
	}
	if p.Kind != access.Scan {
		x.lose(p)
	}
	scan := access.Plan{Kind: access.Scan, Why: access.ItemsInside}
	if q, ok := x.rangeInside(); ok {
		x.lose(scan)
		return x.coverChosen(q)
	}
	return scan
}

// worthInside reports whether an index is better than reading the logical partition.
//
// Example: a composite index on (city, total) has 2,000 entries of all customers in one city. At most 900 items belong
// to this customer, so few of the entries can be the customer's. To skip 2,000 entries costs more than to read 900
// items.
func (x *chooser) worthInside(p *access.Plan) bool {
	large := func() bool { return x.PartitionItems() > smallPartition }
	switch {
	case p.Kind != access.Index && p.Kind != access.Ordered:
		return false
	case p.Leaf != nil && p.Leaf.Comp != nil:
		if !large() || p.Kind == access.Ordered {
			return large()
		}
		most := x.passed()
		return x.CountInSlot(p.Leaf, most) < most
	case p.Kind == access.Index && (p.Both != nil || p.Leaf != nil && p.Leaf.Op == access.OpIn):
		return large()
	case p.Kind == access.Index && p.Leaf != nil && p.Leaf.Op == access.OpSpatial:
		if !large() {
			return false
		}
		most := x.passed()
		return x.CountInSlot(p.Leaf, most) < most
	}
	return false
}

// passed is the largest number of entries in a slot that may be skipped for a logical partition.
func (x *chooser) passed() int { return int(min(maxPassed, x.PartitionItems()/partOfPartition)) }

// coveredInside reports whether a covered plan's walk of entries suits one logical partition. For an equality it reads
// no entries of other partitions. Otherwise the partition must be a large part of its slot, because the walk reads and
// skips the entries of the others.
//
// Example: n > 5 in a partition with 1,000 of its slot's 1,500 items walks the entries of all 1,500.
func (x *chooser) coveredInside(p *access.Plan) bool {
	if !p.Covered || p.Leaf.Comp != nil {
		return false
	}
	if p.Leaf.Op == access.OpIn && !(p.Leaf.Foreign && x.MayHoldForeign()) {
		return true
	}
	return 2*x.PartitionItems() >= x.SlotItems()
}
