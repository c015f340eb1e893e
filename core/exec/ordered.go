package exec

import (
	"bytes"
	"container/heap"

	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/value"
)

// ordered merges the entries of one leaf over the slots: items come in the order of (value, number), numbers reversed when
// the order descends. It needs entries whose byte order is the order of the values; build falls back to a sort where cut
// values or array elements may be in the way.
type ordered struct {
	b    *builder
	desc bool
	h    mergeHeap
	top  *entries // was given out: moves before the next row
	key  []byte
	val  []byte
}

type mergeHeap struct {
	list []*entries
	desc bool
}

func (h *mergeHeap) Len() int { return len(h.list) }

func (h *mergeHeap) Less(i, j int) bool {
	a, b := &h.list[i].cur, &h.list[j].cur
	c := bytes.Compare(a.Value, b.Value)
	if c == 0 {
		switch {
		case a.Number < b.Number:
			c = -1
		case a.Number > b.Number:
			c = 1
		}
	}
	if h.desc {
		return c > 0
	}
	return c < 0
}

func (h *mergeHeap) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *mergeHeap) Push(x any)    { h.list = append(h.list, x.(*entries)) }
func (h *mergeHeap) Pop() any {
	e := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return e
}

// ordered makes the merge, or a sort over the leaf's index scan where the index order can't be trusted: cut values, and the
// "any value" entries of items with too many terms.
func (b *builder) ordered(leaf *access.Pred, from *position) (source, error) {
	if b.cutValues(leaf) {
		b.rows.stats.Sorted = true
		src, err := newIndexScan(b, []*access.Pred{leaf}, nil)
		if err != nil {
			return nil, err
		}
		return newSort(b, src)
	}
	if from != nil && from.kind != posIndex {
		return nil, errToken()
	}
	o := &ordered{b: b, desc: b.q.OrderBy[0].Desc}
	o.h.desc = o.desc
	for i := range b.spans {
		e := newEntries(b, &b.spans[i], leaf, o.desc, from)
		if e == nil {
			continue
		}
		ok, err := e.next()
		if err != nil {
			e.close()
			o.close()
			return nil, err
		}
		if !ok {
			e.close()
			continue
		}
		o.h.list = append(o.h.list, e)
	}
	heap.Init(&o.h)
	return o, nil
}

func (b *builder) cutValues(leaf *access.Pred) bool {
	id := b.Policy().PathID(leaf.Path.Segs)
	for i := range b.spans {
		if b.view.HasLossy(b.spans[i].slot, id) {
			return true
		}
	}
	return false
}

func (o *ordered) next(r *row) (bool, error) {
	for {
		if ok, err := o.settle(); err != nil || !ok {
			return false, err
		}
		e := o.h.list[0]
		o.top = e
		if e.flag&index.FlagElement != 0 && e.cur.Value[0] != value.ClassAny {
			continue
		}
		o.val = append(o.val[:0], e.cur.Value...)
		r.pos = position{set: true, kind: posIndex, value: o.val, number: e.cur.Number}
		ok, key, err := o.b.view.Fetch(&r.item, e.sp.slot, e.cur.Identity, o.key)
		o.key = key
		o.b.rows.stats.Items++
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		o.b.rows.stats.Bytes += len(r.item.Doc)
		r.slot = e.sp.slot
		return true, nil
	}
}

// settle moves the stream that was given out and restores the heap; false at the end.
func (o *ordered) settle() (bool, error) {
	if o.top != nil {
		ok, err := o.top.next()
		if err != nil {
			return false, err
		}
		if ok {
			heap.Fix(&o.h, 0)
		} else {
			o.top.close()
			heap.Pop(&o.h)
		}
		o.top = nil
	}
	return len(o.h.list) > 0, nil
}

func (o *ordered) empty() bool {
	ok, err := o.settle()
	return err == nil && !ok
}

func (o *ordered) close() {
	for _, e := range o.h.list {
		e.close()
	}
}
