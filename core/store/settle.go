package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/yield"
)

// A commit is visible before it is durable, so a reader may see a commit that a crash undoes. No result that depends on
// such a commit may be returned: no item, no absence, no count and no refusal.
//
// An item tells the LSN of its commit. An absence tells no LSN: any commit may be its cause, so the reader waits for
// every commit that it could have seen. The reader reads from the engine first and reads slot.begun afterwards.
// Example:
//
//	writer                          reader
//	begun = 7
//	the engine has the delete
//	                                reads the item: absent
//	                                begun is 7, durable is 6: waits for commit 7
//	tells the slot its commit
//	                                Wait returns: durable = 7, answers NotFound
//
// Without writers durable equals begun, and the reader only does two atomic loads.

// lastCommit is the last commit of a slot that can be waited for.
type lastCommit struct {
	lsn    int64
	from   int64 // when this commit was made, every commit of the slot below from was durable
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

// sight is an upper bound of what a reader has seen of a slot: no commit above lsn. last is a commit to wait for, in
// most cases the one with lsn. A reader that waits later keeps its sight, so that it doesn't wait for commits that came
// after its read.
type sight struct {
	lsn  int64
	last *lastCommit
}

// seen returns the sight of a reader that has read from the engine before the call.
func (s *Slot) seen() sight {
	lsn := s.begun.Load()
	return sight{lsn, s.last.Load()}
}

// settle returns when everything that the caller has seen of the slot before the call is durable.
func (s *Slot) settle(ctx context.Context) error { return s.await(ctx, s.seen()) }

// waitDurable returns when every visible commit up to lsn is durable. lsn is the LSN of an item, or a value of begun.
func (s *Slot) waitDurable(ctx context.Context, lsn int64) error {
	if s.durable.Load() >= lsn {
		return nil
	}
	return s.await(ctx, sight{lsn, s.last.Load()})
}

// await returns when the commits of a sight are durable.
func (s *Slot) await(ctx context.Context, seen sight) error {
	lsn, l := seen.lsn, seen.last
	if s.durable.Load() >= lsn || s.c.st.others { // what a shared engine shows is durable
		return nil
	}
	if l == nil || l.lsn < lsn { // the commit is not in the engine yet, or has failed
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
		if errors.Is(err, kv.ErrUnknownOutcome) { // the outcome of another's commit; this request applied nothing
			return status.Wrap(status.Unavailable, err, "What was read is not on the server's disk yet.")
		}
		return translate(err)
	}
	s.settled(l.lsn)
	return nil
}

// outcome waits until the commit that is being passed to the engine is visible or has failed, and returns the last
// commit and its LSN. A writer tells the slot before it releases the latch. So every commit that was visible before the
// call is the returned one or an earlier one.
func (s *Slot) outcome() (l *lastCommit, visible int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.c.certain(s); err != nil {
		return nil, 0, err
	}
	return s.last.Load(), s.head.LSN, nil
}

// certain finds out the state of a slot whose last commit has panicked or has an unknown outcome. The caller holds the
// latch.
func (c *Container) certain(sl *Slot) error {
	if sl.begun.Load() == sl.head.LSN {
		return nil
	}
	_, err := c.lost(sl, kv.ErrConflict)
	return err
}

// gone returns the error for a slot without a head. It first waits until the drop that removed the head is durable, by
// waiting for a later commit that changes nothing. What a shared engine shows is durable.
func (c *Container) gone() error {
	if c.st.others {
		return errDropped()
	}
	nothing := kv.Batch{Frees: true}
	nothing.Delete(keys.AppendMeta(nil, keys.MetaCounter, c.gen, "")) // the drop has deleted this key, too
	w, err := c.st.eng.Write(context.Background(), &nothing, nil)
	if err == nil {
		err = w.Wait()
	}
	if err != nil {
		return translate(err)
	}
	return errDropped()
}
