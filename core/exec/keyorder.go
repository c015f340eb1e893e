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
	top   bool   // the first stream of the heap is in the logical partition that is read
	tuple []byte // of the logical partition that is read
	part  source // its items; nil: none yet
	from  *position
	ahead partsAhead
}

func (b *builder) keyOrder(n *plan.Node, _ *position) (source, error) {
	l, _ := newLeaf(b, n.Leaf)
	k := &keyOrder{b: b, node: n.Kids[0], from: b.from}
	k.all = k.h.begin(len(b.spans))
	var after *position
	if b.from != nil {
		v, _ := keys.AppendIndex(nil, b.from.keys[0])
		after = &position{value: v} // the position's own logical partition again, for the ids after it
	}
	for i := 0; i < len(b.spans); {
		var sps []span
		sps, i = b.slotOf(i)
		k.all = append(k.all, entries{b: b, leaf: &l, once: true, sps: sps, after: after})
	}
	if err := k.h.beginAll(b, k.all); err != nil {
		k.close()
		return nil, err
	}
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
	if k.b.view.Remote() {
		return k.partitionAhead()
	}
	slot, err := k.move()
	if slot == nil || err != nil {
		return false, err
	}
	p, err := k.begun(slot)
	if err != nil {
		return false, err
	}
	k.part, err = p.open(k.node, plan.PartitionOrder(p.b))
	return true, err
}

// move moves to the next logical partition and puts its key into k.tuple. It returns no slot at the end. The stream
// moves on only when another partition is needed: a page often ends in the first one.
func (k *keyOrder) move() (*store.ViewSlot, error) {
	for {
		if err := k.b.poll(); err != nil {
			return nil, err
		}
		if k.top {
			if err := k.advance(); err != nil {
				return nil, err
			}
		}
		if len(k.h.list) == 0 {
			return nil, nil
		}
		e := k.h.list[0]
		k.top = true
		rest, err := keys.SkipExact(e.cur.Name)
		if err != nil {
			return nil, err
		}
		tuple, slot := e.cur.Name[:len(e.cur.Name)-len(rest)], e.sps[0].slot
		fresh := !bytes.Equal(tuple, k.tuple)
		if fresh {
			k.tuple = append(k.tuple[:0], tuple...)
		}
		if fresh {
			return slot, nil
		}
	}
}

// advance moves the first stream to its next entry.
func (k *keyOrder) advance() error {
	k.top = false
	ok, err := k.h.list[0].next()
	if err != nil {
		return err
	}
	if ok {
		heap.Fix(&k.h, 0)
	} else {
		heap.Pop(&k.h).(*entries).close()
	}
	return nil
}

// keyPart is a logical partition that is to be read.
type keyPart struct {
	b    *builder  // for its span
	from *position // the query's position if it lies in this partition
	scan *scan     // begun ahead; nil: not begun

	order  plan.Op // what gives the order of its ids, if it was begun ahead
	passed int     // index entries that were examined to find it
}

// begun prepares the logical partition k.tuple.
func (k *keyOrder) begun(slot *store.ViewSlot) (p keyPart, err error) {
	place, err := k.b.view.Container().AppendPlace(nil, k.tuple)
	if err != nil {
		return p, err
	}
	own := *k.b
	own.spans, own.from = []span{spanOfKey(slot, place, bytes.Clone(k.tuple))}, nil
	p.b = &own
	if f := k.from; f != nil && bytes.Equal(keys.AppendExact(nil, f.keys[0]), k.tuple) {
		p.from = f
	}
	k.from = nil // the position is in the first partition or before it
	return p, nil
}

// open makes the source of the partition: a scan where that gives the order of ids, else a sort.
func (p *keyPart) open(n *plan.Node, order plan.Op) (source, error) {
	if order != plan.Sort {
		if p.scan == nil {
			p.scan = p.newScan(p.b)
		}
		return p.scan, nil
	}
	p.close()
	p.b.from = p.from
	s := newSorter(p.b, n)
	var err error
	s.src, err = s.candidates()
	return s, err
}

// newScan makes the scan of the partition, in the order of its ids.
func (p *keyPart) newScan(b *builder) *scan {
	var at *position
	if p.from != nil {
		base := p.b.spans[0].base
		at = &position{kind: posScan, key: keys.AppendExact(base[:len(base):len(base)], p.from.keys[1])}
	}
	return newScan(b, p.b.spans, at)
}

func (p *keyPart) close() {
	if p.scan != nil {
		p.scan.close()
		p.scan = nil
	}
}

func (k *keyOrder) follows() (bool, error) {
	for {
		if k.part != nil {
			if ok, err := k.part.follows(); ok || err != nil {
				return ok, err
			}
			k.part.close()
			k.part = nil
		}
		if ok, err := k.partition(); err != nil || !ok {
			return false, err
		}
	}
}

func (k *keyOrder) close() {
	if k.part != nil {
		k.part.close()
	}
	k.h.end(k.all)
	k.ahead.close()
}
