package plan

import (
	"github.com/orrerydb/orrery/core/plan/access"
)

const (
	// smallPartition is how many items of a logical partition are read rather than looked up one by one.
	smallPartition = 48
	// fewValues is how many values an equality may have inside one logical partition.
	fewValues = 16
	// An index whose entries of other logical partitions are passed over is worth it where it has less than a sixth of
	// the partition's items, and not more entries than are counted.
	partOfPartition = 6
	maxPassed       = 2048
)

// inPartition picks the leaf for a query inside one logical partition: an equality on something else than the partition
// key (which every item there satisfies), or a tuple path whose members are all demanded. Of several the one with the
// fewest entries there, or an intersection; one alone isn't counted. Numbers begin with the partition's place, so no
// entries of others are read.
//
// Example: of 5,000 orders of a customer state = "open" names 40 and city = "Bern" 900. It walks 40 entries.
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
	scan := access.Plan{Kind: access.Scan, Why: "items of one logical partition"}
	switch {
	case len(eqs) == 1:
		x.lose(access.Plan{Kind: access.Scan})
		return access.Plan{Kind: access.Index, Leaf: eqs[0], Why: "an equality inside one logical partition"}
	case len(eqs) > 1 && x.PartitionItems() <= smallPartition:
		return scan
	case len(eqs) > 1:
		x.lose(access.Plan{Kind: access.Scan})
		x.compare(eqs)
		best := access.Plan{Kind: access.Index, Leaf: eqs[0],
			Why: "the most selective equality inside one logical partition"}
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
			return access.Plan{Kind: access.Index, Leaf: c, Why: "few places inside one logical partition"}
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

// insidePartition adjusts a plan to one logical partition: the index when it has an equality and the partition is
// large, else the partition's items in their order.
//
// Example: 30 items are read at once, whatever the filter: that is one seek, where an index has a seek for its entries
// and one for each item.
func (x *chooser) insidePartition(p access.Plan) access.Plan {
	if p.Kind == access.Nothing {
		return p
	}
	if x.coveredInside(&p) || x.r.From.At != AtItem && x.worthInside(&p) {
		return p
	}
	if p.Kind != access.Scan {
		x.lose(p)
	}
	return access.Plan{Kind: access.Scan, Why: "items of one logical partition"}
}

// worthInside reports whether an index is better than reading a logical partition.
//
// Example: a composite index on (city, total) has the 2,000 entries of all customers in one city; of this customer's
// 900 items few can be among them. To pass over 2,000 entries costs more than to read the 900.
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

// passed is how many entries of a slot may be passed over for a logical partition.
func (x *chooser) passed() int { return int(min(maxPassed, x.PartitionItems()/partOfPartition)) }

// coveredInside reports whether the walk of a covered plan's entries suits one logical partition: of an equality it
// reads no others; else the partition must be a good part of its slot, whose entries it passes over.
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
