package plan

import "github.com/orrerydb/orrery/core/plan/access"

// All costs are in one unit: the time to walk one index entry. The costs of one item are:
const (
	costEntry   = 1    // an entry that is walked
	costFetch   = 10   // an item that is fetched in the order of numbers, slot by slot
	costNamed   = 16   // an item that is fetched by its name, from any slot
	costScanned = 1.65 // an item that a scan reads
	// costPassed is the cost of a row that a walk in key order reads and skips. It includes the row's part of the seek
	// to its logical partition.
	costPassed = 8
	// costGathered is the cost of an entry whose name is gathered and ordered with others.
	costGathered = 4
)

// scanShare is a share of the items. Above it, fetching the items one by one through the index costs more than a scan.
const scanShare = costScanned / (costEntry + costFetch)

// Limits on how many entries of one slot are counted for a condition.
const (
	firstCount = 64
	lastCount  = 1 << 30 // no limit of its own: Stats ends the count
	// worthCounting bounds the counts of the other conditions, as a multiple of the entries of the least one. An
	// intersection can pay off up to a factor of eight. But where it saves less than half, the count costs as much as
	// it saves.
	worthCounting = 3
)

// counted is a leaf and the share of the items that it names.
type counted struct {
	leaf    *access.Pred
	share   float64
	entries int // the limit of the count
}

// share returns the share of the items that a leaf names. The result of a count is kept. The result 1 may mean that the
// slot has more than entries such entries.
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

// compare counts several conditions in rounds: first a few entries of each, then more, until the least is known. The
// others are counted only as far as their count can change the choice. So counting is a small part of what the query
// reads afterwards.
//
// Example: in a slot of 25,000 items, 60 satisfy n = 1 and 9,000 satisfy m > 1. In the first round 64 entries of each
// are counted, so n is known to have 60. Then m is counted up to 180, the most that can matter. That makes 304
// entries. A full count of m would read 2,048.
func (x *chooser) compare(leaves []*access.Pred) {
	switch len(leaves) {
	case 0:
		return
	case 1:
		x.share(leaves[0], x.enough())
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

// entriesOf converts a share of the items into a number of entries in a slot, plus one.
func (x *chooser) entriesOf(share float64) int {
	return max(firstCount, int(min(lastCount-1, share*float64(x.slotSize())))+1)
}

// slotSize is the approximate number of items in a slot, or in the logical partition if only one is read.
func (x *chooser) slotSize() int64 {
	if x.r.HasPK {
		return x.PartitionItems()
	}
	return x.Size() / int64(max(1, x.Slots()))
}
