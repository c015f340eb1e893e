package exec

import (
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// A logical partition is stored in the order of its ids. So a scan of one partition needs no sort when that order is
// wanted, and a range of ids is a range of keys.

// IDsInOneClass implements plan.Stats. Languages order ids of different kinds differently, so the first and the last id
// must be of one class.
func (b *builder) IDsInOneClass() bool {
	s := &b.spans[0]
	prefix := keys.AppendPrefix(nil, s.slot.Key(), keys.KindItem)
	it, err := b.iter(append(prefix[:len(prefix):len(prefix)], s.lo...),
		append(prefix[:len(prefix):len(prefix)], s.hi...))
	if err != nil {
		return false
	}
	defer b.rest(it)
	it.Ahead(1)
	at := len(prefix) + len(s.base)
	if !it.First() {
		return it.Err() == nil
	}
	first := it.Key()[at]
	return it.Last() && it.Key()[at] == first
}

// inIDOrder is a scan of a logical partition for a query that wants the order of ids. Its positions are those of a
// sort, so a sort can continue after it.
type inIDOrder struct{ *scan }

func (b *builder) idOrder(*plan.Node, *position) (source, error) {
	var at *position
	if b.from != nil {
		base := b.spans[0].base
		at = &position{kind: posScan, key: keys.AppendExact(base[:len(base):len(base)], b.from.keys[0])}
	}
	return inIDOrder{newScan(b, b.spans, at)}, nil
}

func (s inIDOrder) next(r *row) (bool, error) {
	ok, err := s.scan.next(r)
	r.pos = position{kind: posSort, number: s.b.layout.Order(r.item.Number)}
	return ok, err
}

func isID(p access.Path) bool { return len(p.Segs) == 1 && p.Segs[0] == "_id" }

// narrow cuts the span of a logical partition to the ids that the conjuncts of the predicate allow. It uses only bounds
// that are strings, because the keys of strings sort as the strings do.
func (b *builder) narrow(p *access.Pred) {
	s := &b.spans[0]
	base := s.lo
	for _, c := range p.Conjuncts() {
		if c.Op != access.OpRange || !isID(c.Path) || c.Any || c.Foreign && b.KeysMayBeForeign() {
			continue
		}
		lo, hi := idBounds(base, c)
		if lo == nil {
			continue
		}
		if string(lo) > string(s.lo) {
			s.lo = lo
		}
		if string(hi) < string(s.hi) {
			s.hi = hi
		}
	}
	if string(s.lo) > string(s.hi) {
		s.hi = s.lo
	}
}

// idBounds returns the keys [lo, hi) of a range of ids below base. It returns nil when a bound isn't a string.
func idBounds(base []byte, c *access.Pred) (lo, hi []byte) {
	first, end := keys.ClassRange(value.ClassString)
	lo, hi = append(base[:len(base):len(base)], first...), append(base[:len(base):len(base)], end...)
	for _, bd := range []*access.Bound{c.Lo, c.Hi} {
		if bd != nil && bd.Value.Kind() != value.String {
			return nil, nil
		}
	}
	if c.Lo != nil {
		lo = keys.AppendExact(base[:len(base):len(base)], c.Lo.Value)
		if !c.Lo.Inclusive {
			lo = append(lo, 0)
		}
	}
	if c.Hi != nil {
		hi = keys.AppendExact(base[:len(base):len(base)], c.Hi.Value)
		if c.Hi.Inclusive {
			hi = append(hi, 0)
		}
	}
	return lo, hi
}
