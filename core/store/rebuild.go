package store

import (
	"context"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// build is an index rebuild under way: slots whose head names version to follow policy already.
type build struct {
	policy *index.Policy
	to     uint32
}

// rebuildChunk is how many operations one commit of a rebuild has at most.
const rebuildChunk = 4096

// rebuildIndex moves the container to a new definition with another indexing policy: slot by slot, each under its latch, the
// entries are removed and made again, and the head's index version says so. A crash leaves slots with an older version;
// load finishes them. Queries go without the index meanwhile, and also when a rebuild failed half way, until the next one.
func (c *Container) rebuildIndex(def *catalog.Container) error {
	pol, err := index.Compile(def.IndexingPolicy, uint64(def.Gen))
	if err != nil {
		return err
	}
	c.building.Store(&build{pol, def.IndexVersion})
	c.def.Store(def)
	for _, sl := range c.slots {
		if err := c.rebuildSlot(sl, pol, def.IndexVersion); err != nil {
			return err
		}
	}
	c.pol.Store(pol)
	c.building.Store(nil)
	return nil
}

// rebuildSlot makes a slot's index entries again.
func (c *Container) rebuildSlot(sl *slot, pol *index.Policy, to uint32) error {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.head.Index == to {
		return nil
	}
	snap := c.st.eng.Snapshot()
	defer snap.Close()
	w := chunkWriter{c: c, sl: sl}
	lo, hi := keys.KindBounds(sl.key, keys.KindIndex)
	if err := each(snap, lo, hi, func(key, _ []byte) error { return w.delete(key) }); err != nil {
		return err
	}
	h := sl.head
	h.Index, h.Classes, h.Elements, h.Lossy = to, index.Kept, index.Bloom{}, index.Bloom{}
	h.Tracked = nil
	v := View{c: c, snap: snap}
	lo, hi = keys.KindBounds(sl.key, keys.KindItem)
	err := each(snap, lo, hi, func(key, val []byte) error {
		var it Item
		if _, err := v.Decode(&it, key[keys.PrefixLen:], val); err != nil {
			return err
		}
		t := collect(pol, &it)
		defer termsPool.Put(t)
		h.Classes |= t.Classes | keyClasses(it.ident)
		h.Elements.Merge(&t.Elements)
		h.Lossy.Merge(&t.Lossy)
		for i := range t.Len() {
			term, flag := t.At(i)
			if err := w.put(keys.AppendIndexEntry(nil, sl.key, term, it.Number, it.ident), []byte{flag}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	head := h.append(nil)
	if err := w.put(sl.headKey, head); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	sl.head, sl.headBytes = h, head
	sl.publish()
	return nil
}

// each calls f for every key of a range.
func each(snap kv.Snapshot, lo, hi []byte, f func(key, val []byte) error) error {
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return translate(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return translate(it.Err())
}

// chunkWriter writes a long run of operations into a slot in commits of bounded size, each under the precondition that the
// slot's head is still there: a dropped container stays empty. The latch is held.
type chunkWriter struct {
	c  *Container
	sl *slot
	b  kv.Batch
}

func (w *chunkWriter) put(key, val []byte) error {
	w.b.Put(key, val)
	return w.full()
}

func (w *chunkWriter) delete(key []byte) error {
	w.b.Delete(key)
	return w.full()
}

func (w *chunkWriter) full() error {
	if w.b.Len() < rebuildChunk {
		return nil
	}
	return w.flush()
}

func (w *chunkWriter) flush() error {
	pre := [1]kv.Precondition{{Key: w.sl.headKey, Expect: kv.Equal, Value: w.sl.headBytes}}
	cm, err := w.c.st.eng.Write(context.Background(), &w.b, pre[:])
	if err != nil {
		if raced, err := w.c.lost(w.sl, err); !raced {
			return err
		}
		return translate(kv.ErrUnavailable)
	}
	if err := cm.Wait(); err != nil {
		return translate(err)
	}
	w.b.Reset()
	return nil
}
