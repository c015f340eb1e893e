package exec

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// keyOrder gives items in the order of their partition key and id, over all logical partitions: it walks the index
// entries of the key's path, merged over the slots, and reads each logical partition in the order of its ids. Nothing
// is held; a logical partition costs a seek. Its positions are those of a sort, which can go on for it.
//
// Example: tables, whose answers are ordered by PartitionKey and RowKey.
type keyOrder struct {
	b     *builder
	all   []entries
	h     mergeHeap
	tuple []byte // of the logical partition that is read
	part  source // its items; nil: none yet
	from  *position
}

// keyOrder makes the source of a query that wants this order; nil where it can't be told from the index. Where an index
// names few items their names are sorted.
func (b *builder) keyOrder(plan *access.Plan) (source, error) {
	o, ks := b.q.OrderBy, b.KeyPaths()
	if len(o) != 2 || len(ks) != 1 || o[0].Desc || o[1].Desc || o[0].Key != nil || o[1].Key != nil ||
		o[0].Path.Elements ||
		!slices.Equal(o[0].Path.Segs, ks[0]) || !isID(o[1].Path) || b.from != nil && b.from.cut || b.spans[0].full ||
		b.view.Container().Def().KeyIsID() {
		return nil, nil
	}
	onKey := plan.Leaf != nil && plan.Leaf.Comp == nil && !plan.Leaf.Path.Elements &&
		slices.Equal(plan.Leaf.Path.Segs, ks[0])
	switch plan.Kind {
	case access.Scan:
	case access.Index, access.Ordered:
		if !onKey && !b.walksKeys(plan) {
			return b.nameOrder(plan)
		}
	default:
		return nil, nil
	}
	if !b.keysAreTexts(ks[0]) {
		return nil, nil
	}
	leaf := access.Exists(access.Path{Segs: ks[0]})
	if onKey {
		leaf = plan.Leaf
	}
	l, ok := newLeaf(b, leaf)
	if !ok {
		return nil, nil
	}
	return newKeyOrder(b, l)
}

// What a source of key order costs, in the unit of an index entry that is walked: a row that is passed over on the way
// through all, with its part of the seek to its logical partition; and an item that is fetched by name.
const (
	costPassed  = 8
	costFetched = 16
)

// walksKeys reports whether a walk over all items in key order finds a page of those that the plan names sooner than
// the names of all of them are gathered.
//
// Example: of 10,000 items a condition holds for 5,000, and the page has 20. A walk passes 40 items; to gather would
// take 5,000 entries. Where it holds for 100 items, a walk passes 2,000.
func (b *builder) walksKeys(plan *access.Plan) bool {
	if plan.Leaf == nil {
		return false
	}
	share, size := b.Share(plan.Leaf), float64(b.sizeOf(b.spans))
	named := share * size
	if named > maxCreation {
		return true
	}
	page := float64(cmp.Or(b.q.Page, b.q.Limit))
	return page > 0 && named > page && page/share*costPassed < named+page*costFetched
}

// keysAreTexts reports whether the index entries of the partition key's path name every item, in the order of the keys:
// all are texts that aren't cut.
func (b *builder) keysAreTexts(path []string) bool {
	if !b.view.Indexed() || !b.Policy().Covers(path, false) {
		return false
	}
	if b.unordered(&access.Pred{Path: access.Path{Segs: path}}) {
		return false
	}
	class, id := byte(value.ClassString), b.Policy().PathID(path)
	for i := range b.spans {
		slot := b.spans[i].slot
		if slot.Classes()&(1<<(value.ClassUndefined>>3)) != 0 || !b.oneClass(slot, id, &class) {
			return false
		}
	}
	return true
}

func newKeyOrder(b *builder, l leaf) (source, error) {
	k := &keyOrder{b: b, from: b.from, all: make([]entries, 0, len(b.spans))}
	var after *position
	if b.from != nil {
		v, _ := keys.AppendIndex(nil, b.from.keys[0])
		after = &position{value: v} // its own logical partition again, for the ids behind
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

// partition begins the next logical partition; false at the end.
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

// open makes the source of a logical partition: a scan, where its ids are of one class, else a sort.
func (k *keyOrder) open(slot *store.ViewSlot) error {
	place, err := k.b.view.Container().AppendPlace(nil, k.tuple)
	if err != nil {
		return err
	}
	own := *k.b
	own.spans, own.from = []span{spanOfKey(slot, place, bytes.Clone(k.tuple))}, nil
	from := k.from
	k.from = nil // it is in the first one or before it
	here := from != nil && bytes.Equal(keys.AppendExact(nil, from.keys[0]), k.tuple)
	if !own.natural(k.b.q.OrderBy[1:]) {
		if here {
			own.from = from
		}
		s := newSorter(&own, access.Plan{Kind: access.Scan})
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
