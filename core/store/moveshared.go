package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
)

// With a shared engine other processes write to the sources of a move too, and the process that makes the move may be
// paused at any moment while another one takes its lease. So a move relies on preconditions:
//
//   - The heads of the sources name the move (Head.Move). A writer of any process records what it removes, because the
//     head that says so is the precondition of its commit. The move ends if a head names another one.
//   - Each commit of keys of the targets has the lease as a precondition, and the stamp of the commit before it. The
//     stamp stands under the key of the first target's head. So a batch of unknown outcome can be sent again, a batch
//     that arrives late is refused, and so is a process that has lost the lease. A commit after the keys of a dropped
//     container were removed is refused too: the stamp is one of them.
//   - The commit that replaces the slots has the lease and the heads of the sources as preconditions, as they are in
//     the snapshot of the last round. If another process has committed in between, there is another round.
//
// A process that writes all the time would win each of these races. So before the last round the heads of the sources
// ask other processes to wait (Head.Held). Their writers wait for a bounded time (Container.heed). If that is the
// second attempt, it raises the LSN, so a replacement that the first one has left on its way is refused from then on.
//
// Example: A splits slot 3, and B writes to it. A marks the head at LSN 40 with move 9. B's next commit fails, it reads
// the head, and from LSN 41 on it records what it removes. A copies, catches up to LSN 57, and holds the slot at LSN
// 58. B reads the head and waits. A brings the changes up to 58, and replaces slot 3 by 9 and 10. B reads that slot 3
// has left the map, reads the map, and commits into slot 9.
//
// If A ends before that, the notes say that the keys of 9 and 10 are to be removed, and the head of slot 3 says that it
// has records of removed items: see EndMoves.

// Bounds of attempts. Between two of them is a rest of findRest.
const (
	maxHolds  = 8  // attempts to replace the slots after the last round of maxRounds
	moveTries = 50 // attempts of one step, while the engine isn't available or other processes come first
)

// passing reports whether what an engine has refused may succeed later.
func passing(err error) bool {
	return errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, errRebuilding) || errors.Is(err, kv.ErrSnapshotTooOld)
}

// retry rests before the next attempt of a step. It fails when the move must end.
func (m *move) retry() error {
	m.rest(findRest)
	if err := m.c.st.work.Context().Err(); err != nil {
		return translate(err)
	}
	return translate(m.ctx.Err())
}

// steadily calls f again while it fails with errors of a moment, each time with the counts that the targets had before.
// Without a shared engine it calls f once.
func (m *move) steadily(f func() error) error {
	for n := 0; ; n++ {
		was := m.counts()
		err := f()
		if err == nil || !m.c.st.others || !passing(err) || n >= moveTries {
			return err
		}
		m.recount(was)
		if err := m.retry(); err != nil {
			return err
		}
	}
}

// counts returns the heads of the targets.
func (m *move) counts() (out []Head) {
	for _, t := range m.targets {
		out = append(out, t.head)
	}
	return out
}

// recount takes back what was added to the heads of the targets since counts.
func (m *move) recount(was []Head) {
	for i, t := range m.targets {
		t.head = was[i]
	}
}

// change commits the next head that f makes of a slot's current one, until it succeeds. It does nothing if f returns
// false, or if the slot has left the map. The caller holds the latch, for which others wait. So after a lost race it
// holds the head in the store, too.
func (m *move) change(sl *Slot, f func(h *Head) (bool, error)) error {
	for lost := range moveTries {
		done, err := m.tryChange(sl, lost >= mostLost, f)
		if done || err != nil && !passing(err) {
			return err
		}
		if err := m.retry(); err != nil {
			return err
		}
	}
	return status.Wrap(status.Unavailable, kv.ErrUnavailable, "Other processes write to the slots too often.")
}

// tryChange makes one attempt. done is false if another one may succeed.
func (m *move) tryChange(sl *Slot, holds bool, f func(h *Head) (bool, error)) (done bool, err error) {
	var on kv.Snapshot
	if holds {
		if on, err = kv.Hold(m.ctx, m.c.st.eng, sl.headKey[:]); err != nil {
			return false, translate(err)
		}
		defer on.Close()
	}
	if err := m.c.newestHead(m.ctx, sl); err != nil {
		return false, err
	}
	if sl.head.Moved || !m.c.Slots().has(sl) {
		return true, nil
	}
	h := sl.head
	if todo, err := f(&h); err != nil || !todo {
		return err == nil, err
	}
	return m.putShared(sl, h, on)
}

