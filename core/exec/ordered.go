package exec

import (
	"bytes"
	"cmp"
	"container/heap"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/store"
)

// ordered merges the entries of one leaf over the slots, and for a composite index also over the values of its first
// columns. Items come in the order of (value, number), with numbers reversed when the first key of the order descends.
// The byte order of the entries must be the order of the values, with one entry for each item. The planner chooses a
// sort where cut values or array elements may violate this.
//
// Example: ORDER BY n over two slots. Slot A has the entries 1 and 4, slot B has 2 and 3. The heap holds the streams by
// their current entries (A:1, B:2). It gives A:1, moves A to 4, gives B:2 and B:3, and then A:4.
type ordered struct {
	b     *builder
	all   []entries
	h     mergeHeap
	top   bool // the first stream of the heap has given its entry: it moves before the next row
	mem   store.Mem
	cover *cover // nil: items are fetched
	own   *Order // items count only at the entry of their key; nil: at each of their entries
	key   []byte // of own
	far   *ahead // fetches them in chunks; nil: one by one
}

type mergeHeap struct {
	list []*entries
	desc bool       // values descend
	down bool       // numbers among equal values descend
	room *mergeRoom // memory
}

func (h *mergeHeap) Len() int { return len(h.list) }

func (h *mergeHeap) Less(i, j int) bool {
	a, b := &h.list[i].cur, &h.list[j].cur
	c, desc := bytes.Compare(a.Value[h.list[i].lead:], b.Value[h.list[j].lead:]), h.desc
	if c == 0 {
		c, desc = cmp.Compare(a.Number, b.Number), h.down
	}
	if desc {
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

// merge makes the merge of a leaf's streams. After a position it continues after the position's first sort key and
// number.
func (b *builder) merge(m *plan.Node, _ *position) (source, error) {
	if len(m.Kids) > 1 {
		return b.passing(m)
	}
	return b.mergeOf(m, nil)
}

// mergeOf is merge. most, if not nil, is how many entries of other logical partitions may be passed over.
func (b *builder) mergeOf(m *plan.Node, most *int) (source, error) {
	n := m.Kids[0]
	l, _ := newLeaf(b, n.Leaf)
	ways := b.streams(l)
	o := &ordered{b: b}
	o.all = o.h.begin(len(b.spans) * len(ways))
	if n.Covered {
		o.cover = newCover(b, n.Leaf)
	}
	if b.q.OrderBy[0].Own {
		o.own = &b.q.OrderBy[0]
	}
	o.h.down = b.q.OrderBy[0].Desc
	o.h.desc = o.h.down
	if n.Leaf.Comp != nil {
		o.h.desc = n.Leaf.Comp.Reverse
	}
	mem := room(&o.h.room.keys, cap(o.all)*entryMem)[:cap(o.all)*entryMem]
	for i := 0; i < len(b.spans); {
		var sps []span
		sps, i = b.slotOf(i)
		for w := range ways {
			o.all = append(o.all, entries{b: b, leaf: &ways[w].leaf, lead: ways[w].lead, desc: o.h.desc,
				flip: o.h.desc != o.h.down, once: m.Once, most: most})
			e := &o.all[len(o.all)-1]
			e.use(mem[(len(o.all)-1)*entryMem:])
			e.sps, e.after = sps, ways[w].after
		}
	}
	if err := o.h.beginAll(b, o.all); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *ordered) next(r *row) (bool, error) {
	if o.far == nil {
		o.far = o.b.readsAhead(o, o.cover)
	}
	if o.far != nil {
		var n nameOf
		for {
			ok, err := o.far.next(r, &n)
			if err != nil || !ok {
				return false, err
			}
			if o.counts(r, n.value) {
				r.pos = position{kind: posSort, number: n.number}
				return true, nil
			}
		}
	}
	for {
		if ok, err := o.settle(); err != nil || !ok {
			return false, err
		}
		e := o.h.list[0]
		o.top = true
		r.slot = e.sps[0].slot
		ok, err := o.b.entryRow(r, e, o.cover, &o.mem)
		if err != nil {
			return false, err
		}
		if ok && o.counts(r, e.cur.Value) {
			r.pos = position{kind: posSort, number: e.cur.Number}
			return true, nil
		}
	}
}

// counts reports whether the row's item is given at an entry with this value.
func (o *ordered) counts(r *row, entry []byte) bool {
	if o.own == nil {
		return true
	}
	o.key, _ = keys.AppendIndex(o.key[:0], sortKey(o.own, &r.item))
	return bytes.Equal(o.key, entry)
}

// name implements namer.
func (o *ordered) name(n *nameOf) (bool, error) {
	if ok, err := o.settle(); err != nil || !ok {
		return false, err
	}
	e := o.h.list[0]
	o.top = true
	*n = nameOf{slot: e.sps[0].slot, number: e.cur.Number, name: e.cur.Name}
	if o.own != nil {
		n.value = e.cur.Value
	}
	return true, nil
}

// settle moves the stream whose entry was given and restores the heap. It returns false at the end.
func (o *ordered) settle() (bool, error) {
	if o.top {
		ok, err := o.h.list[0].next()
		if err != nil {
			return false, err
		}
		if ok {
			heap.Fix(&o.h, 0)
		} else {
			heap.Pop(&o.h).(*entries).close()
		}
		o.top = false
	}
	return len(o.h.list) > 0, nil
}

func (o *ordered) follows() (bool, error) {
	if o.far != nil {
		return o.far.follows()
	}
	return o.settle()
}

func (o *ordered) close() {
	o.h.end(o.all)
}
