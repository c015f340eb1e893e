package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// With a shared engine the outcome of a commit may be unknown although everything works: the reply was lost, or the
// batch is still on its way and is applied later. The writer finds out before it answers:
//
//  1. If the stored head is the one of the commit, the commit was applied. No other commit has the same head, because a
//     head names its writer.
//  2. If the stored head is still the one before, the writer replaces it by a fence: the same head with a greater LSN.
//     Then the commit was not applied and never will be, because its precondition can't hold any more.
//  3. If others have committed since, the items of the commit tell: a version that it has replaced is still there, or a
//     version or a number that only it has given is there.
//
// If nothing of this is the case, for example because others have replaced the item again, the answer is that the
// outcome is unknown.
//
// Example: a create of item "x" with LSN 8 has an unknown outcome. The stored head has LSN 7. The fence makes it 9. The
// create is repeated with LSN 10. The batch of LSN 8 arrives now, and is refused.

// Bounds of finding out an outcome. Its reads and its fence may fail too.
const (
	maxFinds = 20
	findRest = 20 * time.Millisecond
)

// graceTime is for how long a writer looks for an outcome, or for the state of its slot, after the end of its request.
// The end of the request is often why the outcome is unknown, and a store that works answers in far less time. Others
// wait for the latch meanwhile.
const graceTime = time.Second

// graced returns a ctx that ends with ctx, but not before graceTime from now, and after maxGrace in any case. When the
// store is being closed, nobody asks for the slot's state any more, and it ends at once.
func (s *Store) graced(ctx context.Context) (context.Context, context.CancelFunc) {
	const maxGrace = 10 * time.Second
	least, end := work.AtLeast(ctx, graceTime)
	most, cancel := context.WithTimeout(least, maxGrace)
	within, leave := s.work.Within(most)
	return within, func() {
		leave()
		cancel()
		end()
	}
}

// findOut finds out whether a commit of unknown outcome was applied. If so it does what write does for a commit that
// succeeds. If it was not applied, and won't be, the error is ErrConflict. The caller holds the latches of all slots.
//
// Should the outcome stay unknown, no other commit of this process may have its LSN, or that of a fence: two commits
// could have the same head then, and the head would not tell which of them was applied.
func (d *draft) findOut(ctx context.Context, cause error) (pending, error) {
	recycle(d.b)
	for i := range d.parts {
		sl := d.parts[i].sl
		sl.unsure = max(sl.unsure, d.parts[i].h.LSN)
	}
	ctx, cancel := d.c.st.graced(ctx)
	defer cancel()
	for range maxFinds {
		applied, known, err := d.find(ctx)
		switch {
		case status.Is(err, status.NotFound): // the container was dropped
			return pending{}, err
		case err != nil && !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrUnknownOutcome):
			return pending{}, cause
		case err == nil && known && applied:
			return d.applied(ctx)
		case err == nil && known:
			return pending{}, kv.ErrConflict
		case err == nil:
			return pending{}, cause
		case ctx.Err() != nil:
			return pending{}, cause
		}
		time.Sleep(findRest)
	}
	return pending{}, cause
}

// find is one attempt.
func (d *draft) find(ctx context.Context) (applied, known bool, err error) {
	p := &d.parts[0]
	b, err := d.c.st.eng.Get(ctx, nil, p.sl.headKey[:])
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return false, false, p.sl.c.gone()
	case err != nil:
		return false, false, err
	case bytes.Equal(b, p.head):
		return true, true, nil
	case !bytes.Equal(b, p.sl.headBytes):
		return d.findInItems(ctx)
	}
	fence := p.sl.head
	fence.LSN, fence.Block, fence.Writer = p.h.LSN, p.h.Block, d.c.st.writer
	if p.sl.c.inOrder() { // a block that the commit itself has taken isn't the slot's
		fence.Block = p.sl.head.Block
	}
	if fence.LSN, err = p.sl.c.nextLSN(ctx, &fence); err != nil {
		return false, false, err
	}
	p.sl.unsure = max(p.sl.unsure, fence.LSN)
	batch := kv.Batch{Frees: true} // it adds nothing
	batch.Put(p.sl.headKey[:], fence.append(nil))
	if _, err := d.c.st.eng.Write(ctx, &batch, p.sl.asRead()); err != nil {
		if errors.Is(err, kv.ErrConflict) { // the commit has arrived, or another one
			err = kv.ErrUnavailable
		}
		return false, false, err
	}
	return false, true, nil
}

// findInItems looks for traces of the commit in its items.
func (d *draft) findInItems(ctx context.Context) (applied, known bool, err error) {
	for i := range d.parts {
		for k := range d.parts[i].chs {
			ch := &d.parts[i].chs[k]
			b, err := orNil(d.c.st.eng.Get(ctx, nil, ch.id.itemKey()))
			if err != nil {
				return false, false, err
			}
			var is Item
			if b == nil {
				continue
			}
			if err := decodeEnvelope(b, &is); err != nil {
				return false, false, err
			}
			switch now := ch.item; {
			case ch.old != nil && is.LSN == ch.old.LSN && is.Pos == ch.old.Pos:
				return false, true, nil
			case now == nil:
			case is.Number == now.Number && (ch.old == nil || ch.old.Number != now.Number) && !ch.id.slot.c.inOrder():
				return true, true, nil // only this commit has used the number
			case is.LSN == now.LSN && is.Pos == now.Pos && is.Ticks == now.Ticks && is.Number == now.Number &&
				bytes.Equal(is.Doc, now.Doc):
				return true, true, nil // or another process has written the very same version
			}
		}
	}
	return false, false, nil
}

// applied takes over the heads that the commit, or a later one, has written.
func (d *draft) applied(ctx context.Context) (pending, error) {
	last := &d.parts[len(d.parts)-1]
	done := pending{commit: visible{}, slot: last.sl, lsn: last.h.LSN, batch: new(kv.Batch)}
	for i := range d.parts {
		b, err := d.c.st.eng.Get(ctx, nil, d.parts[i].sl.headKey[:])
		if err != nil { // the next commit finds the head
			continue
		}
		_ = d.parts[i].sl.c.install(ctx, d.parts[i].sl, b)
	}
	return done, nil
}

// visible is a commit of a shared engine that is known to be visible, and so durable.
type visible struct{}

// Wait implements kv.Commit.
func (visible) Wait() error { return nil }