// putShared makes one attempt to commit a slot's next head, with the lease and the head that was read as preconditions.
// on is the snapshot that holds the head; nil: none. It returns false without an error if another process came first,
// or if the outcome isn't known: the stored head tells.
func (m *move) putShared(sl *Slot, h Head, on kv.Snapshot) (done bool, err error) {
	h.Writer = m.c.st.writer
	head := h.append(nil)
	b := kv.Batch{Frees: true}
	b.Put(sl.headKey[:], head)
	fence := m.lease.Fence()
	err = m.c.st.writeOn(m.ctx, on, &b, append(fence, sl.asRead()...))
	var at *kv.PreconditionError
	switch {
	case err == nil:
		sl.head, sl.headBytes = h, head
		sl.publish()
		return true, nil
	case errors.As(err, &at) && at.Index < len(fence):
		return false, errTakenOver(err)
	case errors.Is(err, kv.ErrConflict), errors.Is(err, kv.ErrUnknownOutcome):
		return false, nil
	}
	return false, translate(err)
}

// writeOn is a write that is based on a snapshot, or without one if that is nil.
func (s *Store) writeOn(ctx context.Context, on kv.Snapshot, b *kv.Batch, pre []kv.Precondition) error {
	if on == nil {
		_, err := s.eng.Write(ctx, b, pre)
		return err
	}
	if err := kv.CheckIn(on, pre); err != nil {
		return err
	}
	p, err := kv.Prepare(s.eng, b, 0)
	if err != nil {
		return err
	}
	p.On(on)
	_, err = p.Write(ctx, new(kv.Batch), pre)
	return err
}

// markShared is mark with a shared engine. done is the LSN before the first attempt: whatever was committed since is in
// the records, or before the copy begins.
func (m *move) markShared(s *source) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := m.change(s.Slot, func(h *Head) (bool, error) {
		if h.Moving && h.Move == m.id {
			return false, nil
		}
		if err := m.follows(s); err != nil {
			return false, err
		}
		if !s.marked {
			s.done, s.marked = h.LSN, true
		}
		h.Moving, h.Move, h.Held = true, m.id, false
		return true, nil
	})
	if err == nil && (s.head.Moved || s.head.Move != m.id) {
		err = errTakenOver(nil)
	}
	return err
}

// holdShared asks the writers of other processes to wait. done says that an earlier attempt to replace the slots, whose
// outcome was unknown, has succeeded. The caller holds the latch.
func (m *move) holdShared(sl *Slot) (done bool, err error) {
	tried := Head{} // what was written last
	err = m.change(sl, func(h *Head) (_ bool, err error) {
		switch {
		case !h.Moving || h.Move != m.id:
			return false, errTakenOver(nil)
		case h.Held && h.LSN == tried.LSN && tried.Held:
			return false, nil
		case m.again:
			h.LSN, err = m.c.nextLSN(m.ctx, h)
		}
		h.Held = true
		tried = *h
		return err == nil, translate(err)
	})
	if err == nil && (sl.head.Moved || !m.c.Slots().has(sl)) {
		if !m.shown() {
			return false, errTakenOver(nil)
		}
		return true, nil
	}
	return false, err
}

// shown reports whether the map has the targets.
func (m *move) shown() bool {
	for _, t := range m.targets {
		if m.c.Slots().m.IndexOf(t.ID()) < 0 {
			return false
		}
	}
	return true
}

// replaced judges the result of the commit that replaces slots. After a conflict and after an unknown outcome the next
// attempt finds out whether it was made.
func (m *move) replaced(err error) (done bool, _ error) {
	switch {
	case err == nil:
		return true, nil
	case status.Is(err, status.UnknownOutcome), errors.Is(err, kv.ErrConflict), errors.Is(err, kv.ErrUnknownOutcome),
		passing(err):
		return false, m.retry()
	}
	return false, err
}

// giveBlock gives the first target the block of LSNs of the source that was written to last. Others reserve one with
// their first commit.
func (m *move) giveBlock(t *target) {
	t.head.Block = 0
	for _, s := range m.sources {
		if t == m.targets[0] && s.head.LSN == t.head.LSN {
			t.head.Block = max(t.head.Block, s.head.Block)
		}
	}
}

// writeShared is write with a shared engine: the batch is committed exactly once, after all batches before it, or the
// move fails.
//
// A store may lock the key of a precondition until the commit is over. Every commit of a writer replaces the head of
// its slot, so a copy whose commits name that head and the writers of the slot hold each other up, or make each other
// begin again. Only the first commit names it. The others name the stamp, which nobody else writes, and which has gone
// when the keys of a dropped container are removed.
func (m *move) writeShared(b *kv.Batch) error {
	first := m.targets[0]
	fence := m.lease.Fence()
	pre := append(fence, kv.Precondition{Key: first.headKey[:], Expect: kv.Equal, Value: m.stamped()})
	if m.stamp == 0 {
		pre[len(fence)] = kv.Precondition{Key: first.headKey[:], Expect: kv.Absent}
		pre = append(pre, kv.Precondition{Key: m.sources[0].headKey[:], Expect: kv.Present})
	}
	m.stamp++
	b.Put(first.headKey[:], m.stamped())
	for range moveTries {
		_, err := m.c.st.eng.Write(m.ctx, b, pre)
		var at *kv.PreconditionError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &at) && at.Index == len(fence): // by an attempt before, or not
			if done, err := m.committed(); done || err != nil && !passing(err) {
				return err
			}
		case errors.Is(err, kv.ErrConflict):
			return m.refused(m.sources[0].Slot, err)
		case !passing(err) && !errors.Is(err, kv.ErrUnknownOutcome):
			return translate(err)
		}
		if err := m.retry(); err != nil {
			return err
		}
	}
	return translate(kv.ErrUnavailable)
}

