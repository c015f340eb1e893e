package exec

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/value"
)

// entries walks the index entries of one leaf in one slot, in the order of (value, number), or backwards.
type entries struct {
	b      *builder
	sp     *span
	leaf   *access.Pred
	prefix []byte // up to and with the path id
	ivs    []access.Interval
	desc   bool
	n20    []byte // with a whole partition key and one value per interval: the bytes that numbers begin with
	it     kv.Iterator
	i      int
	open   bool
	lo, hi []byte
	place  []byte
	cur    keys.IndexEntry
	flag   byte
	after  *position // entries up to this value and number were given before
}

// newEntries returns the entries of a leaf in a span's slot; nil when there can be none.
func newEntries(b *builder, sp *span, leaf *access.Pred, desc bool, after *position) *entries {
	ivs, exact, ok := leaf.Intervals()
	if !ok {
		return nil
	}
	if ivs = access.Held(ivs, b.view.Classes(sp.slot)); len(ivs) == 0 {
		return nil
	}
	e := &entries{b: b, sp: sp, leaf: leaf, ivs: ivs, desc: desc, after: after}
	e.prefix = keys.AppendIndexPath(nil, b.view.SlotKey(sp.slot), b.Policy().PathID(leaf.Path.Segs))
	if exact && sp.tuple != nil && len(b.q.PK) == len(b.KeyPaths()) {
		place := sp.lo[:len(sp.lo)-len(sp.tuple)]
		e.n20 = b.view.Container().NumberPrefix(place)
	}
	if desc {
		e.i = len(ivs) - 1
	}
	return e
}

// next moves to the next entry of the leaf that lies in the span; e.cur is valid until the call after.
func (e *entries) next() (bool, error) {
	for {
		if !e.open {
			if e.i < 0 || e.i >= len(e.ivs) {
				return false, nil
			}
			if ok, err := e.openInterval(); err != nil {
				return false, err
			} else if !ok {
				e.step()
				continue
			}
		} else if !e.move() {
			if err := e.it.Err(); err != nil {
				return false, err
			}
			e.open = false
			e.step()
			continue
		}
		ok, err := e.accept()
		if err != nil || ok {
			return ok, err
		}
	}
}

func (e *entries) step() {
	if e.desc {
		e.i--
	} else {
		e.i++
	}
}

func (e *entries) move() bool {
	if e.desc {
		return e.it.Prev()
	}
	return e.it.Next()
}

// openInterval positions the iterator on the first entry of interval i, or after the resume position when that lies in it;
// false when there is none.
func (e *entries) openInterval() (bool, error) {
	iv := e.ivs[e.i]
	e.lo = append(append(e.lo[:0], e.prefix...), iv.Lo...)
	e.hi = append(append(e.hi[:0], e.prefix...), iv.Hi...)
	if e.n20 != nil && iv.Lo[0] != value.ClassAny {
		e.lo = append(e.lo, e.n20...)
		e.hi = keys.AppendAfter(e.hi[:0], e.lo)
	}
	if e.it == nil {
		var err error
		if e.it, err = e.b.view.Iter(e.lo, e.hi); err != nil {
			return false, err
		}
	} else {
		e.it.Reset(e.lo, e.hi)
	}
	var ok bool
	switch {
	case e.after != nil:
		at := binary.BigEndian.AppendUint64(append(append([]byte(nil), e.prefix...), e.after.value...), e.after.number)
		if e.desc {
			ok = e.it.SeekLT(at)
		} else {
			ok = e.it.SeekGE(keys.After(at))
		}
	case e.desc:
		ok = e.it.Last()
	default:
		ok = e.it.First()
	}
	if !ok {
		return false, e.it.Err()
	}
	e.open = true
	return true, nil
}

// accept parses the entry that the iterator stands on; false when it is not the leaf's or not in the span.
func (e *entries) accept() (bool, error) {
	e.b.rows.stats.Entries++
	cur, err := keys.ParseIndex(e.it.Key())
	if err != nil {
		return false, err
	}
	e.cur, e.flag = cur, index.FlagSet
	if v := e.it.Value(); len(v) > 0 {
		e.flag = v[0]
	}
	if e.flag&index.FlagElement != 0 && !e.leaf.Path.Elements && cur.Value[0] != value.ClassAny {
		return false, nil
	}
	if e.sp.whole() {
		return true, nil
	}
	if e.sp.tuple != nil && !bytes.HasPrefix(cur.Identity, e.sp.tuple) {
		return false, nil
	}
	if e.place, err = e.b.view.Container().AppendPlace(e.place[:0], cur.Identity); err != nil {
		return false, err
	}
	return e.sp.contains(e.place, cur.Identity), nil
}

