package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// With a shared engine the upgrade of a container is the same as with a local one (upgrade.go), in three steps that any
// process may make:
//
//  1. The first process that opens the container stores the heads of bare slots in place of those of an older format,
//     all in one commit. From then on every process reads in the heads that the index must not be used yet, and which
//     entries its writers keep.
//  2. The process with the container's lease fills one slot after the other. The commits of a pass have the slot's head
//     as precondition, like all steps of a rebuild (sharedrebuild.go).
//  3. The last commit of a slot's pass says that the slot is whole. When all are, queries use the index.
//
// The same happens if the slots' heads contradict each other, or name a policy that nobody knows.
//
// Example: processes A and B open a container of format 2. Both find an old head and want to store a bare one; B's
// commit is refused, and B reads A's. A fills the slot and is killed halfway. After ten seconds B gets the lease, finds
// the slot still bare, and fills it from the beginning.

// errRenewed is the error of a load whose commit of renewed heads was refused, or has an unknown outcome: the container
// is loaded again.
var errRenewed = status.New(status.Unavailable, "The container's index is being changed by others.")

// maxRenewals is how often a container is loaded again after errRenewed.
const maxRenewals = 16

// storeRenewed stores the heads that survey has renewed, if all heads and the definition are still what it has decided
// on. Nobody else has the container yet.
func (c *Container) storeRenewed(ctx context.Context) error {
	def, version, err := c.st.cat.At(ctx, c.Def().RID(), c.gen)
	if err != nil {
		return err
	}
	if def.Version != c.Def().Version {
		return errRenewed
	}
	var b kv.Batch
	pre := []kv.Precondition{catalog.AtVersion(version)}
	slots := c.slotList()
	heads := make([][]byte, len(slots))
	for i, sl := range slots {
		pre = append(pre, sl.asRead()...)
		if heads[i] = sl.headBytes; sl.unread != nil {
			sl.head.Writer = c.st.writer
			heads[i] = sl.head.append(nil)
			b.Put(sl.headKey[:], heads[i])
		}
	}
	cm, err := c.st.eng.Write(ctx, &b, pre)
	if err == nil {
		err = cm.Wait()
	}
	switch {
	case errors.Is(err, kv.ErrConflict), errors.Is(err, kv.ErrUnknownOutcome):
		return errRenewed
	case err != nil:
		return translate(err)
	}
	for i, sl := range slots {
		sl.headBytes, sl.unread = heads[i], nil
	}
	return nil
}

// loadNewest loads the newest version of a container.
func (s *Store) loadNewest(ctx context.Context, def *catalog.Container) (c *Container, err error) {
	for range maxRenewals {
		if c, err = s.load(ctx, s.newest(ctx, def)); !errors.Is(err, errRenewed) {
			break
		}
	}
	return c, err
}

// fillShared is fillSlot with a shared engine.
func (j *rebuilder) fillShared(sl *Slot) error {
	var bare, stale bool
	look := func(h Head) (Head, bool, []kv.Precondition) {
		bare, stale = h.bare(), h.Stale
		return h, false, nil
	}
	if err := j.advance(sl, look); err != nil || !bare {
		return err
	}
	if stale {
		if err := j.clean(sl); err != nil {
			return err
		}
		err := j.advance(sl, func(h Head) (Head, bool, []kv.Precondition) {
			cleaned := h.bare() && h.Stale
			h.Stale = false
			return h, cleaned, j.lease.Fence()
		})
		if err != nil {
			return err
		}
	}
	if j.in(sl, Adding) {
		return j.pass(sl, Adding)
	}
	return nil // another process has completed it
}

// upgradeStage is Upgrade with a shared engine: another process may fill the slots.
func (c *Container) upgradeStage(ctx context.Context) error {
	return c.awaitStage(ctx, func(s *stage) bool { return !s.filling })
}

// filledStage is the completed part of an upgrade in percent with a shared engine: a slot counts when it is complete.
func (c *Container) filledStage(ctx context.Context) int {
	s, err := c.staged(ctx)
	if err == nil && !s.filling {
		return 100
	}
	n := 0
	for _, h := range s.heads {
		if !h.bare() {
			n++
		}
	}
	return min(99, 100*n/max(1, len(s.heads)))
}
