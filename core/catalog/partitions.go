package catalog

import (
	"bytes"
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/epk"
)

// A physical partition is split at the beginning of one of its slots, and adjacent partitions are merged, without
// moving data: only the map changes. Ids of partitions are never reused. A new partition has all ids from which it
// comes as its parents, and the greatest LSN of those as its base, so that the LSNs that clients see never fall.
//
// Example: partition 3 has the parents [0], and the slots 20, 30 and 40. A split at 40 makes partitions 4 (slots 20 and
// 30) and 5 (slot 40), both with the parents [0, 3]. A merge of 4 and 5 makes partition 6 with the parents [0, 3, 4,
// 5].

// SplitPartition returns the map in which two partitions have replaced partition p. The second one begins at slot
// first, which must be a slot of p but not its first one. base is the LSN of p.
func (m *SlotMap) SplitPartition(p, first int, base int64) *SlotMap {
	old := m.Partitions[p]
	parents := append(slices.Clone(old.Parents), old.ID)
	next := m.next()
	front := PartitionDef{ID: m.NextPartition, First: old.First, Parents: parents, BaseLSN: max(old.BaseLSN, base)}
	back := front
	back.ID, back.First = front.ID+1, first
	next.NextPartition += 2
	next.Partitions = slices.Replace(slices.Clone(m.Partitions), p, p+1, front, back)
	return next
}

// MergePartitions returns the map in which one partition has replaced partitions p and p+1. base is the greater one of
// their LSNs.
func (m *SlotMap) MergePartitions(p int, base int64) *SlotMap {
	a, b := m.Partitions[p], m.Partitions[p+1]
	parents := slices.Concat(a.Parents, b.Parents, []int{a.ID, b.ID})
	slices.Sort(parents) // ids go up, so the oldest one is the first
	next := m.next()
	both := PartitionDef{ID: m.NextPartition, First: a.First, Parents: slices.Compact(parents),
		BaseLSN: max(a.BaseLSN, b.BaseLSN, base)}
	next.NextPartition++
	next.Partitions = slices.Replace(slices.Clone(m.Partitions), p, p+2, both)
	return next
}

// Full reports whether the map has as many partitions as a container may have.
func (m *SlotMap) Full() bool { return len(m.Partitions) >= maxPartitions }

// PartitionByID returns the number of the partition with an id, -1 when there is none.
func (m *SlotMap) PartitionByID(id int) int {
	return slices.IndexFunc(m.Partitions, func(p PartitionDef) bool { return p.ID == id })
}

// SlotAt returns the number of the slot that begins at a placement. ok is false when none does.
func (m *SlotMap) SlotAt(place []byte) (i int, ok bool) {
	i = m.Slot(place)
	return i, bytes.Equal(m.Slots[i].Min, place)
}

// Middle returns the place in a partition at which a split gives its halves about the same number of hashes: the slot
// boundary that is nearest to the middle, or for a partition of one slot the middle itself. ok is false when there is
// only one hash.
func (m *SlotMap) Middle(kind epk.Kind, p int) (at []byte, ok bool) {
	from, to := m.Run(p)
	min, max := m.Bounds(from, to)
	if to-from == 1 {
		half := epk.Shares(kind, min, max, 2)
		if len(half) == 0 {
			return nil, false
		}
		return half[0], true
	}
	lo, hi := fractions(kind, min, max)
	best := from + 1
	off := func(i int) float64 {
		return math.Abs(epk.Fraction(kind, m.Slots[i].Min) - (lo+hi)/2)
	}
	for i := from + 2; i < to; i++ {
		if off(i) < off(best) {
			best = i
		}
	}
	return m.Slots[best].Min, true
}

// Widest returns the number of the partition with the most hashes; the first one of several.
func (m *SlotMap) Widest(kind epk.Kind) (widest int) {
	most := -1.
	for p := range m.Partitions {
		min, max := m.Bounds(m.Run(p))
		lo, hi := fractions(kind, min, max)
		if hi-lo > most+rounding {
			widest, most = p, hi-lo
		}
	}
	return widest
}

// rounding is far more than the difference between partitions that are meant to be equal, and far less than between
// others.
const rounding = 1e-9

// fractions returns the parts of the space below the ends of a range; a nil max is open.
func fractions(kind epk.Kind, min, max []byte) (lo, hi float64) {
	if lo, hi = epk.Fraction(kind, min), 1; max != nil {
		hi = epk.Fraction(kind, max)
	}
	return lo, hi
}
