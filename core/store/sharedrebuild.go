package store

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// With a shared engine the stage of an index rebuild is what the stored heads say, and nothing else. Any process may
// make any step of it, also at the same time as another one, because each step is a commit with the slot's head as
// precondition. A writer of any process reads the phase with the head.
//
// The first step of a slot (Adding) has one more precondition: the catalog still has the version in which the stage was
// read. So two processes never begin rebuilds to different policies: the one that decided on the older catalog is
// refused, reads the stage again, and goes on with the rebuild that the other has begun.
//
// Example: A begins the rebuild from version 1 to 2 in slot 0 and is killed. The policy is replaced: version 3. B reads
// the heads: a rebuild from 1 to 2 is under way. B completes it in all slots, and then begins the one from 2 to 3.

// errOtherStage says that the catalog has changed since the stage of a rebuild was read: the stage is to be read again.
var errOtherStage = status.Wrap(status.Unavailable, kv.ErrUnavailable, "The catalog has changed.")

// stage is the stage of a rebuild in one snapshot.
type stage struct {
	rebuild
	version uint64 // of the catalog
	newest  uint32 // version of the policy that the definition has
	heads   []*Head
}

// done reports whether all slots follow the newest policy.
func (s *stage) done() bool { return !s.filling && s.to == 0 && s.readable == s.newest }

// staged reads the stage of a rebuild.
func (c *Container) staged(ctx context.Context) (s stage, err error) {
	l, err := c.look(ctx, func(of *Slots) ([]*Slot, [][]byte) { return of.all, nil })
	if err != nil {
		return s, err
	}
	defer l.close()
	if s.version, err = catalog.StoredVersion(l.vals.At(0)); err != nil {
		return s, err
	}
	for i := range l.of.all {
		h := &Head{}
		if err := h.decode(l.head(i)); err != nil {
			return s, err
		}
		s.heads = append(s.heads, h)
	}
	s.newest = c.def.Load().IndexVersion
	var ok bool
	if s.rebuild, ok = between(s.heads, *c.known.Load()); !ok {
		return s, status.New(status.Unavailable, "The index of container %q is not known.", c.Def().ID)
	}
	c.reads(s.readable)
	return s, nil
}

// named returns the indexing policies that stored heads name, or that heads may name which are stored later.
func (c *Container) named(ctx context.Context) (catalog.InUse, error) {
	use := catalog.InUse{Since: c.def.Load().IndexVersion}
	l, err := c.look(ctx, func(of *Slots) ([]*Slot, [][]byte) { return of.all, nil })
	if err != nil {
		return use, err
	}
	defer l.close()
	for i := range l.of.all {
		var h Head
		if err := h.decode(l.head(i)); err != nil {
			return use, err
		}
		use.Versions = append(use.Versions, h.Index, h.Next)
	}
	return use, nil
}

// stagedFor is staged for the goroutine of a rebuild, which tries until it succeeds or ends. stored is false without a
// shared engine: then the stage is what is in memory.
func (c *Container) stagedFor(ctx context.Context) (s stage, stored bool) {
	j := pace{c: c, ctx: ctx}
	for c.st.others && ctx.Err() == nil && !c.dropped.Load() {
		s, err := c.staged(ctx)
		if err == nil {
			return s, true
		}
		c.tried(err)
		j.rest(sharedRetry)
		c.tried(nil)
	}
	return s, false
}

// sharedRetry is the time after which a step that has failed, or a state that others change, is looked at again.
const sharedRetry = 20 * time.Millisecond

// followStage takes over a stage, which may be one that moves wait for. The caller holds defMu.
func (c *Container) followStage(s *stage) {
	if c.rb.to != s.to || c.rb.filling != s.filling {
		c.wake()
	}
	c.rb.from, c.rb.to, c.rb.flipped, c.rb.readable = s.from, s.to, s.flipped, s.readable
	c.rb.filling = s.filling
}

// waitStage is WaitIndex with a shared engine: another process may make the rebuild.
func (c *Container) waitStage(ctx context.Context) error {
	return c.awaitStage(ctx, func(s *stage) bool { return s.done() })
}

// awaitRebuild returns when no slot is between two policies.
func (c *Container) awaitRebuild(ctx context.Context) error {
	return c.awaitStage(ctx, func(s *stage) bool { return s.to == 0 && !s.filling })
}