func (e *entries) close() {
	if e.it != nil {
		_ = e.it.Close()
	}
}

// indexScan gives the items that the entries of one leaf, or of several, name. Where an item can have several entries (array
// elements, a union) the slot's answers are gathered and given in the order of their numbers; else they stream in the order
// of (value, number).
type indexScan struct {
	b      *builder
	leaves []*access.Pred
	from   *position
	i      int // span
	stream *entries
	list   []named // gathered
	at     int
	gather bool
	opened bool
	key    []byte
	val    []byte
	peek   bool // stream stands on an entry that was not given out
}

type named struct {
	number uint64
	ident  []byte
}

func newIndexScan(b *builder, leaves []*access.Pred, from *position) (source, error) {
	s := &indexScan{b: b, leaves: leaves, from: from}
	if from != nil {
		def := b.view.Container().Def()
		for s.i < len(b.spans) && bytes.Compare(def.Slots[b.spans[s.i].slot].Min, from.slotMin) < 0 {
			s.i++
		}
		if s.i < len(b.spans) && !bytes.Equal(def.Slots[b.spans[s.i].slot].Min, from.slotMin) {
			s.from = nil
		}
	}
	return s, nil
}

func (s *indexScan) next(r *row) (bool, error) {
	for {
		if ok, err := s.settle(); err != nil || !ok {
			return false, err
		}
		sp := &s.b.spans[s.i]
		var ident []byte
		r.pos = position{set: true, kind: posIndex, slotMin: s.b.view.Container().Def().Slots[sp.slot].Min}
		if s.gather {
			n := s.list[s.at]
			s.at++
			ident, r.pos.number = n.ident, n.number
		} else {
			s.peek = false
			s.val = append(s.val[:0], s.stream.cur.Value...)
			ident, r.pos.value, r.pos.number = s.stream.cur.Identity, s.val, s.stream.cur.Number
		}
		ok, key, err := s.b.view.Fetch(&r.item, sp.slot, ident, s.key)
		s.key = key
		s.b.rows.stats.Items++
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		s.b.rows.stats.Bytes += len(r.item.Doc)
		r.slot = sp.slot
		return true, nil
	}
}

// settle makes sure that there is a next entry: the stream stands on it, or it is list[at].
func (s *indexScan) settle() (bool, error) {
	for s.i < len(s.b.spans) {
		if !s.opened {
			if err := s.openSlot(); err != nil {
				return false, err
			}
		}
		if s.gather {
			if s.at < len(s.list) {
				return true, nil
			}
		} else if s.stream != nil {
			if s.peek {
				return true, nil
			}
			ok, err := s.stream.next()
			if err != nil {
				return false, err
			}
			if ok {
				s.peek = true
				return true, nil
			}
			s.stream.close()
			s.stream = nil
		}
		s.i++
		s.opened, s.from = false, nil
	}
	return false, nil
}

func (s *indexScan) empty() bool {
	ok, err := s.settle()
	return err == nil && !ok
}

// openSlot starts the next slot: a stream when every item has one entry at most, else the gathered list.
func (s *indexScan) openSlot() error {
	s.opened = true
	sp := &s.b.spans[s.i]
	s.gather = len(s.leaves) > 1
	for _, l := range s.leaves {
		if l.Path.Elements && s.b.view.HasElements(sp.slot, s.b.Policy().PathID(l.Path.Segs)) {
			s.gather = true
		}
	}
	if !s.gather {
		s.stream = newEntries(s.b, sp, s.leaves[0], false, s.from)
		return nil
	}
	s.list, s.at = s.list[:0], 0
	for _, l := range s.leaves {
		if err := s.collect(sp, l); err != nil {
			return err
		}
	}
	slices.SortFunc(s.list, func(a, b named) int {
		switch {
		case a.number < b.number:
			return -1
		case a.number > b.number:
			return 1
		}
		return 0
	})
	s.list = slices.CompactFunc(s.list, func(a, b named) bool { return a.number == b.number })
	if s.from != nil {
		for s.at < len(s.list) && s.list[s.at].number <= s.from.number {
			s.at++
		}
	}
	return nil
}

func (s *indexScan) collect(sp *span, l *access.Pred) error {
	e := newEntries(s.b, sp, l, false, nil)
	if e == nil {
		return nil
	}
	defer e.close()
	for {
		ok, err := e.next()
		if err != nil || !ok {
			return err
		}
		s.list = append(s.list, named{e.cur.Number, bytes.Clone(e.cur.Identity)})
	}
}

func (s *indexScan) close() {
	if s.stream != nil {
		s.stream.close()
	}
}
