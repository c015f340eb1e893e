package exec

import (
	"container/heap"
	"sort"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// sortLimit is how many bytes of items a sort holds; beyond it only keys and identities are kept and items are read again
// when they are given out. sortKeys is where it refuses.
const (
	sortItems = 32 << 20
	sortKeys  = 256 << 20
)

// sorter drains its source, keeps what matches, and gives it in the wanted order; with a Limit it holds that many rows.
type sorter struct {
	b    *builder
	list []*sorted
	heap topHeap
	at   int
	key  []byte
	size int
	keyB int
}

type sorted struct {
	keys   []value.Value
	number uint64
	slot   int
	item   *store.Item // nil: read again by ident
	ident  []byte
}

// less is the total order of the rows: the sort keys, then the number, reversed when the first key descends.
func (b *builder) less(x, y *sorted) bool {
	for i, o := range b.q.OrderBy {
		c := b.q.Compare(x.keys[i], y.keys[i])
		if c == 0 {
			continue
		}
		return (c < 0) != o.Desc
	}
	if b.q.OrderBy[0].Desc {
		return x.number > y.number
	}
	return x.number < y.number
}

// topHeap has the last row of the wanted order on top.
type topHeap struct {
	b    *builder
	list []*sorted
}

func (h *topHeap) Len() int           { return len(h.list) }
func (h *topHeap) Less(i, j int) bool { return h.b.less(h.list[j], h.list[i]) }
func (h *topHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *topHeap) Push(x any)         { h.list = append(h.list, x.(*sorted)) }
func (h *topHeap) Pop() any {
	x := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return x
}

func newSort(b *builder, src source) (source, error) {
	defer src.close()
	s := &sorter{b: b, heap: topHeap{b: b}}
	var r row
	for n := 0; ; n++ {
		if n&255 == 255 {
			if err := b.rows.ctx.Err(); err != nil {
				return nil, status.Wrap(status.Timeout, err, "The query took too long.")
			}
		}
		ok, err := src.next(&r)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if b.q.Match != nil {
			keep, err := b.q.Match(&r.item)
			if err != nil {
				return nil, err
			}
			if !keep {
				continue
			}
		}
		if err := s.add(&r); err != nil {
			return nil, err
		}
	}
	s.list = append(s.list, s.heap.list...)
	s.heap.list = nil
	sort.Slice(s.list, func(i, j int) bool { return b.less(s.list[i], s.list[j]) })
	return s, s.resume()
}

func (s *sorter) add(r *row) error {
	q := s.b.q
	x := &sorted{number: r.item.Number, slot: r.slot, keys: make([]value.Value, len(q.OrderBy))}
	for i, o := range q.OrderBy {
		if o.Key != nil {
			x.keys[i] = o.Key(&r.item)
		} else {
			x.keys[i] = lookup(r.item.Doc, o.Path.Segs)
		}
	}
	limit := q.Limit
	if limit > 0 && len(s.heap.list) >= limit && !s.b.less(x, s.heap.list[0]) {
		return nil
	}
	for i := range x.keys {
		x.keys[i] = x.keys[i].Clone()
		s.keyB += 48 + len(x.keys[i].Bytes())
	}
	if s.size < sortItems {
		x.item = r.item.Clone()
		s.size += len(r.item.Doc)
	} else {
		x.ident = append([]byte(nil), r.item.Identity()...)
		s.keyB += len(x.ident)
	}
	if limit == 0 {
		if s.keyB > sortKeys {
			return status.New(status.TooLarge, "The sort needs more memory than %d MB; add a limit or a range on the sort path.", sortKeys>>20)
		}
		s.list = append(s.list, x)
		return nil
	}
	if len(s.heap.list) < limit {
		heap.Push(&s.heap, x)
		return nil
	}
	old := s.heap.list[0]
	if old.item != nil {
		s.size -= len(old.item.Doc)
	}
	for i := range old.keys {
		s.keyB -= 48 + len(old.keys[i].Bytes())
	}
	s.heap.list[0] = x
	heap.Fix(&s.heap, 0)
	return nil
}

func lookup(doc []byte, segs []string) value.Value {
	v := value.ObjectOf(doc)
	for _, s := range segs {
		v = v.Get(s)
	}
	return v
}

// resume moves to after the position: the row with its number, or where its value would stand when that row is gone.
func (s *sorter) resume() error {
	from := s.b.from
	if from == nil {
		return nil
	}
	if from.kind == posScan {
		return errToken()
	}
	for i, x := range s.list {
		if x.number == from.number {
			s.at = i + 1
			return nil
		}
	}
	desc := s.b.q.OrderBy[0].Desc
	s.at = sort.Search(len(s.list), func(i int) bool {
		e, _ := keys.AppendIndex(nil, s.list[i].keys[0])
		c := compareCut(e, from.value)
		if c == 0 {
			return (s.list[i].number > from.number) != desc
		}
		return (c > 0) != desc
	})
	return nil
}

// compareCut compares an encoded value with one that was cut at maxPosValue.
func compareCut(e, cut []byte) int {
	if len(e) > len(cut) && len(cut) == maxPosValue {
		e = e[:maxPosValue]
	}
	switch {
	case string(e) < string(cut):
		return -1
	case string(e) > string(cut):
		return 1
	}
	return 0
}

func (s *sorter) next(r *row) (bool, error) {
	for s.at < len(s.list) {
		x := s.list[s.at]
		s.at++
		if x.item != nil {
			r.item = *x.item
		} else {
			ok, key, err := s.b.view.Fetch(&r.item, x.slot, x.ident, s.key)
			s.key = key
			if err != nil {
				return false, err
			}
			if !ok {
				continue
			}
		}
		e, _ := keys.AppendIndex(nil, x.keys[0])
		if len(e) > maxPosValue {
			e = e[:maxPosValue]
		}
		r.slot = x.slot
		r.pos = position{set: true, matched: true, kind: posSort, value: e, number: x.number}
		return true, nil
	}
	return false, nil
}

func (s *sorter) empty() bool { return s.at >= len(s.list) }
func (s *sorter) close()      {}
