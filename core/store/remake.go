package store

import (
	"context"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// remakeChunk is how many operations one commit of a remake has at most.
const remakeChunk = 4096

// remakeSlot throws a slot's index entries away and makes them again, at load. It needs to know nothing of them: the way out for
// entries of a policy that nobody knows any more.
func (c *Container) remakeSlot(sl *slot, pol *index.Policy, to uint32) error {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	snap := c.st.eng.Snapshot()
	defer snap.Close()
	w := chunkWriter{c: c, sl: sl}
	for _, kind := range [...]keys.Kind{keys.KindFact, keys.KindIndex} {
		lo, hi := keys.KindBounds(sl.key, kind)
		if err := each(snap, lo, hi, func(key, _ []byte) error { return w.delete(key) }); err != nil {
			return err
		}
	}
	sl.facts.Store(nil)
	h := sl.head
	h.Index, h.Next, h.Phase, h.Facts = to, 0, Settled, h.Facts+1
	h.setFlags(&indexFlags{classes: index.Kept})
	v := View{c: c, snap: snap}
	lo, hi := keys.KindBounds(sl.key, keys.KindItem)
	err := each(snap, lo, hi, func(key, val []byte) error {
		var it Item
		if _, err := v.Decode(&it, key[keys.PrefixLen:], val); err != nil {
			return err
		}
		t := collect(pol, &it)
		defer termsPool.Put(t)
		more := flagsOf(t, it.ident)
		h.addFlags(&more)
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
	if w.b.Len() < remakeChunk {
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
