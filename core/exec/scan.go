package exec

import (
	"bytes"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/value"
)

// scan gives the items of spans in the order of their suffixes: placement, partition key, id. A row's item points into
// memory of the iterator, which moves at the next call.
type scan struct {
	b      *builder
	spans  []span
	i      int // the current span
	it     kv.Iterator
	open   bool // the iterator is in span i
	on     bool // the iterator is on a candidate
	used   bool // the candidate was given
	lo, hi []byte
	resume *position
	given  *given // with posMixed: what the index has given
}

func newScan(b *builder, spans []span, from *position) *scan {
	s := &scan{b: b, spans: spans, resume: from}
	if from != nil && from.kind == posMixed {
		s.given = newGiven(b, from)
		if len(from.key) == 0 {
			s.resume = nil
		}
		for s.i < len(spans) && bytes.Compare(spans[s.i].slot.Min(), from.slotMin) < 0 {
			s.i++
		}
	}
	return s
}

// bounds puts the key bounds of a span into s.lo and s.hi.
func (s *scan) bounds(sp *span) {
	key := sp.slot.Key()
	s.lo = append(keys.AppendPrefix(s.lo[:0], key, keys.KindItem), sp.lo...)
	if sp.hi != nil {
		s.hi = append(keys.AppendPrefix(s.hi[:0], key, keys.KindItem), sp.hi...)
	} else {
		s.hi = keys.AppendPrefix(s.hi[:0], key, keys.KindItem+1)
	}
}

// openSpan moves the iterator to the first candidate of span i, or to the first one after the resume position.
func (s *scan) openSpan() error {
	sp := &s.spans[s.i]
	s.bounds(sp)
	if s.it == nil {
		var err error
		if s.it, err = s.b.view.Iter(s.lo, s.hi); err != nil {
			return err
		}
	} else {
		s.it.Reset(s.lo, s.hi)
	}
	if s.resume == nil {
		s.on = s.it.First()
		return nil
	}
	key := append(keys.AppendPrefix(nil, sp.slot.Key(), keys.KindItem), s.resume.key...)
	if bytes.Compare(key, s.lo) < 0 {
		s.on = s.it.First()
		return nil
	}
	s.on = s.it.SeekGE(key)
	if s.on && !s.resume.cut && bytes.Equal(s.it.Key(), key) {
		s.on = s.it.Next()
	}
	return nil
}

func (s *scan) next(r *row) (bool, error) {
	for {
		if ok, err := s.settle(); err != nil || !ok {
			return false, err
		}
		s.used = true
		if ok, err := s.read(r); err != nil || ok {
			return ok, err
		}
		if err := s.b.poll(); err != nil {
			return false, err
		}
	}
}

// settle moves the iterator to the next candidate that was not given. It returns false at the end.
func (s *scan) settle() (bool, error) {
	for {
		if s.open {
			if s.used {
				s.on, s.used = s.it.Next(), false
			}
			if s.on {
				return true, nil
			}
			if err := s.it.Err(); err != nil {
				return false, err
			}
			s.i, s.open = s.i+1, false
		}
		for s.resume != nil && s.i < len(s.spans) && s.before(&s.spans[s.i]) {
			s.i++
		}
		if s.i >= len(s.spans) {
			return false, nil
		}
		if err := s.openSpan(); err != nil {
			return false, err
		}
		s.open, s.used = true, false
	}
}

func (s *scan) empty() bool {
	ok, err := s.settle()
	return err == nil && !ok
}

// before reports whether a span ends before the resume position.
func (s *scan) before(sp *span) bool {
	hi := sp.hi
	if hi == nil {
		hi = sp.slot.Max()
	}
	return hi != nil && bytes.Compare(hi, s.resume.key) <= 0
}

// read makes a row of the current candidate. It returns false when the candidate is expired, outside of the span or was
// given before.
func (s *scan) read(r *row) (bool, error) {
	suffix, val := s.it.Key()[keys.PrefixLen:], s.it.Value()
	sp := &s.spans[s.i]
	st := &s.b.rows.stats
	st.Items++
	st.Bytes += len(val)
	ok, err := s.b.view.Decode(&r.item, suffix, val)
	if err != nil || !ok {
		return false, err
	}
	if sp.tuple != nil && !bytes.HasPrefix(r.item.Identity(), sp.tuple) || !s.b.inTexts(r.item.Identity()) {
		return false, nil
	}
	r.slot = sp.slot
	r.pos = position{kind: posScan, number: r.item.Number, key: suffix}
	if s.given == nil {
		return true, nil
	}
	from := s.given.from
	if !bytes.Equal(sp.slot.Min(), from.slotMin) {
		s.given = nil // from this slot on the index had given nothing
		return true, nil
	}
	if s.given.has(r) {
		return false, nil
	}
	r.pos = *from
	r.pos.key, r.pos.keyNumber = suffix, r.item.Number
	return true, nil
}

func (s *scan) close() {
	if s.it != nil {
		_ = s.it.Close()
		s.it = nil
	}
}

// given tells which items an index scan gave in the slot where it stopped, so that a scan of the items can continue
// after it. Its terms are those of the default policy, because the policy of the index scan no longer exists. For array
// elements, another policy that indexes the path may have other terms than the default. Then an item whose first
// element comes there may be given once more.
type given struct {
	b     *builder
	from  *position
	leaf  leaf
	pol   *index.Policy
	terms index.Terms
}

func newGiven(b *builder, from *position) *given {
	g := &given{b: b, from: from}
	if p := b.leafOf(from.sig); p != nil && len(from.value) > 0 {
		g.leaf, _ = newLeaf(b, p)
		if g.pol = b.Policy().Everything(); keys.FormerIndex(from.value) {
			g.pol = b.Policy().Former()
		}
	}
	return g
}

// noValue is the index entry of an item without a value, where it has one.
var noValue = []byte{value.ClassUndefined}

// has reports whether an item of the slot was given.
func (g *given) has(r *row) bool {
	if len(g.from.value) == 0 || g.pol == nil { // a union is ordered by number
		return g.gave(r.item.Number)
	}
	val := g.leaf.first(g.pol, &g.terms, &r.item)
	switch {
	case val != nil:
	case g.leaf.pred.Every():
		val = noValue
	default:
		return true // the leaf doesn't name it, so the filter refuses it
	}
	c := bytes.Compare(val, g.from.value)
	return c < 0 || c == 0 && g.gave(r.item.Number)
}

// gave reports whether an item with this number was given, among the items with the position's value.
func (g *given) gave(number uint64) bool {
	return number <= g.from.former || g.b.layout.Order(number) <= g.from.number
}
