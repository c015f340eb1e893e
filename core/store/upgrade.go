package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// A slot of a store of format 1 or 2 has index and number entries that this version doesn't read: it is bare. Its
// upgrade is a rebuild in one pass, from a policy without entries. While a slot of a container is bare, the container's
// queries read items. They use the policy that the container will have, so they refuse nothing that it allows.
//
// Nothing is written before the upgrade begins. From the load on, the slot's head in memory is that of a bare slot. So
// the first commit writes such a head.

// fill builds the entries of a container's bare slots for the policy that queries use.
func (j *rebuilder) fill() error {
	for _, sl := range j.c.slotList() {
		if err := j.fillSlot(sl); err != nil {
			return err
		}
	}
	if err := j.settle(); err != nil {
		return err
	}
	c := j.c
	c.defMu.Lock()
	defer c.defMu.Unlock()
	c.rb.filling = false
	c.wake()
	if c.st.others { // another process may find that slots are bare
		return nil
	}
	known := policies{}
	for _, p := range *c.known.Load() {
		if p.version != 0 {
			known = append(known, p)
		}
	}
	c.known.Store(&known)
	return nil
}

func (j *rebuilder) fillSlot(sl *Slot) error {
	if j.c.st.others {
		return j.fillShared(sl)
	}
	sl.mu.Lock()
	bare, stale := sl.head.bare(), sl.head.Stale
	sl.mu.Unlock()
	sl.rb.done.Store(0)
	if !bare {
		sl.rb.done.Store(sl.items.Load() + 1)
		return nil
	}
	if stale {
		if err := j.clean(sl); err != nil {
			return err
		}
	}
	sl.mu.Lock()
	sl.head.Stale = false // the next commit writes it
	sl.rb.extra, sl.rb.fresh = false, &indexFlags{}
	sl.mu.Unlock()
	return j.pass(sl, Adding)
}

// clean removes the existing index and number entries. Entries that writers add meanwhile may be removed too: the next
// pass adds all entries again. If the process ends before a commit records the end, the next process repeats it.
func (j *rebuilder) clean(sl *Slot) error {
	for _, kind := range []keys.Kind{keys.KindFormerNumber, keys.KindFormerIndex} {
		lo, hi := keys.KindBounds(sl.key, kind)
		some, err := j.some(lo, hi)
		if err == nil && some {
			err = j.c.st.eng.DropRange(j.ctx, lo, hi)
		}
		if err != nil {
			return translate(err)
		}
	}
	for _, kind := range []keys.Kind{keys.KindNumber, keys.KindIndex} {
		// DropRange is not for a range that is in use
		if err := j.deleteAll(sl, kind); err != nil {
			return err
		}
	}
	return nil
}

// some reports whether there is any key in a range.
func (j *rebuilder) some(lo, hi []byte) (bool, error) {
	snap, err := j.c.st.eng.Snapshot(j.ctx)
	if err != nil {
		return false, err
	}
	defer snap.Close()
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return false, err
	}
	defer it.Close()
	return it.First(), it.Err()
}

// deleteAll deletes the keys of a kind, in commits of bounded size. Each has the precondition that the slot exists.
func (j *rebuilder) deleteAll(sl *Slot, kind keys.Kind) error {
	lo, hi := keys.KindBounds(sl.key, kind)
	return j.deleteIn(sl, lo, hi)
}

// deleteIn deletes the keys of a range in a slot as deleteAll does.
func (j *rebuilder) deleteIn(sl *Slot, lo, hi []byte) error {
	snap, err := j.c.st.eng.Snapshot(j.ctx)
	if err != nil {
		return translate(err)
	}
	defer snap.Close()
	b := kv.Batch{Frees: true}
	err = each(snap, lo, hi, func(key, _ []byte) error {
		if b.Delete(key); b.Len() < rebuildOps {
			return nil
		}
		if err := j.deleted(sl, &b); err != nil {
			return err
		}
		return j.pause()
	})
	if err == nil && b.Len() > 0 {
		err = j.deleted(sl, &b)
	}
	return err
}

func (j *rebuilder) deleted(sl *Slot, b *kv.Batch) error {
	pre := append(j.lease.Fence(), kv.Precondition{Key: sl.headKey[:], Expect: kv.Present})
	cm, err := j.c.st.eng.Write(j.ctx, b, pre)
	if errors.Is(err, kv.ErrConflict) {
		return j.refused(sl, err)
	}
	if err == nil {
		err = cm.Wait()
	}
	b.Reset()
	b.Frees = true
	return translate(err)
}

// UpgradeProgress returns the completed part of the container's upgrade in percent; 100 when there is nothing to do.
func (c *Container) UpgradeProgress(ctx context.Context) int {
	if c.st.others {
		return c.filledStage(ctx)
	}
	if c.Numbered() {
		return 100
	}
	return c.filled()
}

// filled returns the completed part of the slots' entries in percent.
func (c *Container) filled() int {
	var all, done int64
	for _, sl := range c.slotList() {
		n := sl.items.Load() + 1 // an empty slot counts as work too
		all += n
		done += min(n, sl.rb.done.Load())
	}
	return int(min(99, 100*done/all))
}

// Current reports whether all slots of a container have the entries of the current format. It opens nothing.
func (s *Store) Current(ctx context.Context, def *catalog.Container) (bool, error) {
	s.mu.RLock()
	c := s.open[def.Gen].get()
	s.mu.RUnlock()
	if c != nil && !s.others {
		return c.Numbered(), nil
	}
	for slot := range def.SlotKeys() {
		b, err := s.eng.Get(ctx, nil, keys.AppendPrefix(nil, slot, keys.KindHead))
		if errors.Is(err, kv.ErrNotFound) {
			return false, errDropped()
		}
		if err != nil {
			return false, translate(err)
		}
		var h Head
		if err := h.decode(b); err != nil || h.bare() {
			return false, err
		}
	}
	return true, nil
}

// Upgrade returns when all slots of a container have the entries of the current format, or when an attempt to make them
// has failed. The attempt began when the container was loaded. After a failure it is repeated in the background.
func (c *Container) Upgrade(ctx context.Context) error {
	if c.st.others {
		return c.upgradeStage(ctx)
	}
	for {
		c.defMu.Lock()
		r := c.rb
		c.defMu.Unlock()
		if err := c.Alive(); err != nil || !r.filling {
			return err
		}
		switch {
		case r.failed != nil:
			return r.failed
		case !r.running:
			return status.New(status.Unavailable, "The store is closing.")
		}
		select {
		case <-ctx.Done():
			return translate(ctx.Err())
		case <-r.wake:
		}
	}
}
