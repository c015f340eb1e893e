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
	b     *builder
	spans []span
	i     int // the current span
	spanWalk
	open   bool // the iterator is in span i
	used   bool // the candidate was given
	resume *position
	given  *given // with posMixed: what the index has given
	ahead  spansAhead
}

// spanWalk walks the stored items of a span. It can be opened again and again, and reuses memory and iterator.
type spanWalk struct {
	it     kv.Iterator
	on     bool // the iterator is on a candidate
	lo, hi []byte
}

func newScan(b *builder, spans []span, from *position) *scan {
	s := &scan{b: b, spans: spans, resume: from}
	if from != nil && from.kind == posMixed {
		s.given = newGiven(b, from)
		if len(from.key) == 0 {
			s.resume = nil
		}
		for s.i < len(spans) && bytes.Compare(spans[s.i].places().lo, from.unit.lo) < 0 {
			s.i++
		}
	}
	return s
}

// bounds puts the key bounds of a span into w.lo and w.hi.
func (w *spanWalk) bounds(sp *span) {
	key := sp.slot.Key()
	w.lo = append(keys.AppendPrefix(w.lo[:0], key, keys.KindItem), sp.lo...)
	if sp.hi != nil {
		w.hi = append(keys.AppendPrefix(w.hi[:0], key, keys.KindItem), sp.hi...)
	} else {
		w.hi = keys.AppendPrefix(w.hi[:0], key, keys.KindItem+1)
	}
}

// start moves to the first candidate of a span, or to the first one after a position. ahead is the number of items that
// are probably needed; 0 = unknown.
func (w *spanWalk) start(b *builder, sp *span, after *position, ahead int) error {
	w.bounds(sp)
	if w.it == nil {
		var err error
		if w.it, err = b.iter(w.lo, w.hi); err != nil {
			return err
		}
	} else {
		w.it.Reset(w.lo, w.hi)
	}
	if ahead > 0 {
		w.it.Ahead(ahead)
	}
	if after == nil {
		w.on = w.it.First()
		return nil
	}
	key := append(keys.AppendPrefix(nil, sp.slot.Key(), keys.KindItem), after.key...)
	if bytes.Compare(key, w.lo) < 0 {
		w.on = w.it.First()
		return nil
	}
	w.on = w.it.SeekGE(key)
	if w.on && !after.cut && bytes.Equal(w.it.Key(), key) {
		w.on = w.it.Next()
	}
	return nil
}

func (w *spanWalk) close(b *builder) {
	if w.it != nil {
		b.rest(w.it)
		w.it = nil
	}
}

// openSpan moves to the first candidate of span i, or to the first one after the resume position.
func (s *scan) openSpan() error {
	if s.b.view.Remote() {
		return s.openFar()
	}
	return s.start(s.b, &s.spans[s.i], s.resume, 0)
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

func (s *scan) follows() (bool, error) { return s.settle() }

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
	ok, err := s.b.view.Decode(&r.item, suffix, val)
	st.Bytes += len(r.item.Doc)
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
	if !bytes.Equal(sp.places().lo, from.unit.lo) {
		s.given = nil // from this unit on the index had given nothing
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
	s.spanWalk.close(s.b)
	s.ahead.close(func(w *spanWalk) { w.close(s.b) })
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
