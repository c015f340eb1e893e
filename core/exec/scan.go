package exec

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/store"
)

// scan gives the items of spans in the order of their suffixes: placement, partition key, id. A row's item points into the
// iterator, which moves on the next call.
type scan struct {
	b      *builder
	spans  []span
	i      int // the present span
	it     kv.Iterator
	open   bool // it stands in span i
	on     bool // it stands on a candidate
	used   bool // the candidate was given out
	lo, hi []byte
	resume *position
}

func newScan(b *builder, spans []span, from *position) *scan {
	return &scan{b: b, spans: spans, resume: from}
}

// bounds puts the key bounds of a span into s.lo and s.hi.
func (s *scan) bounds(sp *span) {
	key := s.b.view.SlotKey(sp.slot)
	s.lo = append(keys.AppendPrefix(s.lo[:0], key, keys.KindItem), sp.lo...)
	if sp.hi != nil {
		s.hi = append(keys.AppendPrefix(s.hi[:0], key, keys.KindItem), sp.hi...)
	} else {
		s.hi = keys.AppendPrefix(s.hi[:0], key, keys.KindItem+1)
	}
}

// openSpan positions the iterator at the first candidate of span i, after the resume position when there is one.
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
	key, exact, err := s.resumeKey(sp)
	if err != nil {
		return err
	}
	if bytes.Compare(key, s.lo) < 0 {
		s.on = s.it.First()
		return nil
	}
	s.on = s.it.SeekGE(key)
	if s.on && exact && bytes.Equal(s.it.Key(), key) {
		s.on = s.it.Next()
	}
	return nil
}

// resumeKey returns the key after which the scan goes on.
func (s *scan) resumeKey(sp *span) (key []byte, exact bool, err error) {
	suffix := s.resume.key
	exact = true
	if s.resume.cut {
		full, err := s.b.view.ByNumber(sp.slot, s.resume.number)
		if err != nil {
			return nil, false, err
		}
		if full != nil {
			suffix = full
		}
	}
	return append(keys.AppendPrefix(nil, s.b.view.SlotKey(sp.slot), keys.KindItem), suffix...), exact, nil
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
	}
}

// settle moves the iterator to the next candidate that was not given out; false at the end.
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

// before reports whether a span lies wholly before the resume position.
func (s *scan) before(sp *span) bool {
	def := s.b.view.Container().Def()
	if sp.hi != nil {
		return bytes.Compare(sp.hi, s.resume.key) <= 0
	}
	return sp.slot+1 < len(def.Slots) && bytes.Compare(def.Slots[sp.slot+1].Min, s.resume.key) <= 0
}

// read makes a row of the candidate that the iterator stands on; false when it is expired or outside of the span.
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
	if sp.tuple != nil && !bytes.HasPrefix(r.item.Identity(), sp.tuple) {
		return false, nil
	}
	r.slot = sp.slot
	r.pos = position{set: true, kind: posScan, number: r.item.Number, key: suffix}
	if len(suffix) > maxPosKey {
		r.pos.key, r.pos.cut = suffix[:maxPosKey], true
	}
	return true, nil
}

func (s *scan) close() {
	if s.it != nil {
		_ = s.it.Close()
	}
}

// points gives the items and logical partitions that keys name, in the order of their placement.
type points struct {
	b    *builder
	list []point
	i    int
	sub  *scan
	key  []byte
}

type point struct {
	span
	ident []byte // with an id
}

func (b *builder) points(ks []access.Key, from *position) (source, error) {
	if from != nil && from.kind != posScan {
		return nil, errToken()
	}
	p := &points{b: b}
	c := b.view.Container()
	for _, k := range ks {
		slot, place, tuple, _, err := c.Locate(store.PartitionKey(k.PK))
		if err != nil {
			return nil, err
		}
		pt := point{span: span{slot: slot, tuple: tuple}}
		pt.lo = append(append([]byte(nil), place...), tuple...)
		if k.ID.IsDefined() {
			pt.ident = keys.AppendExact(append([]byte(nil), tuple...), k.ID)
			pt.lo = keys.AppendExact(pt.lo, k.ID)
			if len(pt.ident) > keys.MaxIdentity {
				continue
			}
		}
		pt.hi = keys.After(pt.lo)
		if b.inSpans(slot, place, tuple) {
			p.list = append(p.list, pt)
		}
	}
	p.sort()
	for from != nil && p.i < len(p.list) && bytes.Compare(p.list[p.i].hi, from.key) <= 0 {
		p.i++
	}
	if from != nil && p.i < len(p.list) {
		if pt := &p.list[p.i]; pt.ident == nil {
			p.sub = newScan(b, []span{pt.span}, from)
		} else if bytes.Compare(pt.lo, from.key) <= 0 {
			p.i++
		}
	}
	return p, nil
}

// inSpans reports whether a partition key lies in what the query is restricted to.
func (b *builder) inSpans(slot int, place, tuple []byte) bool {
	for i := range b.spans {
		if s := &b.spans[i]; s.slot == slot && s.contains(place, tuple) {
			return true
		}
	}
	return false
}

// sort orders the points by suffix and removes those that are there twice.
func (p *points) sort() {
	slices.SortFunc(p.list, func(a, b point) int { return bytes.Compare(a.lo, b.lo) })
	p.list = slices.CompactFunc(p.list, func(a, b point) bool { return bytes.Equal(a.lo, b.lo) })
}

func (p *points) next(r *row) (bool, error) {
	for p.i < len(p.list) {
		pt := &p.list[p.i]
		if pt.ident == nil {
			if p.sub == nil {
				p.sub = newScan(p.b, []span{pt.span}, nil)
			}
			ok, err := p.sub.next(r)
			if err != nil || ok {
				return ok, err
			}
			p.sub.close()
			p.sub = nil
			p.i++
			continue
		}
		p.i++
		ok, key, err := p.b.view.Fetch(&r.item, pt.slot, pt.ident, p.key)
		p.key = key
		p.b.rows.stats.Items++
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		p.b.rows.stats.Bytes += len(r.item.Doc)
		r.slot = pt.slot
		r.pos = position{set: true, kind: posScan, number: r.item.Number, key: pt.lo}
		if len(pt.lo) > maxPosKey {
			r.pos.key, r.pos.cut = pt.lo[:maxPosKey], true
		}
		return true, nil
	}
	return false, nil
}

func (p *points) empty() bool { return p.i >= len(p.list) }

func (p *points) close() {
	if p.sub != nil {
		p.sub.close()
	}
}
