package store

import (
	"context"

	"github.com/orrerydb/orrery/core/kv"
)

// A commit takes its LSN some time before it is visible, and slots commit concurrently. So the visible LSNs have gaps:
// a commit with a lower LSN may still become visible. The settled mark is the LSN up to which there are no such
// commits.
//
// A slot has at most one commit between its LSN and its visibility, because the commit holds the latch. So one number
// for each slot is enough: slot.taking is a lower bound of the LSNs that the holder of the latch will commit, 0 when
// there is no such commit. It is set before the LSN is taken. It is removed on every path on which the commit becomes
// visible or fails.
//
// Example: slot A takes LSN 8 and slot B takes 9. B is visible first. The mark stays below 8, the bound of A, until A
// is visible or has failed. Then it is 9.

// taken removes the lower bound. The caller holds the latch.
func (s *Slot) taken() { s.taking.Store(0) }

// committed stores the slot's last commit, so that readers can wait for it. The caller holds the latch.
func (s *Slot) committed(lsn int64, w kv.Commit) {
	from := s.taking.Load()
	if before := s.last.Load(); before != nil && s.durable.Load() < before.lsn {
		from = before.from
	}
	s.last.Store(&lastCommit{lsn, from, w})
}

// Settled returns the settled mark of slots: visible is the LSN up to which no commit into them can still become
// visible. A crash may still undo visible commits: durable is the LSN up to which all of them are durable, or a little
// lower. A view that is taken after the call holds everything up to visible.
func (c *Container) Settled(slots []*Slot) (visible, durable int64) {
	// The order of the loads matters: a slot that takes an LSN after this load takes a greater one.
	visible = c.counter.given.Load()
	durable = visible
	for _, s := range slots {
		if t := s.taking.Load(); t != 0 {
			visible = min(visible, t-1)
		}
		if last := s.last.Load(); last != nil {
			if d := s.durable.Load(); d < last.lsn {
				durable = min(durable, max(d, last.from-1))
			}
		}
	}
	return visible, min(visible, durable)
}

// ReservedLSN returns an LSN that no commit of the container was ever above, in this process or an earlier one.
func (c *Container) ReservedLSN() int64 { return c.counter.limit() }

// SettleHead waits until everything that the view shows of a slot is durable. It returns the LSN of the slot's last
// commit in the view, and the LSN below which the slot has no feed entries. If the first one is not above after, it
// doesn't wait.
func (v *View) SettleHead(ctx context.Context, slot *ViewSlot, after int64) (last, floor int64, err error) {
	h, err := v.Head(slot)
	if err != nil || h.LSN <= after {
		return h.LSN, h.FeedFloor, err
	}
	return h.LSN, h.FeedFloor, slot.waitDurable(ctx, h.LSN)
}

// BaseLSN returns an LSN that all commits of this process are above.
func (c *Container) BaseLSN() int64 { return c.counter.base() }
