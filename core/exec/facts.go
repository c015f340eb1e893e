package exec

import (
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// A fact of a slot (store.Fact) tells whether the index entries at a path are in the order of the values and name every
// item. A slot counts a fact only after a query has asked for it. The sets in the slot's head cost nothing and are read
// first.

// need says what a query does when a slot doesn't know a fact.
type need uint8

const (
	ifKnown need = iota // continue without it
	forNext             // continue without it, and have it counted for later queries
	nowOr               // wait until it is counted: without it the query reads much more
)

// fact returns what a slot knows about the entries at a path. With nowOr the first answer may be no. Then the query is
// built again after the path has been counted, see Rows.open.
func (b *builder) fact(slot *store.ViewSlot, p access.Path, id uint64, n need) (f store.Fact, ok bool) {
	f, ok, err := b.view.Fact(slot, id)
	if ok || err != nil || n == ifKnown {
		return f, ok
	}
	if h, err := b.view.Head(slot); err != nil || h.Items == 0 {
		return store.Fact{}, err == nil
	}
	switch {
	case n == forNext:
		b.view.Container().Count(b.rows.ctx, p.Segs)
	case !slices.Contains(b.asked, id):
		b.asked, b.asks = append(b.asked, id), append(b.asks, p)
	}
	return f, false
}

// counts starts counting the paths that the builder has asked for and that can be counted now. The channels that it
// returns are closed when the counts end.
func (b *builder) counts() (all []<-chan struct{}) {
	if b.view.Held() { // a count would not be in the view
		return nil
	}
	for _, p := range b.asks {
		if done := b.view.Container().Count(b.rows.ctx, p.Segs); done != nil {
			all = append(all, done)
		}
	}
	return all
}

// several reports whether items may have several entries at a path in a slot.
func (b *builder) several(slot *store.ViewSlot, p access.Path, id uint64, n need) bool {
	if !slot.HasElements(id) {
		return false
	}
	f, ok := b.fact(slot, p, id, n)
	return !ok || f.Elements != 0
}

// several reports whether items may have several entries at the leaf's path. many says whether the leaf takes entries
// of array elements too.
func (l *leaf) several(b *builder, slot *store.ViewSlot) bool {
	return l.pred.Comp == nil && b.several(slot, l.pred.Path, l.path, ifKnown)
}

func (l *leaf) many(b *builder, slot *store.ViewSlot) bool {
	return l.pred.Path.Elements && l.several(b, slot)
}

// sorted reports whether the entries at a path in a slot are in the order of the values, one entry for each item. It
// holds inside each class of values.
func (b *builder) sorted(slot *store.ViewSlot, p access.Path, id uint64) bool {
	if !slot.HasLossy(id) && !slot.HasElements(id) {
		return true
	}
	f, ok := b.fact(slot, p, id, nowOr)
	return ok && f.Lossy == 0 && f.Elements == 0
}

// named reports whether the entries at a path in a slot name every item exactly once, by its value or by the absence of
// a value.
func (b *builder) named(slot *store.ViewSlot, p access.Path, id uint64, n need) bool {
	if isAlways(p) {
		return true
	}
	f, ok := b.fact(slot, p, id, n)
	return ok && f.Elements == 0 && (f.Missing == 0 || b.Policy().Exact(id))
}

// isAlways reports whether every item has one index entry for the value at a path: the identity and the time of the
// last write.
func isAlways(p access.Path) bool {
	return isID(p) || len(p.Segs) == 1 && p.Segs[0] == index.SystemTS
}

// MayHoldElements implements plan.Stats.
func (b *builder) MayHoldElements(p access.Path) bool {
	if !b.view.Indexed() {
		return true
	}
	id := b.Policy().PathID(p.Segs)
	slots := b.view.Slots()
	for i := range slots {
		if b.several(&slots[i], p, id, forNext) {
			return true
		}
	}
	return false
}

// InOrder implements plan.Stats.
func (b *builder) InOrder(p access.Path) bool {
	id := b.Policy().PathID(p.Segs)
	for i := range b.spans {
		if !b.sorted(b.spans[i].slot, p, id) {
			return false
		}
	}
	return true
}

// OwnInOrder implements plan.Stats. All entries at the path must be of one class whose order all languages share, and
// hold their whole values. NaN is the least number here, and the greatest one in some languages. Beside may have the
// entries of arrays whose elements have no entries there: those of vertex properties (index.GraphForm).
func (b *builder) OwnInOrder(p, beside access.Path) bool {
	id, other := b.Policy().PathID(p.Segs), b.Policy().PathID(beside.Segs)
	var class, arrays byte
	for i := range b.spans {
		slot := b.spans[i].slot
		if !b.uncut(slot, p, id) || !b.oneClass(slot, id, &class) {
			return false
		}
		if len(beside.Segs) > 0 && (slot.HasElements(other) || !b.oneClass(slot, other, &arrays)) {
			return false
		}
	}
	if isID(p) && class != value.ClassString { // languages may show other ids as texts
		return false
	}
	switch class {
	case value.ClassBool, value.ClassString, value.ClassDate, value.ClassUUID:
	case value.ClassNumber:
		if !b.noNaN(id) {
			return false
		}
	default:
		return false
	}
	return arrays == 0 || arrays == value.ClassArray
}

// uncut reports whether the entries at a path in a slot hold their whole values.
func (b *builder) uncut(slot *store.ViewSlot, p access.Path, id uint64) bool {
	if !slot.HasLossy(id) {
		return true
	}
	f, ok := b.fact(slot, p, id, nowOr)
	return ok && f.Lossy == 0
}

// noNaN reports whether no entry at a path is that of NaN.
func (b *builder) noNaN(id uint64) bool {
	nan, _ := keys.AppendIndex(nil, value.DoubleOf(math.NaN()))
	var it kv.Iterator
	found := false
	for i := 0; i < len(b.spans) && !found && b.err == nil; {
		lo := append(keys.AppendIndexPath(nil, b.spans[i].slot.Key(), id), nan...)
		if hi := keys.After(lo); it != nil {
			it.Reset(lo, hi)
		} else {
			var err error
			if it, err = b.iter(lo, hi); err != nil {
				b.failed(err)
				return false
			}
		}
		found = it.First()
		b.failed(it.Err())
		_, i = b.slotOf(i)
	}
	if it != nil {
		b.rest(it)
	}
	return !found && b.err == nil
}

// EveryItemHas implements plan.Stats.
func (b *builder) EveryItemHas(p access.Path) bool {
	id := b.Policy().PathID(p.Segs)
	var class byte
	for i := range b.spans {
		slot := b.spans[i].slot
		if !b.named(slot, p, id, nowOr) || !b.sorted(slot, p, id) || !b.oneClass(slot, id, &class) {
			return false
		}
	}
	return true
}

// NamesEveryItem implements plan.Stats. A page of a query without an order can begin with any items, so it doesn't wait
// for a count of all items.
func (b *builder) NamesEveryItem(p access.Path) bool {
	n := forNext
	if len(b.q.OrderBy) > 0 || b.q.Whole {
		n = nowOr
	}
	id := b.Policy().PathID(p.Segs)
	for i := range b.spans {
		if !b.named(b.spans[i].slot, p, id, n) {
			return false
		}
	}
	return true
}