// awaitStage returns when the stage of a rebuild is one for which ok returns true.
func (c *Container) awaitStage(ctx context.Context, ok func(*stage) bool) error {
	for {
		s, err := c.staged(ctx)
		if err != nil || ok(&s) {
			return err
		}
		t := time.NewTimer(sharedRetry)
		select {
		case <-ctx.Done():
			t.Stop()
			return translate(ctx.Err())
		case <-t.C:
		}
	}
}

// stageProgress is IndexProgress with a shared engine: each slot has two passes, and a pass counts when it is complete.
func (c *Container) stageProgress(ctx context.Context) int {
	s, err := c.staged(ctx)
	if err == nil && s.done() {
		return 100
	}
	n := 0
	for _, h := range s.heads {
		switch {
		case h.Phase == Ready || h.Phase == Removing:
			n++
		case h.Phase == Settled && h.Index == s.newest:
			n += 2
		}
	}
	return min(99, 100*n/max(1, 2*len(s.heads)))
}

// advance writes the next head that step returns for the current one; false: there is nothing to write. It tries again
// while other processes write to the slot.
func (j *rebuilder) advance(sl *Slot, step func(h Head) (Head, bool, []kv.Precondition)) error {
	for {
		raced, err := j.tryAdvance(sl, step)
		if err != nil || !raced {
			return err
		}
		if err := j.follow(); err != nil {
			return err
		}
	}
}

func (j *rebuilder) tryAdvance(sl *Slot, step func(h Head) (Head, bool, []kv.Precondition)) (raced bool, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if err := j.c.newestHead(j.ctx, sl); err != nil {
		return false, err
	}
	sl.rb.extra, sl.rb.fresh = true, nil // other processes write entries of both policies
	h, todo, pre := step(sl.head)
	if !todo {
		return false, nil
	}
	return j.write(sl, &kv.Batch{}, h, pre...) // if pre doesn't hold, the stage is read again
}

// holdTries is how often a rebuild tries to ask the writers of other processes to wait. Each try takes two round trips,
// in which they may write. Without success the chunk is tried nevertheless.
const holdTries = 100

// hold asks the writers of other processes to wait until the next chunk is written (Head.Held). They wait for a bounded
// time (Container.heed). The caller holds the latch.
func (j *rebuilder) hold(sl *Slot) error {
	for range holdTries {
		if err := j.c.newestHead(j.ctx, sl); err != nil {
			return err
		}
		h := sl.head
		if h.Next != j.to || h.Phase == Settled || h.Moved {
			return nil // it is no longer this rebuild's
		}
		h.Held = true
		if raced, err := j.write(sl, &kv.Batch{}, h); err != nil || !raced {
			return err
		}
	}
	return nil
}

// letGo ends what hold has begun, if the chunk hasn't: the next commit of this process stores that nobody waits any
// more. The caller holds the latch.
func (j *rebuilder) letGo(sl *Slot) { sl.head.Held = false }

// addShared is add with a shared engine.
func (j *rebuilder) addShared(sl *Slot) error {
	err := j.advance(sl, func(h Head) (Head, bool, []kv.Precondition) {
		begins := h.Next == 0 && h.Index == j.from
		h.Next, h.Phase = j.to, Adding
		return h, begins, []kv.Precondition{catalog.AtVersion(j.at)}
	})
	if err != nil {
		return err
	}
	if j.in(sl, Adding) {
		return j.pass(sl, Adding)
	}
	return nil // another process has completed it
}

// in reports whether a slot is in a phase of this rebuild.
func (j *rebuilder) in(sl *Slot, p Phase) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	h := &sl.head
	return h.Index == j.from && h.Next == j.to && h.Phase == p
}

// removeShared is remove with a shared engine. The entries of both policies are removed item by item: which entries
// other processes have written isn't known.
func (j *rebuilder) removeShared(sl *Slot) error {
	err := j.advance(sl, func(h Head) (Head, bool, []kv.Precondition) {
		ready := h.Index == j.from && h.Next == j.to && h.Phase == Ready
		h.Phase = Removing
		return h, ready, nil
	})
	if err != nil {
		return err
	}
	if j.in(sl, Removing) {
		return j.pass(sl, Removing)
	}
	return nil
}
