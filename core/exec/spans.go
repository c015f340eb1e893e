package exec

import (
	"bytes"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/few"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// span is a part of one slot: the items with a suffix in [lo, hi). Nil bounds are those of the slot.
type span struct {
	slot   *store.ViewSlot
	lo, hi []byte
	tuple  []byte  // with a whole or partial partition key: the prefix of the items' tuples
	full   bool    // tuple is a whole partition key
	base   []byte  // with full: placement and tuple, the prefix of all suffixes
	unit   *places // what is walked together with the span: see units.go; nil = the slot
}

// whole reports whether the span is the whole slot.
func (s *span) whole() bool { return s.lo == nil && s.hi == nil && s.tuple == nil }

// contains reports whether an identity with this placement lies in the span.
func (s *span) contains(place, ident []byte) bool {
	if s.tuple != nil && !bytes.HasPrefix(ident, s.tuple) {
		return false
	}
	if s.full {
		return true
	}
	return bytes.Compare(place, s.lo) >= 0 && (s.hi == nil || bytes.Compare(place, s.hi) < 0)
}

// places is a range of placements. A nil hi is open.
type places struct{ lo, hi []byte }

// restrict computes the spans that satisfy the partition key and the ranges, in order and without overlap.
func (b *builder) restrict() error {
	c := b.view.Container()
	ranges, err := b.ranges()
	if err != nil {
		return err
	}
	if b.key = b.q.PK; b.key == nil {
		var named [][]value.Value
		if !b.layout.ByID || len(b.view.Slots()) > 1 { // of use to one of the two below
			named = plan.KeysNamed(b, b.q.Pred, mostNamed)
		}
		if one, err := b.oneNamed(named, ranges); one || err != nil {
			return err
		}
		if ranges == nil {
			slots := b.view.Slots()
			b.spans = make([]span, len(slots))
			for i := range b.spans {
				b.spans[i].slot = &slots[i]
			}
			b.keepNamed(named)
			return nil
		}
		for _, r := range ranges {
			b.cover(r, nil)
		}
		return nil
	}
	if n := len(c.Def().KeyPaths()); len(b.q.PK) > n {
		return status.WithSub(status.BadRequest, status.SubPartitionKeyMismatch,
			"The partition key has %d components, the container's definition has %d.", len(b.q.PK), n)
	}
	slot, place, tuple, full, err := b.view.Locate(b.q.PK)
	if err != nil {
		return err
	}
	if full {
		b.onlyKey(ranges, slot, place, tuple)
		return nil
	}
	prefix := places{lo: place}
	if len(place) > 0 {
		prefix.hi = keys.After(place)
	}
	if ranges == nil {
		ranges = []places{{}}
	}
	for _, r := range ranges {
		if bytes.Compare(r.lo, prefix.lo) < 0 {
			r.lo = prefix.lo
		}
		if r.hi == nil || prefix.hi != nil && bytes.Compare(prefix.hi, r.hi) < 0 {
			r.hi = prefix.hi
		}
		b.cover(r, tuple)
	}
	return nil
}

// onlyKey makes the span of one logical partition, none if it isn't in the ranges.
func (b *builder) onlyKey(ranges []places, slot *store.ViewSlot, place, tuple []byte) {
	if ranges == nil || slices.ContainsFunc(ranges, func(r places) bool {
		return bytes.Compare(r.lo, place) <= 0 && (r.hi == nil || bytes.Compare(place, r.hi) < 0)
	}) {
		b.spans = []span{spanOfKey(slot, place, tuple)}
	}
}

// oneNamed makes the span of the logical partition that the filter names, and reports whether it names exactly one.
// Then the query is as if the request had named its key. Where the key is the id, a named key is an item.
//
// Example: WHERE c.device = "d" AND c.at > 5, with the partition key /device.
func (b *builder) oneNamed(ks [][]value.Value, ranges []places) (bool, error) {
	if b.layout.ByID || len(ks) != 1 || len(ks[0]) != len(b.view.Container().Def().KeyPaths()) {
		return false, nil
	}
	slot, place, tuple, full, err := b.view.Locate(ks[0])
	if err != nil || !full {
		return false, err
	}
	b.key = ks[0]
	b.onlyKey(ranges, slot, place, tuple)
	return true, nil
}

// bounds returns bounds of the placements of all rows that a query can give, by the definition of the container alone;
// a nil hi is open. restrict, which knows what is stored, finds narrower ones.
func (q *Query) bounds(c *store.Container) (lo, hi []byte) {
	if q.PK != nil {
		return c.Within(q.PK)
	}
	if ks := plan.KeysNamed(unseen{paths: c.Def().KeyPaths()}, q.Pred, 1); len(ks) == 1 {
		return c.Within(ks[0])
	}
	texts := joined(q.Ranges)
	if len(texts) == 0 {
		return nil, nil
	}
	first, _, _, err := c.Places(texts[0])
	if err != nil {
		return nil, nil
	}
	_, last, _, err := c.Places(texts[len(texts)-1])
	if err != nil {
		return nil, nil
	}
	return first, last
}

// unseen are the plan.Stats of a container of which only the definition is known.
type unseen struct {
	plan.Stats
	paths [][]string
}

func (u unseen) KeyPaths() [][]string   { return u.paths }
func (u unseen) KeysMayBeForeign() bool { return true }
func (u unseen) IndexReady() bool       { return false }

// mostNamed is the largest number of partition keys whose slots are looked up.
const mostNamed = 64

// keepNamed cuts the spans, which are all slots, to those of the partition keys that the filter names. The others hold
// no row, and a query is charged for each physical partition in which it begins.
//
// Example: WHERE c.tenant = "a" AND c.n > 5 reads one of 16 slots, as it does if the request names the partition key.
func (b *builder) keepNamed(ks [][]value.Value) {
	if len(b.spans) == 1 {
		return
	}
	keep := make([]bool, len(b.spans))
	for _, k := range ks {
		slot, place, _, full, err := b.view.Locate(k)
		switch {
		case err != nil:
			return
		case full:
			keep[slot.Number()] = true
		default:
			for i := slot.Number(); i < len(keep) && (i == slot.Number() || b.begins(i, place)); i++ {
				keep[i] = true
			}
		}
	}
	if len(ks) > 0 {
		n := 0
		b.spans = slices.DeleteFunc(b.spans, func(span) bool { n++; return !keep[n-1] })
	}
}

// begins reports whether slot i begins inside a prefix of placements.
func (b *builder) begins(i int, prefix []byte) bool {
	return bytes.HasPrefix(b.view.Slots()[i].Min(), prefix)
}

// spanOfKey returns the span of a logical partition.
func spanOfKey(slot *store.ViewSlot, place, tuple []byte) span {
	lo := append(append(make([]byte, 0, len(place)+len(tuple)), place...), tuple...)
	return span{slot: slot, lo: lo, hi: keys.After(lo), tuple: tuple, full: true, base: lo}
}

// ranges returns the query's ranges as placements, in order. Ranges that overlap or touch are joined. It returns nil
// when the query has none.
//
// The text of a V1 key is longer than its hash. If a boundary is longer too, the placements include the whole hash, and
// b.texts tells which keys with that hash are in the range.
func (b *builder) ranges() ([]places, error) {
	if b.q.Ranges == nil {
		return nil, nil
	}
	texts := joined(b.q.Ranges)
	out := make([]places, 0, len(texts))
	for _, t := range texts {
		lo, hi, exact, err := b.view.Container().Places(t)
		if err != nil {
			return nil, err
		}
		if !exact {
			b.texts = texts
		}
		r := places{lo, hi}
		if n := len(out); n > 0 && out[n-1].hi != nil && bytes.Compare(r.lo, out[n-1].hi) < 0 {
			out[n-1].hi = r.hi // two parts of the range of one V1 hash
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

// joined returns the ranges in order. Ranges that overlap or touch are joined, and empty ones are left out.
func joined(rs []epk.Range) []epk.Range {
	in := make([]epk.Range, 0, len(rs))
	for _, r := range rs {
		r.Min, r.Max = strings.ToUpper(r.Min), strings.ToUpper(r.Max)
		if !r.IsEmpty() && epk.CompareText(r.Min, epk.MaxText) < 0 {
			in = append(in, r)
		}
	}
	few.Sort(in, func(a, b epk.Range) int { return epk.CompareText(a.Min, b.Min) })
	out := in[:0]
	for _, r := range in {
		if n := len(out); n > 0 && epk.CompareText(r.Min, out[n-1].Max) <= 0 {
			if epk.CompareText(out[n-1].Max, r.Max) < 0 {
				out[n-1].Max = r.Max
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

// cover adds the spans of a range of placements.
func (b *builder) cover(r places, tuple []byte) {
	if r.hi != nil && bytes.Compare(r.lo, r.hi) >= 0 {
		return
	}
	slots := b.view.Slots()
	for i := range slots {
		s := span{slot: &slots[i], tuple: tuple}
		min, max := s.slot.Min(), s.slot.Max()
		if r.hi != nil && bytes.Compare(min, r.hi) >= 0 || max != nil && bytes.Compare(max, r.lo) <= 0 {
			continue
		}
		if bytes.Compare(r.lo, min) > 0 {
			s.lo = r.lo
		}
		if r.hi != nil && (max == nil || bytes.Compare(r.hi, max) < 0) {
			s.hi = r.hi
		}
		b.spans = append(b.spans, s)
	}
}

// inTexts reports whether a partition key lies in the query's ranges, where placements alone don't decide it (V1).
func (b *builder) inTexts(ident []byte) bool {
	if b.texts == nil {
		return true
	}
	pk, err := b.view.Container().DecodeKey(ident)
	if err != nil {
		return false
	}
	text := epk.Text(epk.V1, pk)
	return slices.ContainsFunc(b.texts, func(r epk.Range) bool { return r.Contains(text) })
}

// slotOf returns the spans of the query that lie in the slot and unit of spans[i], and the index of the next span.
func (b *builder) slotOf(i int) (sps []span, next int) {
	for next = i + 1; next < len(b.spans) && b.spans[next].slot == b.spans[i].slot &&
		b.spans[next].unit == b.spans[i].unit; next++ {
	}
	return b.spans[i:next], next
}
