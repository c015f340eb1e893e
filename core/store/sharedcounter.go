package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// With a shared engine each process reserves blocks of item numbers for itself: the stored counter is replaced under
// the precondition that it is what was read. So items that two processes create are in the order of blocks, not of
// single items.
//
// LSNs are not reserved. The LSN of a commit is the one after that of the head that it replaces, and the head is the
// commit's precondition. So each slot counts by itself. The counter's LSN is only a lower bound of all, for stores that
// a single process has had before, and for restored ones.
//
// Example: the counter is 512. A replaces it by 768, and B by 1,024. A creates items 513 and 514, B creates 769.

// sharedBlock is the number of item numbers that a process reserves.
const sharedBlock = 256

// sharedNumber returns the next item number of this process. alive is a key that exists as long as the container: a
// dropped one gets no counter again.
func (c *counter) sharedNumber(ctx context.Context, alive []byte) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.num.last == c.num.to {
		if err := c.reserveShared(ctx, alive); err != nil {
			return 0, err
		}
	}
	c.num.last++
	return c.num.last, nil
}

// reserveShared tries to reserve a block. If another process was faster, or the outcome isn't known, nothing is
// reserved: a block that was reserved and is not known is left out. The caller holds mu.
func (c *counter) reserveShared(ctx context.Context, alive []byte) error {
	lsn, num, was, err := c.stored(ctx)
	if err != nil {
		return err
	}
	pre := []kv.Precondition{{Key: keys.AppendMeta(nil, keys.MetaCounter, c.gen, ""), Expect: kv.Absent},
		{Key: alive, Expect: kv.Present}}
	if was != nil {
		pre[0].Expect, pre[0].Value = kv.Equal, was
	}
	b := kv.Batch{Frees: true} // as for every reservation
	putCounter(&b, c.gen, lsn, num+sharedBlock)
	_, err = c.eng.Write(ctx, &b, pre)
	var refused *kv.PreconditionError
	switch {
	case errors.As(err, &refused) && refused.Index == 1:
		return errDropped()
	case errors.Is(err, kv.ErrConflict), errors.Is(err, kv.ErrUnknownOutcome):
		return nil
	case err != nil:
		return err
	}
	if num+sharedBlock > maxNumber {
		return status.New(status.BadRequest, "The item numbers of the container are at their end.")
	}
	c.num.last, c.num.to = num, num+sharedBlock
	return nil
}
