package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// With a shared engine numbers are reserved in blocks too: the stored counter is replaced under the precondition that
// it is what was read.
//
// Each process reserves blocks of item numbers for itself. So items that two processes create are in the order of
// blocks, not of single items. In a capped container commits take them one by one: see inOrder.
//
// While a block is being reserved nobody in the process creates an item of the container: that takes as long as a
// commit. So a block has enough numbers for about a second: a process that creates more gets larger ones. What is left
// of a large block after some seconds isn't used: the numbers of a process that has become slow would be far behind
// those of others.
//
// A block of LSNs belongs to a slot. Its end is in the slot's head (Head.Block), and the LSN of a commit is the one
// after that of the head that it replaces, as long as the block lasts. So each slot counts by itself, whatever process
// commits, and no two slots of a container ever use the same LSN. Slots can therefore be joined: the feed of a slot has
// one entry for each LSN and position.
//
// Example: the counter is 512. A replaces it by 768, and B by 1,024. A creates items 513 and 514, B creates 769. Slot 0
// has the LSNs 1 to 16,384 and slot 1 those from 16,385 on, until one of them needs more: it gets 32,769 to 49,152.

// The sizes of blocks.
const (
	leastBlock = 256         // item numbers for a process
	mostBlock  = numBlock    // for one that creates as many items in blockTime
	blockTime  = time.Second // how long a block should last
	oldBlock   = 4 * blockTime
	sharedLSNs = 1 << 14 // LSNs for a slot
)

// sharedNumber returns the next item number of this process.
func (c *Container) sharedNumber(ctx context.Context) (n uint64, err error) {
	err = c.reserving(ctx, func(alive []byte) error {
		n, err = c.counter.sharedNumber(ctx, alive)
		return err
	})
	return n, err
}

// sharedLSN is nextLSN with a shared engine. A block from before a restore isn't used any more: the store may have
// given out its numbers after the backup. A restore raises the counter further than any slot's block can be behind.
func (c *Container) sharedLSN(ctx context.Context, h *Head) (int64, error) {
	for c.blockEnds(h) {
		err := c.reserving(ctx, func(alive []byte) error {
			from, err := c.counter.reserveShared(ctx, alive, uint64(h.LSN), sharedLSNs, 0)
			if err == nil && from.lsn > 0 {
				h.LSN, h.Block = int64(from.lsn)-1, int64(from.lsn)-1+sharedLSNs
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	lsn := h.LSN + 1
	c.counter.gave(lsn)
	return lsn, nil
}

// blockEnds reports whether a slot needs another block for its next LSN.
func (c *Container) blockEnds(h *Head) bool {
	return h.LSN >= h.Block || c.counter.base()-h.Block >= raisedLSNs
}

// reserving calls f with a key that exists as long as the container. If it doesn't exist because the slot was replaced,
// f is called again.
func (c *Container) reserving(ctx context.Context, f func(alive []byte) error) error {
	for {
		of := c.Slots()
		err := f(of.all[0].headKey[:])
		if !status.Is(err, status.NotFound) {
			return err
		}
		if _, rerr := c.remap(ctx); rerr != nil || c.Slots() == of {
			return cmp.Or(rerr, err)
		}
	}
}

// sharedNumber returns the next item number of this process. alive is a key that exists as long as the container: a
// dropped one gets no counter again.
func (c *counter) sharedNumber(ctx context.Context, alive []byte) (uint64, error) {
	if err := c.turn.LockUntil(ctx); err != nil {
		return 0, err
	}
	defer c.turn.Unlock()
	for {
		now := realTime.Now()
		if !c.blocks.old(now) {
			if n, ok := c.reservedNumber(); ok {
				return n, nil
			}
		}
		size := c.blocks.next(now)
		from, err := c.reserveShared(ctx, alive, 0, 0, size)
		if err != nil {
			return 0, err
		}
		if from.num > 0 {
			c.mu.Lock()
			c.num.last, c.num.to = from.num-1, from.num-1+size
			c.mu.Unlock()
			c.blocks = blocks{size, realTime.Now()}
		}
	}
}

// blocks is the last block of item numbers that a process has reserved in a shared store.
type blocks struct {
	size uint64    // 0: there was none
	at   time.Time // when it was reserved
}

// old reports whether the rest of the block isn't used any more.
func (b blocks) old(now time.Time) bool { return b.size > leastBlock && now.Sub(b.at) > oldBlock }

// next returns the size of the block that follows.
func (b blocks) next(now time.Time) uint64 {
	size := b.size
	switch lasted := now.Sub(b.at); {
	case lasted < blockTime:
		size *= 2
	case lasted > 2*blockTime:
		size /= 2
	}
	return min(max(size, leastBlock), mostBlock)
}

// reservedNumber returns the next number of the block; ok is false if the block is used up.
func (c *counter) reservedNumber() (n uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.num.last == c.num.to {
		return 0, false
	}
	c.num.last++
	return c.num.last, true
}

// firsts are the first numbers of blocks that were reserved; 0: nothing was.
type firsts struct{ lsn, num uint64 }

// reserveShared tries to reserve so many LSNs, above floor, and so many item numbers. If another process was faster, or
// the outcome isn't known, nothing is reserved: a block that was reserved and is not known is left out.
func (c *counter) reserveShared(ctx context.Context, alive []byte, floor, lsns, nums uint64) (firsts, error) {
	lsn, num, was, err := c.stored(ctx)
	if err != nil {
		return firsts{}, err
	}
	lsn = max(lsn, floor)
	if num+nums > maxNumber || lsn+lsns > maxLSN {
		return firsts{}, errNumbersEnd()
	}
	pre := []kv.Precondition{{Key: keys.AppendMeta(nil, keys.MetaCounter, c.gen, ""), Expect: kv.Absent},
		{Key: alive, Expect: kv.Present}}
	if was != nil {
		pre[0].Expect, pre[0].Value = kv.Equal, was
	}
	b := kv.Batch{Frees: true} // as for every reservation
	putCounter(&b, c.gen, lsn+lsns, num+nums)
	_, err = c.eng.Write(ctx, &b, pre)
	var refused *kv.PreconditionError
	switch {
	case errors.As(err, &refused) && refused.Index == 1:
		return firsts{}, errDropped()
	case errors.Is(err, kv.ErrConflict), errors.Is(err, kv.ErrUnknownOutcome):
		return firsts{}, nil
	case err != nil:
		return firsts{}, err
	}
	return firsts{lsn + 1, num + 1}, nil
}
