package exec

import (
	"slices"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// The builder is the plan.Stats of its query. It keeps an error of the store in b.err, and answers with the value that
// does the least harm if it is wrong.

// Policy implements plan.Stats.
func (b *builder) Policy() *index.Policy { return b.view.Policy() }

// IndexReady implements plan.Stats.
func (b *builder) IndexReady() bool { return b.view.Indexed() }

// KeyPaths implements plan.Stats.
func (b *builder) KeyPaths() [][]string { return b.view.Container().Def().KeyPaths() }

// Items implements plan.Stats.
func (b *builder) Items() int64 { return b.view.Items() }

// Slots implements plan.Stats.
func (b *builder) Slots() int { return len(b.spans) }

// Size implements plan.Stats.
func (b *builder) Size() int64 { return b.sizeOf(b.spans) }

// Classes implements plan.Stats.
func (b *builder) Classes() (classes uint32) {
	for i := range b.spans {
		classes |= b.spans[i].slot.Classes()
	}
	return classes
}

// MayHoldForeign implements plan.Stats.
func (b *builder) MayHoldForeign() bool { return !b.view.Indexed() || b.KeysMayBeForeign() }

// KeysMayBeForeign implements plan.Stats.
func (b *builder) KeysMayBeForeign() bool { return b.anyClass(access.ForeignKinds) }

// MayHoldGraphForm implements plan.Stats.
func (b *builder) MayHoldGraphForm() bool { return b.anyClass(index.GraphForm) }

// anyClass reports whether a slot of the container has ever held one of these classes.
func (b *builder) anyClass(bits uint32) bool {
	slots := b.view.Slots()
	for i := range slots {
		if slots[i].Classes()&bits != 0 {
			return true
		}
	}
	return false
}

// MayHoldInColumn implements plan.Stats.
func (b *builder) MayHoldInColumn(id uint64) bool {
	if !b.view.Indexed() {
		return true
	}
	slots := b.view.Slots()
	for i := range slots {
		if slots[i].HasInColumn(id) {
			return true
		}
	}
	return false
}

// Coverable implements plan.Stats.
func (b *builder) Coverable() bool { return !b.view.HasTTL() }

// PartitionItems implements plan.Stats.
func (b *builder) PartitionItems() int64 {
	n, err := b.inKey()
	b.failed(err)
	return n
}

// SlotItems implements plan.Stats.
func (b *builder) SlotItems() int64 { return b.spans[0].slot.Items() }

// LargestStretch implements plan.Stats.
func (b *builder) LargestStretch() (most int64) {
	b.stretches = b.groups(b.q.Shown, b.from)
	for i := range b.stretches {
		most = max(most, b.stretches[i].size)
	}
	return most
}

// TellsCount implements plan.Stats.
func (b *builder) TellsCount(p access.Path) bool {
	b.tallies = make([]count, len(b.view.Slots()))
	for i := range b.spans {
		slot := b.spans[i].slot
		c, ok, err := b.countOf(slot, p)
		if b.failed(err); err != nil || !ok {
			return false
		}
		b.tallies[slot.Number()] = c
	}
	return true
}

// InOneClass implements plan.Stats.
func (b *builder) InOneClass(p access.Path) bool { return b.InOrder(p) && b.inClass(p, 0) }

// OnlyTexts implements plan.Stats.
func (b *builder) OnlyTexts(p access.Path) bool {
	return b.InOrder(p) && b.Classes()&(1<<(value.ClassUndefined>>3)) == 0 && b.inClass(p, value.ClassString)
}

// inClass reports whether all entries at a path are of one class, of the given one where that isn't 0.
func (b *builder) inClass(p access.Path, class byte) bool {
	id := b.Policy().PathID(p.Segs)
	for i := range b.spans {
		if !b.oneClass(b.spans[i].slot, id, &class) {
			return false
		}
	}
	return true
}

// CountPlaces implements plan.Stats.
func (b *builder) CountPlaces(leaf *access.Pred, limit int) (n int) {
	for i := 0; i < len(b.spans) && n < limit; {
		n += b.countPlaces(b.spans[i].slot, leaf, limit-n)
		_, i = b.slotOf(i)
	}
	return n
}

// CountInSlot implements plan.Stats.
func (b *builder) CountInSlot(leaf *access.Pred, limit int) int {
	ivs, _, _ := leaf.Intervals()
	return b.countEntries(b.spans[0].slot, leaf, ivs, limit)
}

// CountKeyed implements plan.Stats.
func (b *builder) CountKeyed(ks []access.Key, limit int64) (n int64) {
	for _, k := range ks {
		if k.ID.IsDefined() {
			n++
			continue
		}
		slot, place, tuple, _, err := b.view.Locate(store.PartitionKey(k.PK))
		if err != nil {
			return limit + 1
		}
		in, err := b.view.LogicalItems(slot, place, tuple)
		b.failed(err)
		if n += in; err != nil || n > limit {
			return limit + 1
		}
	}
	return n
}

// CountNamed implements plan.Stats. It reads the names of each stretch in turn.
func (b *builder) CountNamed(a *access.Plan, entries int) bool {
	for i := range b.stretches {
		g, err := b.gather(&b.stretches[i], a, entries)
		if b.failed(err); err != nil {
			b.discard()
			return false
		}
		b.stretches[i].ready = g
		if entries -= len(g.list); entries < 0 {
			b.discard()
			return false
		}
	}
	return true
}

// CountTexts implements plan.Stats.
func (b *builder) CountTexts(a *access.Plan, entries int) bool {
	var err error
	b.names, err = b.sortNames(a, entries, b.nameAfter())
	b.failed(err)
	return b.names != nil
}

// Within implements plan.Stats. Afterwards the query reads only that part.
func (b *builder) Within(s plan.Scope) plan.Stats {
	switch {
	case s.Keys != nil:
		b.failed(b.slotsOf(s.Keys))
	case s.Key != nil:
		slot, place, tuple, _, err := b.view.Locate(store.PartitionKey(s.Key.PK))
		if b.failed(err); err != nil {
			break
		}
		in := b.inSpans(slot, place, tuple)
		if b.spans = nil; in {
			b.spans = []span{spanOfKey(slot, place, tuple)}
		}
	default:
		b.narrow(s.IDs)
	}
	return b
}

// slotsOf cuts the spans to the slots of the given partition keys.
func (b *builder) slotsOf(vals []value.Value) error {
	slots := make([]*store.ViewSlot, len(vals))
	for i, v := range vals {
		var err error
		if slots[i], _, _, _, err = b.view.Locate(store.PartitionKey{v}); err != nil {
			return err
		}
	}
	b.spans = slices.DeleteFunc(b.spans, func(s span) bool { return !slices.Contains(slots, s.slot) })
	return nil
}

// failed keeps the first error.
func (b *builder) failed(err error) {
	if b.err == nil {
		b.err = err
	}
}
