package feed

import (
	"bytes"

	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// Scope is the part of a container's feed that a reader wants. The zero Scope is all of it.
type Scope struct {
	PK    store.PartitionKey // of one logical partition, or the first values of a hierarchical key; nil = any
	Range epk.Range          // of effective partition keys; the zero Range is all
	Since int64              // items last written before this second are left out
}

// part is the part of a scope in one physical partition.
type part struct {
	slots []piece // in the order of their placements
	mark  int64   // with a shared engine: the LSN of its slot in the view
}

// piece is the part of a scope in one slot.
type piece struct {
	slot   *store.Slot
	lo, hi []byte     // suffixes of items in the scope, in [lo, hi); nil = from the slot's first, to its last
	tuple  []byte     // prefix of the items' tuples
	text   *epk.Range // range of the key's text, where placements alone don't decide
	seen   int64      // the reader's position
	from   []byte     // where it begins, if that is inside of the slot because of the position: see cut
}

// whole reports whether all items of the slot are in the scope.
func (p *piece) whole() bool { return p.lo == nil && p.hi == nil }

// parts returns the part of a scope in each physical partition of a version of the slot map, in order.
func (sc *Scope) parts(c *store.Container, slots *store.Slots) ([]part, error) {
	var all piece // the bounds of all slots
	if sc.Range != (epk.Range{}) {
		lo, hi, exact, err := c.Places(sc.Range)
		if err != nil {
			return nil, err
		}
		if all.lo, all.hi = lo, hi; !exact {
			all.text = &sc.Range
		}
		if sc.Range.IsEmpty() || epk.CompareText(sc.Range.Min, epk.MaxText) >= 0 {
			return nil, nil
		}
	}
	if sc.PK != nil {
		if err := all.under(c, sc.PK); err != nil {
			return nil, err
		}
	}
	var out []part
	for i := range slots.Map().Partitions {
		var at part
		for _, sl := range slots.In(i) {
			if p, ok := all.in(sl); ok {
				at.slots = append(at.slots, p)
			}
		}
		if len(at.slots) > 0 {
			out = append(out, at)
		}
	}
	return out, nil
}

// under narrows the bounds to a partition key, or to the first values of one.
func (p *piece) under(c *store.Container, pk store.PartitionKey) error {
	if n := len(c.Def().KeyPaths()); len(pk) > n {
		return status.WithSub(status.BadRequest, status.SubPartitionKeyMismatch,
			"The partition key has %d components, the container's definition has %d.", len(pk), n)
	}
	place, tuple, full, err := c.Place(pk)
	if err != nil {
		return err
	}
	lo := place
	if full {
		lo = append(place[:len(place):len(place)], tuple...)
	}
	hi := keys.After(lo)
	p.tuple = tuple
	if bytes.Compare(p.lo, lo) < 0 {
		p.lo = lo
	}
	if p.hi == nil || bytes.Compare(hi, p.hi) < 0 {
		p.hi = hi
	}
	return nil
}

// in returns the piece of a slot within the bounds; false when it is empty.
func (p *piece) in(sl *store.Slot) (piece, bool) {
	at := *p
	at.slot = sl
	min, max := sl.Min(), sl.Max()
	if at.hi != nil && (bytes.Compare(min, at.hi) >= 0 || bytes.Compare(at.lo, at.hi) >= 0) ||
		max != nil && bytes.Compare(max, at.lo) <= 0 {
		return at, false
	}
	if bytes.Compare(at.lo, min) <= 0 {
		at.lo = nil
	}
	if max != nil && at.hi != nil && bytes.Compare(at.hi, max) >= 0 {
		at.hi = nil
	}
	return at, true
}

// holds reports whether the item with this suffix (placement, tuple, id) is in the scope.
func (p *piece) holds(c *store.Container, suffix []byte) bool {
	if p.whole() && p.tuple == nil && p.text == nil {
		return true
	}
	if bytes.Compare(suffix, p.lo) < 0 || p.hi != nil && bytes.Compare(suffix, p.hi) >= 0 {
		return false
	}
	ident := suffix[c.PlaceLen():]
	if !bytes.HasPrefix(ident, p.tuple) {
		return false
	}
	if p.text == nil {
		return true
	}
	pk, err := c.DecodeKey(ident)
	return err == nil && p.text.Contains(epk.Text(epk.V1, pk))
}

// bounds returns the key range of the items that the piece may hold.
func (p *piece) bounds(key keys.Slot) (lo, hi []byte) {
	lo, hi = keys.KindBounds(key, keys.KindItem)
	prefix := keys.AppendPrefix(nil, key, keys.KindItem)
	if p.lo != nil {
		lo = append(prefix[:len(prefix):len(prefix)], p.lo...)
	}
	if p.hi != nil {
		hi = append(prefix[:len(prefix):len(prefix)], p.hi...)
	}
	return lo, hi
}
