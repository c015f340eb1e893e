package exec

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// A sort holds up to sortItems bytes of items; beyond it only keys and identities are kept and items are read again when they
// are given out. At sortKeys bytes of those it refuses.
const (
	sortItems = 32 << 20
	sortKeys  = 256 << 20
)

// sorter drains its source at the first call, keeps what matches, and gives it in the wanted order; with a Limit it holds that
// many rows.
type sorter struct {
	b    *builder
	src  source // nil once it is drained
	list []*sorted
	heap topHeap
	at   int
	mem  store.Mem
	size int
	keyB int
	err  error
}

type sorted struct {
	keys   []value.Value
	number uint64
	slot   int
	item   *store.Item // nil: read again by ident
	ident  []byte
}

// bytes is what a row takes beside its item.
func (x *sorted) bytes() int {
	n := len(x.ident) + 96
	for i := range x.keys {
		n += 48 + len(x.keys[i].Bytes())
	}
	return n
}

// sortKey is the key of an item under one order.
func sortKey(o *Order, it *store.Item) value.Value {
	if o.Key != nil {
		return o.Key(it)
	}
	v := value.ObjectOf(it.Doc)
	for _, s := range o.Path.Segs {
		v = v.Get(s)
	}
	return v
}

// compare is the total order of the rows: the sort keys, then the number, reversed when the first key descends. y may have
// fewer keys than x: then only those count and the number doesn't.
func (b *builder) compare(x, y *sorted) int {
	for i := range y.keys {
		if c := b.q.Compare(x.keys[i], y.keys[i]); c != 0 {
			if b.q.OrderBy[i].Desc {
				return -c
			}
			return c
		}
	}
	if len(y.keys) < len(x.keys) {
		return 0
	}
	if b.q.OrderBy[0].Desc {
		return cmp.Compare(y.number, x.number)
	}
	return cmp.Compare(x.number, y.number)
}

// topHeap has the last row of the wanted order on top.
type topHeap struct {
	b    *builder
	list []*sorted
}

func (h *topHeap) Len() int           { return len(h.list) }
func (h *topHeap) Less(i, j int) bool { return h.b.compare(h.list[i], h.list[j]) > 0 }
func (h *topHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *topHeap) Push(x any)         { h.list = append(h.list, x.(*sorted)) }
func (h *topHeap) Pop() any {
	x := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return x
}

// fill drains the source.
func (s *sorter) fill() error {
	if s.src != nil {
		s.err = s.drain()
		s.close()
	}
	return s.err
}

func (s *sorter) drain() error {
	s.heap.b = s.b
	var r row
	for {
		if err := s.b.poll(); err != nil {
			return err
		}
		ok, err := s.b.rows.candidate(s.src, &r)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if s.b.q.Match != nil {
			keep, err := s.b.rows.match(&r.item)
			if err != nil {
				return err
			}
			if !keep {
				continue
			}
		}
		if err := s.add(&r); err != nil {
			return err
		}
	}
	s.list = append(s.list, s.heap.list...)
	s.heap.list = nil
	slices.SortFunc(s.list, s.b.compare)
	s.resume()
	return nil
}

func (s *sorter) add(r *row) error {
	q := s.b.q
	x := &sorted{number: r.item.Number, slot: r.slot, keys: make([]value.Value, len(q.OrderBy))}
	for i := range q.OrderBy {
		x.keys[i] = sortKey(&q.OrderBy[i], &r.item)
	}
	full := q.Limit > 0 && len(s.heap.list) >= q.Limit
	if full && s.b.compare(x, s.heap.list[0]) >= 0 {
		return nil
	}
	for i := range x.keys {
		x.keys[i] = x.keys[i].Clone()
	}
	if s.size < sortItems {
		x.item = r.item.Clone()
		s.size += len(r.item.Doc)
	} else {
		x.ident = bytes.Clone(r.item.Identity())
	}
	s.keyB += x.bytes()
	switch {
	case full:
		old := s.heap.list[0]
		if old.item != nil {
			s.size -= len(old.item.Doc)
		}
		s.keyB -= old.bytes()
		s.heap.list[0] = x
		heap.Fix(&s.heap, 0)
	case q.Limit > 0:
		heap.Push(&s.heap, x)
	default:
		s.list = append(s.list, x)
	}
	if s.keyB > sortKeys {
		return status.New(status.TooLarge, "The sort needs more memory than %d MB; add a limit or a range on the sort path.", sortKeys>>20)
	}
	return nil
}

// resume moves behind the position: to the first row after it in the order, whether its own row is still there or not. Where
// the position's keys were cut, its own row is looked for; without it rows that can't be told from it come again.
func (s *sorter) resume() {
	p := s.b.from
	if p == nil {
		return
	}
	if p.cut {
		for i, x := range s.list {
			if x.number == p.number && hashKeys(x.keys) == p.hash {
				s.at = i + 1
				return
			}
		}
	}
	pos := &sorted{keys: p.keys, number: p.number}
	s.at = sort.Search(len(s.list), func(i int) bool {
		x := s.list[i]
		if p.partial {
			x = s.cutLike(x, p)
		}
		c := s.b.compare(x, pos)
		return c > 0 || c == 0 && p.cut
	})
}

// cutLike returns the row with the string that is cut in the position cut alike.
func (s *sorter) cutLike(x *sorted, p *position) *sorted {
	n := len(p.keys) - 1
	v, most := x.keys[n], len(p.keys[n].Bytes())
	if v.Kind() != value.String || len(v.Bytes()) <= most {
		return x
	}
	c := sorted{keys: slices.Clone(x.keys), number: x.number}
	c.keys[n] = value.StringBytes(v.Bytes()[:most])
	return &c
}

func hashKeys(vs []value.Value) uint64 {
	var b []byte
	for _, v := range vs {
		b = keys.AppendExact(b, v)
	}
	return xxhash.Sum64(b)
}

func (s *sorter) next(r *row) (bool, error) {
	if err := s.fill(); err != nil {
		return false, err
	}
	for s.at < len(s.list) {
		x := s.list[s.at]
		s.at++
		r.slot = x.slot
		if x.item != nil {
			r.item = *x.item
		} else if ok, err := s.b.view.Fetch(&r.item, x.slot, x.ident, &s.mem); err != nil {
			return false, err
		} else if !ok {
			continue
		}
		r.pos = position{kind: posSort, number: x.number}
		r.matched = true
		return true, nil
	}
	return false, nil
}

func (s *sorter) empty() bool { return s.fill() == nil && s.at >= len(s.list) }

func (s *sorter) close() {
	if s.src != nil {
		s.src.close()
		s.src = nil
	}
}
