package exec

import (
	"bytes"
	"container/heap"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/store"
)

// keyOrder gives items in the order of their partition key and id, over all logical partitions. It walks the index
// entries of the key's path, merged over the slots, and reads each logical partition in the order of its ids. It holds
// no rows in memory. A logical partition costs one seek. Its positions are those of a sort, so a sort can continue
// after it.
//
// Example: tables, whose answers are ordered by PartitionKey and RowKey.
type keyOrder struct {
	b     *builder
	node  *plan.Node // of one logical partition
	all   []entries
	h     mergeHeap
	tuple []byte // of the logical partition that is read
	part  source // its items; nil: none yet
	from  *position
}

func (b *builder) keyOrder(n *plan.Node, _ *position) (source, error) {
	l, _ := newLeaf(b, n.Leaf)
	k := &keyOrder{b: b, node: n.Kids[0], from: b.from, all: make([]entries, 0, len(b.spans))}
	var after *position
	if b.from != nil {
		v, _ := keys.AppendIndex(nil, b.from.keys[0])
		after = &position{value: v} // the position's own logical partition again, for the ids after it
	}
	for i := 0; i < len(b.spans); {
		var sps []span
		sps, i = b.slotOf(i)
		one := l
		k.all = append(k.all, entries{b: b, leaf: &one, once: true})
		e := &k.all[len(k.all)-1]
		if err := k.h.begin(e, sps, after); err != nil {
			k.close()
			return nil, err
		}
	}
	heap.Init(&k.h)
	return k, nil
}

func (k *keyOrder) next(r *row) (bool, error) {
	for {
		if k.part != nil {
			ok, err := k.part.next(r)
			if err != nil {
				return false, err
			}
			if ok {
				r.pos = position{kind: posSort, number: k.b.rank(&r.item)}
				return true, nil
			}
			k.part.close()
			k.part = nil
		}
		if ok, err := k.partition(); err != nil || !ok {
			return false, err
		}
	}
}

// partition begins the next logical partition. It returns false at the end.
func (k *keyOrder) partition() (bool, error) {
	for len(k.h.list) > 0 {
		if err := k.b.poll(); err != nil {
			return false, err
		}
		e := k.h.list[0]
		rest, err := keys.SkipExact(e.cur.Name)
		if err != nil {
			return false, err
		}
		tuple, slot := e.cur.Name[:len(e.cur.Name)-len(rest)], e.sps[0].slot
		fresh := !bytes.Equal(tuple, k.tuple)
		if fresh {
			k.tuple = append(k.tuple[:0], tuple...)
		}
		ok, err := e.next()
		if err != nil {
			return false, err
		}
		if ok {
			heap.Fix(&k.h, 0)
		} else {
			heap.Pop(&k.h).(*entries).close()
		}
		if fresh {
			return true, k.open(slot)
		}
	}
	return false, nil
}

// open makes the source of a logical partition: a scan if its ids are of one class, else a sort.
func (k *keyOrder) open(slot *store.ViewSlot) error {
	place, err := k.b.view.Container().AppendPlace(nil, k.tuple)
	if err != nil {
		return err
	}
	own := *k.b
	own.spans, own.from = []span{spanOfKey(slot, place, bytes.Clone(k.tuple))}, nil
	from := k.from
	k.from = nil // the position is in the first partition or before it
	here := from != nil && bytes.Equal(keys.AppendExact(nil, from.keys[0]), k.tuple)
	if !own.IDsInOneClass() {
		if here {
			own.from = from
		}
		s := newSorter(&own, k.node)
		k.part = s
		s.src, err = s.candidates()
		return err
	}
	var at *position
	if here {
		base := own.spans[0].base
		at = &position{kind: posScan, key: keys.AppendExact(base[:len(base):len(base)], from.keys[1])}
	}
	k.part = newScan(&own, own.spans, at)
	return nil
}

func (k *keyOrder) empty() bool {
	for {
		if k.part != nil {
			if !k.part.empty() {
				return false
			}
			k.part.close()
			k.part = nil
		}
		if ok, err := k.partition(); err != nil || !ok {
			return err == nil
		}
	}
}

func (k *keyOrder) close() {
	if k.part != nil {
		k.part.close()
	}
	for i := range k.all {
		k.all[i].close()
	}
}
