package exec

import (
	"bytes"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
)

// The share of a condition is counted over at most a sixth of a slot's items, between these bounds. That is enough to
// recognise a condition that isn't selective.
const minProbe, maxProbe = 128, 2048

// Values may be distributed over the slots unevenly, like the partition keys of their items. So if the first slot has
// few entries in a range, other slots are counted too. If a condition seems to select everything, one more slot is
// counted.
const (
	maxSampled = 4  // slots
	fewFound   = 32 // entries
)

// CountShare implements plan.Stats. It counts entries in some slots that have items. An equality is counted in one
// slot, unless that slot has much less than its part of the items. An equality names few items, or it is compared with
// others that are counted in one slot too.
func (b *builder) CountShare(p *access.Pred, most int) float64 {
	ivs, _, ok := p.Intervals()
	if !ok {
		return 1
	}
	if len(b.spans) == 1 && b.spans[0].full {
		items, err := b.inKey()
		if b.failed(err); err != nil || items == 0 {
			return 0
		}
		n, more := b.probe(b.spans[0].slot, p, ivs, items, most)
		if more {
			return 1
		}
		return float64(n) / float64(items)
	}
	slots, total := b.filled()
	point := p.Op == access.OpIn || p.Comp != nil && p.Comp.Range == nil
	var found, items int64
	step := max(1, len(slots)/maxSampled)
	for i := 0; i < len(slots) && i < maxSampled*step; i += step {
		s := slots[i]
		n, more := b.probe(s.slot, p, ivs, s.items, most)
		found, items = found+n, items+s.items
		switch {
		case more:
			return 1
		case i > 0 && found == items: // all items of two slots
			return 1
		case i > 0 || n == s.items || 2*s.items*int64(len(slots)) < total:
		case point || n >= fewFound:
			return float64(n) / float64(s.items)
		}
	}
	if items == 0 {
		return 0
	}
	return float64(found) / float64(items)
}

// CountRows implements plan.Stats. It counts in several slots that have items. What it reads is not charged.
func (b *builder) CountRows(p *access.Pred, entries int) (rows float64, more bool) {
	ivs, _, ok := p.Intervals()
	if !ok {
		return 0, true
	}
	s := &b.rows.stats
	before, counted, owes := s.Entries, s.Counted, s.owed
	defer func() {
		s.Explained += s.Counted - counted
		s.Entries, s.Counted, s.owed = before, counted, owes
	}()
	if len(b.spans) == 1 && b.spans[0].full {
		items, err := b.inKey()
		if b.failed(err); err != nil {
			return 0, false
		}
		n := int64(b.countEntries(b.spans[0].slot, p, ivs, entries))
		return float64(min(n, items)), n >= int64(entries)
	}
	slots, total := b.filled()
	var found, items int64
	step := max(1, len(slots)/maxSampled)
	for i := 0; i < len(slots) && i < maxSampled*step; i += step {
		n := int64(b.countEntries(slots[i].slot, p, ivs, entries))
		found, items, more = found+min(n, slots[i].items), items+slots[i].items, more || n >= int64(entries)
	}
	return float64(found) / float64(max(1, items)) * float64(total), more
}

// filledSlot is a slot that has items.
type filledSlot struct {
	slot  *store.ViewSlot
	items int64
}

// filled returns the slots of the query that have items, and their total number of items.
func (b *builder) filled() (slots []filledSlot, total int64) {
	slots = make([]filledSlot, 0, len(b.spans))
	for i := 0; i < len(b.spans); {
		slot := b.spans[i].slot
		if items := slot.Items(); items > 0 {
			slots, total = append(slots, filledSlot{slot, items}), total+items
		}
		_, i = b.slotOf(i)
	}
	return slots, total
}

// probe estimates how many of a slot's items a leaf names, by counting its entries. If the count reaches a sixth of the
// items (within minProbe and maxProbe), probe returns all items. more says that the count has stopped at most.
func (b *builder) probe(slot *store.ViewSlot, p *access.Pred, ivs []access.Interval, items int64, most int) (n int64,
	more bool) {
	limit := min(maxProbe, max(minProbe, items/6))
	n = int64(b.countEntries(slot, p, ivs, min(int(limit), most)))
	switch {
	case n >= limit:
		return items, false
	case n >= int64(most):
		return n, true
	}
	return min(n, items), false
}

// countEntries counts the entries of a leaf in a slot up to a limit. Inside one logical partition it counts only the
// partition's entries of an equality.
func (b *builder) countEntries(slot *store.ViewSlot, p *access.Pred, ivs []access.Interval, limit int) (n int) {
	if p.Op == access.OpSpatial {
		return b.countPlaces(slot, p, limit)
	}
	prefix := keys.AppendIndexPath(nil, slot.Key(), p.PathID(b.Policy()))
	for _, iv := range ivs {
		if p.Comp == nil && !iv.Touches(slot.Classes()) {
			continue
		}
		lo, hi := append(bytes.Clone(prefix), iv.Lo...), append(bytes.Clone(prefix), iv.Hi...)
		if s := &b.spans[0]; s.full && iv.One {
			lo = append(lo, b.view.Container().NumberPrefix(s.base[:len(s.base)-len(s.tuple)])...)
			hi = keys.After(lo)
		}
		it, err := b.iter(lo, hi)
		if b.failed(err); err != nil {
			break
		}
		for ok := it.First(); ok && n < limit; ok = it.Next() {
			n++
		}
		b.failed(it.Err())
		b.rest(it)
	}
	b.rows.stats.Entries += n
	b.rows.counted(n)
	return n
}
