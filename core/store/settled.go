package store

import (
	"context"

	"github.com/orrerydb/orrery/core/kv"
)

// A commit takes its LSN some time before it is visible, and slots do so side by side. So what is visible has gaps: a
// commit with a lower LSN may still be on its way. The settled mark is the LSN below which there are none any more.
//
// A slot has at most one commit between its LSN and its visibility, because its latch is held. So one number a slot is
// enough: slot.taking is a lower bound of the LSNs that the holder of the latch is about to commit, 0 when there is no
// such commit. It is set before the LSN is taken and removed when the commit is visible or has come to nothing, on
// every way out.

// taken removes the lower bound. The caller holds the latch.
func (s *Slot) taken() { s.taking.Store(0) }

// committed remembers the slot's last commit, to be waited for. The caller holds the latch.
func (s *Slot) committed(lsn int64, w kv.Commit) {
	from := s.taking.Load()
	if before := s.last.Load(); before != nil && s.durable.Load() < before.lsn {
		from = before.from
	}
	s.last.Store(&lastCommit{lsn, from, w})
}

// Settled returns the settled mark of slots: no commit into them with an LSN at or below it is still to
// become visible. What was visible may still be taken back by a crash: durable is the mark below which all of it is
// durable too, or a little less. A view that is taken afterwards holds everything up to visible.
func (c *Container) Settled(slots []*Slot) (visible, durable int64) {
	// The order of the loads matters: a slot that takes an LSN after this one takes a greater one.
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

// ReservedLSN returns the LSN that no commit of the container was ever given one above, by this process or another
// before it.
func (c *Container) ReservedLSN() int64 { return c.counter.limit() }

// SettleHead waits until everything that the view shows of a slot is durable and returns the LSN of the slot's last
// commit in the view, and the LSN below which it has no feed entries. When the first is not above after, it doesn't
// wait.
func (v *View) SettleHead(ctx context.Context, slot *ViewSlot, after int64) (last, floor int64, err error) {
	h, err := v.Head(slot)
	if err != nil || h.LSN <= after {
		return h.LSN, h.FeedFloor, err
	}
	return h.LSN, h.FeedFloor, slot.waitDurable(ctx, h.LSN)
}