// committed reports whether the stamp is that of the last commit. It fails if the commit can't be made any more.
func (m *move) committed() (bool, error) {
	for _, sl := range []*Slot{m.targets[0].Slot, m.sources[0].Slot} {
		now, err := orNil(m.c.st.eng.Get(m.ctx, nil, sl.headKey[:]))
		switch {
		case err != nil:
			return false, err
		case bytes.Equal(now, m.stamped()):
			return true, nil
		case sl == m.sources[0].Slot && now == nil:
			return false, m.headless(sl)
		}
	}
	return false, errTakenOver(nil)
}

// stamped returns what the last commit of keys of the targets has under the key of the first target's head: a head, so
// that every key of that kind has one form.
func (m *move) stamped() []byte {
	h := Head{LSN: int64(m.stamp), Moved: true, Writer: m.c.st.writer}
	return h.append(nil)
}

// abandonShared is abandon with a shared engine. The move may have failed because the store doesn't answer, and
// somebody waits for it. So it has graceTime. What it can't write in that time, EndMoves does.
func (m *move) abandonShared() {
	ctx, cancel := context.WithTimeout(m.c.st.work.Context(), graceTime)
	defer cancel()
	m.ctx = ctx
	for _, s := range m.sources {
		_ = m.end(s.Slot, m.id)
	}
}

// end ends a move in a source that other slots have not replaced: commits no longer record what they remove, then the
// records are removed, and then the head says so. Writers wait for the latch, so no step holds it for longer than
// graceTime.
func (m *move) end(sl *Slot, id uint32) error {
	all := m.ctx
	defer func() { m.ctx = all }()
	step := func(f func(h *Head) (todo bool, err error)) error {
		if err := sl.mu.LockUntil(all); err != nil {
			return err
		}
		defer sl.mu.Unlock()
		ctx, cancel := context.WithTimeout(all, graceTime)
		defer cancel()
		m.ctx = ctx
		return m.change(sl, func(h *Head) (bool, error) {
			if h.Move != id {
				return false, nil
			}
			return f(h)
		})
	}
	err := step(func(h *Head) (_ bool, err error) {
		if !h.Moving {
			return false, nil
		}
		h.Moving, h.Held = false, false
		h.LSN, err = m.c.nextLSN(m.ctx, h) // else the head from before the move would come back
		return err == nil, translate(err)
	})
	if err != nil {
		return err
	}
	m.ctx = all
	j := rebuilder{pace: m.pace}
	if err := j.deleteAll(sl, keys.KindRemoved); err != nil {
		return err
	}
	return step(func(h *Head) (bool, error) {
		todo := !h.Moving
		h.Move = 0
		return todo, nil
	})
}

// EndMoves ends the copies of slots that the end of another process has interrupted, as far as this process knows of
// them, unless another process is copying. The keys of their targets are removed with the notes of these.
func (c *Container) EndMoves(ctx context.Context) error {
	if c.st.lim.ReadOnly {
		return nil
	}
	if begun, err := c.interrupted(ctx); err != nil || !begun {
		return err
	}
	l, err := c.lease(ctx, lease.Layout)
	if l == nil {
		return err
	}
	defer l.Release()
	if err := c.Refresh(l.Context()); err != nil {
		return err
	}
	m := &move{pace: pace{c: c, ctx: l.Context(), lease: l, begun: realTime.Now()}}
	for _, sl := range c.slotList() {
		id, err := sl.copying(m.ctx)
		if err == nil && id != 0 {
			err = m.end(sl, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// interrupted reports whether the heads in memory name a copy.
func (c *Container) interrupted(ctx context.Context) (bool, error) {
	for _, sl := range c.slotList() {
		if id, err := sl.copying(ctx); err != nil || id != 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// copying returns the id of the copy that the slot's head in memory names; 0: none.
func (sl *Slot) copying(ctx context.Context) (uint32, error) {
	if err := sl.mu.LockUntil(ctx); err != nil {
		return 0, err
	}
	defer sl.mu.Unlock()
	return sl.head.Move, nil
}
