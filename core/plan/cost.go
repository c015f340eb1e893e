package plan

import "github.com/orrerydb/orrery/core/plan/access"

// All costs are in one unit: the time that it takes to walk one index entry. What one item costs:
const (
	costEntry   = 1    // an entry that is walked
	costFetch   = 10   // an item that is fetched in the order of numbers, slot by slot
	costNamed   = 16   // an item that is fetched by name, from any slot
	costScanned = 1.65 // an item that a scan reads
	// costPassed is a row that a walk in key order passes over, with its part of the seek to its logical partition.
	costPassed = 8
)

// unknown is the cost of what was not counted.
const unknown = -1

// scanShare is the share of the items above which fetching them one by one through the index costs more than a scan.
const scanShare = costScanned / (costEntry + costFetch)

// How far conditions are counted, in entries of one slot.
const (
	firstCount = 64
	lastCount  = 1 << 30 // as far as Stats counts
	// worthCounting is how many times the entries of the least condition are counted of another one. An intersection
	// pays up to eight times as many, but where it saves less than half, to count for it costs as much.
	worthCounting = 3
)

// counted is a leaf with the share of the items that it names.
type counted struct {
	leaf    *access.Pred
	share   float64
	entries int // that were to be counted at most
}

// share returns the share of the items that a leaf names. It counts once; where it counts at most so many entries of a
// slot, 1 may mean that there are more.
func (x *chooser) share(leaf *access.Pred, entries int) float64 {
	for i := range x.counts {
		c := &x.counts[i]
		if c.leaf != leaf {
			continue
		}
		if c.share == 1 && c.entries < entries {
			c.share, c.entries = x.CountShare(leaf, entries), entries
		}
		return c.share
	}
	s := x.CountShare(leaf, entries)
	x.counts = append(x.counts, counted{leaf, s, entries})
	return s
}

// compare counts conditions side by side: a few entries of each, then more, until the least is known. The others are
// counted no further than matters. So counting is a small part of what the query then reads.
//
// Example: of 25,000 items in a slot n = 1 holds for 60, m > 1 for 9,000. 64 entries of each are counted: n has 60.
// Then m is counted up to 180, which is more than matters. 304 entries are counted, not 60 and 2,048.
func (x *chooser) compare(leaves []*access.Pred) {
	switch len(leaves) {
	case 0:
		return
	case 1:
		x.share(leaves[0], lastCount)
		return
	}
	slot := x.slotSize()
	for _, entries := range [...]int{firstCount, 8 * firstCount, lastCount} {
		least := 1.0
		for _, l := range leaves {
			least = min(least, x.share(l, entries))
		}
		if least == 1 && int64(entries) < slot {
			continue
		}
		for _, l := range leaves {
			if far := x.entriesOf(worthCounting * least); 2*entries < far {
				x.share(l, far)
			}
		}
		return
	}
}

// entriesOf is how many entries of a slot a share of the items is, and one more.
func (x *chooser) entriesOf(share float64) int {
	return max(firstCount, int(min(lastCount-1, share*float64(x.slotSize())))+1)
}

// slotSize is about how many items a slot holds, or the logical partition.
func (x *chooser) slotSize() int64 {
	if x.r.HasPK {
		return x.PartitionItems()
	}
	return x.Size() / int64(max(1, x.Slots()))
}

// known returns the share of the items that a leaf names, where it was counted. Where the count ended early it is the
// least that it can be.
func (x *chooser) known(leaf *access.Pred) (share float64, ok bool) {
	for i := range x.counts {
		if c := &x.counts[i]; c.leaf == leaf {
			if c.share == 1 && c.entries < lastCount {
				return min(1, float64(c.entries)/float64(max(1, x.slotSize()))), true
			}
			return c.share, true
		}
	}
	return 0, false
}

// size is about how many items the query is about; unknown where that would take a look-up that nobody asked for.
func (x *chooser) size() float64 {
	if x.one {
		if x.inKey == unasked {
			return unknown
		}
		return float64(x.inKey)
	}
	return float64(x.Size())
}

// estimate returns about how many rows an access path gives, and what it costs.
func (x *chooser) estimate(a *access.Plan) (rows, cost float64) {
	n := x.size()
	switch a.Kind {
	case access.Nothing:
		return 0, 0
	case access.Points:
		for i := range a.Keys {
			if !a.Keys[i].ID.IsDefined() {
				return unknown, unknown
			}
		}
		return float64(len(a.Keys)), float64(len(a.Keys)) * costNamed
	case access.Scan:
		if n == unknown {
			return unknown, unknown
		}
		return n, n * costScanned
	}
	share, walked, ok := x.shareOf(a)
	switch {
	case !ok || n == unknown:
		return unknown, unknown
	case a.Covered:
		return share * n, walked * n
	}
	return share * n, (walked + share*costFetch) * n
}

// shareOf returns the share of the items that an access path by index gives, and of entries that it walks; false where
// some were not counted.
func (x *chooser) shareOf(a *access.Plan) (share, walked float64, ok bool) {
	switch {
	case a.Leaf != nil && a.Leaf.Every():
		return 1, 1, true
	case a.Leaf != nil:
		share, ok = x.known(a.Leaf)
		return share, share, ok
	case a.Both != nil:
		share = 1
		for _, l := range a.Both {
			s, ok := x.known(l)
			if !ok {
				return 0, 0, false
			}
			share, walked = share*s, walked+s
		}
		return share, walked, true
	}
	for _, l := range a.Union {
		s, ok := x.known(l)
		if !ok {
			return 0, 0, false
		}
		walked += s
	}
	return min(1, walked), walked, true
}
