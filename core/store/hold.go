package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
)

// With a shared engine a writer races with those of other processes. One that has lost mostLost races holds its slot:
// it takes the latch, and then the lock of the slot's head in the store (kv.Holder). What it decides on it reads after
// that. Until it has committed nobody else commits in the slot. So do the next writers of this process, rivalCommits of
// them: where one race was lost there are others, and an attempt that loses is a wait for nothing.
//
// The order matters. Otherwise another writer of this process could have the latch, and wait for the lock, whose holder
// needs the latch to commit.
//
// A hold is bounded: holdMost after it has begun the latch is free again, and the store's lock ends by itself. The
// writer goes on as one without a hold then. Correctness doesn't depend on it, because a commit has its preconditions
// in any case. So a function that waits for a latch while it has one is late, not stuck.
//
// Who copies or rebuilds the slot may ask writers to wait (Container.heed), and then replaces the head. A writer that
// holds the head would be in its way for as long as it waits. So it frees the lock first, and begins again after that.
//
// Example: transaction T has lost a race. It takes the latch, and asks for the lock. Writer W of this process waits for
// the latch. A writer of another process meets the lock, and has lost a race. T reads, runs its function and commits.

// A transaction over several slots holds all of them: it takes all latches, and then all locks, each in their order.
// Only its commit follows, so it needs no other bound.

const (
	mostLost     = 1           // races that a writer loses before it holds its slot
	rivalCommits = 8           // attempts of others, after a lost race, that hold the slot
	holdMost     = time.Second // many times the duration of a function that only computes
)

// contested reports whether the next attempt of a writer that has lost some races is to hold the slot.
func (sl *Slot) contested(lost int) bool {
	return lost >= mostLost || sl.rivals.Load() > 0 && sl.rivals.Add(-1) >= 0
}

// hold is what a writer has of a slot before its look. nil is none.
type hold struct {
	sl   *Slot
	has  atomic.Bool // the writer has the latch
	snap kv.Snapshot // has the store's lock; nil: a look has it
	over chan struct{}
}

// hold waits for the latch of a slot, and for the lock of its head. The caller calls end after its commit.
func (c *Container) hold(ctx context.Context, sl *Slot) (*hold, error) {
	if err := sl.mu.LockFor(ctx); err != nil {
		return nil, err
	}
	h := &hold{sl: sl, over: make(chan struct{})}
	h.has.Store(true)
	var err error
	if h.snap, err = kv.Hold(ctx, c.st.eng, c.heldKeys(sl)...); err != nil {
		h.free()
		return nil, translate(err)
	}
	if !c.st.work.Go("the end of a hold", h.bound) { // the store is being closed
		h.free()
	}
	return h, nil
}

// bound frees the latch after holdMost, if the hold isn't over.
func (h *hold) bound() {
	t := time.NewTimer(holdMost)
	defer t.Stop()
	select {
	case <-t.C:
		h.free()
	case <-h.over:
	}
}

// look returns the snapshot that has the store's lock. It returns nil where there is no hold. If the look is repeated
// the hold is over.
func (h *hold) look() kv.Snapshot {
	if h == nil {
		return nil
	}
	s := h.snap
	if h.snap = nil; s == nil {
		h.free()
	}
	return s
}

// take takes the latch out of the hold. It reports whether it was there.
func (h *hold) take(sl *Slot) bool { return h != nil && h.sl == sl && h.has.Swap(false) }

// inTheWay reports whether a head that the writer has read asks writers to wait. Then the lock has to be free first.
// The caller holds the latch.
func (h *hold) inTheWay(head []byte) bool { return h != nil && h.sl.asks(head) }

func (h *hold) free() {
	if h.has.Swap(false) {
		h.sl.mu.Unlock()
	}
}

// end ends the hold.
func (h *hold) end() {
	if h == nil {
		return
	}
	close(h.over)
	h.free()
	if h.snap != nil {
		_ = h.snap.Close()
	}
}

// holdOfAll is a snapshot that has the locks of several heads. nil is none.
type holdOfAll struct {
	snap kv.Snapshot        // nil: it has ended
	over context.CancelFunc // ends its ctx
}

func (h *holdOfAll) end() {
	if h != nil && h.snap != nil {
		_ = h.snap.Close()
		h.snap = nil
		h.over()
	}
}

// has fails with ErrConflict if a record, which was read before, is another one in the snapshot. All other
// preconditions of a commit are known from the snapshot, or from later.
func (h *holdOfAll) has(ctx context.Context, with *attached) error {
	if with == nil {
		return nil
	}
	return kv.CheckIn(kv.With(ctx, h.snap), []kv.Precondition{with.was.was(with.Name.key())})
}

// holdAll holds the heads of all slots of a draft in the store, and takes them over. It returns nil if that takes
// longer than holdMost: the commit goes on without. later says that a container follows an older catalog than there
// is. The caller has the latches of the slots, and ends the result.
func (d *draft) holdAll(ctx context.Context) (h *holdOfAll, later bool, err error) {
	names := make([][]byte, len(d.parts), len(d.parts)+1)
	for i := range d.parts {
		names[i] = d.parts[i].sl.headKey[:]
	}
	within, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	var settled atomic.Bool // it is known whether that has taken too long
	if !d.c.st.work.Go("the end of waiting for holds", func() {
		t := time.NewTimer(holdMost)
		defer t.Stop()
		select {
		case <-t.C:
			if !settled.Swap(true) {
				cancel()
			}
		case <-over:
		}
	}) { // the store is being closed
		cancel()
	}
	snap, err := kv.Hold(within, d.c.st.eng, names...)
	late := settled.Swap(true)
	close(over)
	if err != nil {
		cancel()
		if late && ctx.Err() == nil {
			err = nil
		}
		return nil, false, translate(err)
	}
	h = &holdOfAll{snap, cancel}
	if !late {
		later, err = d.adoptFrom(ctx, h, append(names, catalog.VersionKey()))
	}
	if late || later || err != nil {
		h.end()
		h = nil
	}
	return h, later, translate(err)
}

// adoptFrom takes over the heads of a draft's slots as a hold shows them. names are their keys, and that of the
// catalog's version. If a head asks writers to wait, the hold is ended before that, and later is true.
func (d *draft) adoptFrom(ctx context.Context, h *holdOfAll, names [][]byte) (later bool, err error) {
	var vals kv.Values
	if err := kv.With(ctx, h.snap).GetMany(&vals, names); err != nil {
		return false, err
	}
	asked := false
	for i := range d.parts {
		asked = asked || d.parts[i].sl.asks(vals.At(i))
	}
	if asked {
		h.end()
	}
	for i := range d.parts {
		sl := d.parts[i].sl
		if later, err := sl.c.later(vals.At(len(d.parts))); later || err != nil {
			return later, err
		}
		if err := sl.c.adopt(ctx, sl, vals.At(i)); err != nil {
			return false, err
		}
	}
	return asked, nil
}

// contested reports whether the next attempt of a writer that has lost some races is to hold the slots of a draft.
func (d *draft) contested(lost int) (any bool) {
	for i := range d.parts {
		any = d.parts[i].sl.contested(lost) || any
	}
	return any
}

// lockFor takes the latch for a writer that may have a hold.
func (sl *Slot) lockFor(ctx context.Context, h *hold) error {
	if h.take(sl) {
		return nil
	}
	return sl.mu.LockFor(ctx)
}
