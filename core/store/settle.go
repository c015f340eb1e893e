package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/yield"
)

// A commit is visible before it is durable, so a reader may see what a crash takes back. Nothing that was made of such
// a sight may leave: no item, and no absence, count or refusal either.
//
// An item tells the LSN of its commit. An absence tells none: it may be the work of any commit, so it waits for all
// that could be seen. The reader looks into the engine first and at slot.begun afterwards. A worked example:
//
//	writer                          reader
//	begun = 7
//	the engine has the delete
//	                                reads the item: absent
//	                                begun is 7, durable is 6: waits for commit 7
//	tells the slot its commit
//	                                Wait returns: durable = 7, answers NotFound
//
// Without writers durable is begun, and the reader pays two atomic loads.

// lastCommit is the last commit of a slot that can be waited for.
type lastCommit struct {
	lsn    int64
	from   int64 // every commit of the slot below it was durable when this one was made
	commit kv.Commit
}

// settled records that every commit up to lsn is durable.
func (s *Slot) settled(lsn int64) {
	for {
		d := s.durable.Load()
		if d >= lsn || s.durable.CompareAndSwap(d, lsn) {
			return
		}
	}
}

// sight is what somebody has seen of a slot: nothing of a commit above lsn. last is a commit to wait for, mostly that
// one. Who waits later than he has looked keeps it, else he would wait for commits that came after it, too.
type sight struct {
	lsn  int64
	last *lastCommit
}

// seen returns what whoever has looked into the engine before the call may have seen.
func (s *Slot) seen() sight {
	lsn := s.begun.Load()
	return sight{lsn, s.last.Load()}
}

// settle returns when everything is durable that the caller has seen of the slot before the call.
func (s *Slot) settle(ctx context.Context) error { return s.await(ctx, s.seen()) }

// waitDurable returns when every commit up to lsn is durable that is visible. lsn is of an item, or of begun.
func (s *Slot) waitDurable(ctx context.Context, lsn int64) error {
	if s.durable.Load() >= lsn {
		return nil
	}
	return s.await(ctx, sight{lsn, s.last.Load()})
}

// await returns when what was seen is durable.
func (s *Slot) await(ctx context.Context, seen sight) error {
	lsn, l := seen.lsn, seen.last
	if s.durable.Load() >= lsn {
		return nil
	}
	if l == nil || l.lsn < lsn { // on its way into the engine, or it didn't get there
		var visible int64
		var err error
		if l, visible, err = s.outcome(); err != nil {
			return err
		}
		if s.durable.Load() >= min(lsn, visible) {
			return nil
		}
	}
	if err := yield.While(ctx, l.commit.Wait); err != nil {
		if errors.Is(err, kv.ErrUnknownOutcome) { // the other's: nothing of ours was to be applied
			return status.Wrap(status.Unavailable, err, "What was read is not on the server's disk yet.")
		}
		return translate(err)
	}
	s.settled(l.lsn)
	return nil
}

// outcome returns the last commit and its LSN once that which is on its way into the engine is visible, or has failed:
// who commits tells the slot before it lets the latch go. Every commit that was visible before the call is it, or came
// before.
func (s *Slot) outcome() (l *lastCommit, visible int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.c.certain(s); err != nil {
		return nil, 0, err
	}
	return s.last.Load(), s.head.LSN, nil
}

// certain finds out where a slot stands whose last commit ended in a fault, or of which nobody could tell what became
// of it. The caller holds the latch.
func (c *Container) certain(sl *Slot) error {
	if sl.begun.Load() == sl.head.LSN {
		return nil
	}
	_, err := c.lost(sl, kv.ErrConflict)
	return err
}

// gone returns the error of who finds no head in a slot, when the drop of the container that took it away is durable:
// the commit of nothing that comes after it tells.
func (c *Container) gone() error {
	nothing := kv.Batch{Frees: true}
	nothing.Delete(keys.AppendMeta(nil, keys.MetaCounter, c.gen, "")) // the drop has deleted it, too
	w, err := c.st.eng.Write(context.Background(), &nothing, nil)
	if err == nil {
		err = w.Wait()
	}
	if err != nil {
		return translate(err)
	}
	return errDropped()
}
