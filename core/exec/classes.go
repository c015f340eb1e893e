package exec

import (
	"runtime"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/store"
)

// classes holds the class of the first and of the last index entry at a path in a slot. Both are 0 if there are no
// entries.
type classes struct{ first, last byte }

// oneClass reports whether all entries of a path in a slot have one class, and the same class as in the slots before.
// For many slots the first call reads all of them in parallel, with one iterator for each goroutine.
func (b *builder) oneClass(slot *store.ViewSlot, path uint64, class *byte) bool {
	c, ok := b.classes[path][slot]
	if !ok {
		var err error
		if c, err = b.classesAt(slot, path); err != nil {
			b.failed(err)
			return false
		}
	}
	switch {
	case c.first != c.last || c.first != 0 && *class != 0 && *class != c.first:
		return false
	case c.first != 0:
		*class = c.first
	}
	return true
}

// classesAt finds the classes at a path in a slot. If the query reads many slots, it finds those of all slots.
func (b *builder) classesAt(slot *store.ViewSlot, path uint64) (classes, error) {
	remote := b.view.Remote()
	if len(b.spans) <= fewStreams && !remote {
		var it kv.Iterator
		c, err := b.classesOf(&it, slot, path)
		if it != nil {
			b.rest(it)
		}
		return c, err
	}
	slots := make([]*store.ViewSlot, 0, len(b.spans))
	for i := 0; i < len(b.spans); {
		slots = append(slots, b.spans[i].slot)
		_, i = b.slotOf(i)
	}
	workers := runtime.GOMAXPROCS(0)
	if remote {
		workers = remoteAtOnce
	}
	its := make([]kv.Iterator, workers)
	found := make([]classes, len(slots))
	err := b.beside(workers, len(slots), func(own *builder, i, worker int) (err error) {
		found[i], err = own.classesOf(&its[worker], slots[i], path)
		return err
	})
	for _, it := range its {
		if it != nil {
			_ = it.Close()
		}
	}
	if err != nil {
		return classes{}, err
	}
	if b.classes == nil {
		b.classes = map[uint64]map[*store.ViewSlot]classes{}
	}
	all := make(map[*store.ViewSlot]classes, len(slots))
	for i, c := range found {
		all[slots[i]] = c
	}
	b.classes[path] = all
	return all[slot], nil
}

// classesOf reads the first and the last entry of a slot with an iterator. It makes the iterator if there is none.
func (b *builder) classesOf(it *kv.Iterator, slot *store.ViewSlot, path uint64) (c classes, err error) {
	var mem [2 * 32]byte
	lo := keys.AppendIndexPath(mem[:0:32], slot.Key(), path)
	if hi := keys.AppendAfter(mem[32:32], lo); *it != nil {
		(*it).Reset(lo, hi)
	} else if *it, err = b.iter(lo, hi); err != nil {
		return c, err
	}
	(*it).Ahead(1)
	if (*it).First() {
		c.first = (*it).Key()[len(lo)]
		if (*it).Last() {
			c.last = (*it).Key()[len(lo)]
		}
	}
	return c, (*it).Err()
}
