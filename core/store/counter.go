package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// counter hands out a container's LSNs and item numbers. Both are reserved ahead in blocks, durable before use, so none
// is ever used twice, also not after a crash: a new process goes on where the reservation ended.
//
// When half of a block is used the next one is reserved in the background. A writer waits only where there is none yet:
// behind the first write after an open, or where the disk is slower than the writers use half a block.
type counter struct {
	eng  kv.Engine
	gen  uint32
	work *work.Group

	mu  sync.Mutex
	lsn block
	num block
	run *reservation // under way; nil = none

	// given is the greatest LSN that a commit was given: the LSNs between it and the block's end are only reserved. A
	// process that has just begun takes it from the slots' heads.
	given atomic.Int64
}

// block is a reserved range of numbers: up to last they are given out, up to to they may be.
type block struct {
	last, to uint64
	size     uint64
	ahead    uint64 // when last reaches it the next block is reserved
}

// reservation is one that is under way. err may be read when done is closed.
type reservation struct {
	done chan struct{}
	err  error
}

const (
	formatCounter = 1
	lsnBlock      = 1 << 16
	numBlock      = 1 << 14
)

// next is the end of the block that a reservation brings: the present one's while less than half of that is used.
func (b *block) next(floor uint64) uint64 {
	if n := max(b.last, floor); n+b.size/2 >= b.to {
		return max(n, b.to) + b.size
	}
	return b.to
}

// reserved says that everything up to n may be given out.
func (b *block) reserved(n uint64) { b.to, b.ahead = n, n-b.size/2 }

// take gives the next number above floor; false when it isn't reserved. low says that it is time to reserve the next
// block.
func (b *block) take(floor uint64) (n uint64, low, ok bool) {
	n = max(b.last, floor) + 1
	if n > b.to {
		return n, true, false
	}
	b.last = n
	if low = n >= b.ahead; low {
		b.ahead = n + b.size/16 // where that reservation fails
	}
	return n, low, true
}

func (c *counter) load(ctx context.Context) error {
	c.lsn.size, c.num.size = lsnBlock, numBlock
	b, err := c.eng.Get(ctx, nil, keys.AppendMeta(nil, keys.MetaCounter, c.gen, ""))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(b) != 17 || b[0] != formatCounter {
		return status.New(status.Corruption, "counter of unknown format")
	}
	c.lsn.last, c.num.last = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
	c.lsn.to, c.num.to = c.lsn.last, c.num.last
	return nil
}

// nextLSN returns the next LSN above floor.
func (c *counter) nextLSN(ctx context.Context, floor int64) (int64, error) {
	n, err := c.next(ctx, &c.lsn, uint64(floor))
	if err != nil {
		return 0, err
	}
	lsn := int64(n)
	for { // slots take LSNs side by side
		if was := c.given.Load(); was >= lsn || c.given.CompareAndSwap(was, lsn) {
			return lsn, nil
		}
	}
}

// nextNumber returns the next item number, without its placement bits.
func (c *counter) nextNumber(ctx context.Context) (uint64, error) { return c.next(ctx, &c.num, 0) }

// next takes a number of one of the blocks.
func (c *counter) next(ctx context.Context, b *block, floor uint64) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		n, low, ok := b.take(floor)
		if low && c.run == nil && !c.reserve(b, floor) && !ok {
			return 0, status.New(status.Unavailable, "The store is closing.")
		}
		if ok {
			return n, nil
		}
		if err := c.await(ctx, c.run); err != nil {
			return 0, err
		}
	}
}

// await waits for a reservation. The caller holds mu; it is free meanwhile.
func (c *counter) await(ctx context.Context, r *reservation) error {
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
		return r.err
	}
}

// reserve starts a reservation for the blocks of which half is used, of b as if it were used up to floor. It reports
// whether it does. The caller holds mu.
func (c *counter) reserve(b *block, floor uint64) bool {
	ends := map[*block]uint64{&c.lsn: c.lsn.next(0), &c.num: c.num.next(0)}
	ends[b] = b.next(floor)
	r := &reservation{done: make(chan struct{})}
	const what = "reservation of numbers"
	if !c.work.Go(what, func() {
		r.err = c.work.Try(what, func() error { return c.write(ends[&c.lsn], ends[&c.num]) })
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.err == nil {
			for b, end := range ends {
				b.reserved(end)
			}
		}
		c.run = nil
		close(r.done)
	}) {
		return false
	}
	c.run = r
	return true
}

// limit returns the LSN that nothing of the container can be above.
func (c *counter) limit() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.lsn.to)
}

// numbered returns the greatest item number (without placement bits) that was given out.
func (c *counter) numbered() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.num.last
}

// numbers returns the item number (without placement bits) that no item of the container is above.
func (c *counter) numbers() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.num.to
}

// write makes it durable that numbers up to these are used. Whose outcome isn't known is a reservation, not what is to
// be written with its numbers: nothing of that is applied.
func (c *counter) write(lsn, num uint64) error {
	b := kv.Batch{Frees: true} // a delete on a full disk takes an LSN, too
	putCounter(&b, c.gen, lsn, num)
	w, err := c.eng.Write(c.work.Context(), &b, nil)
	if err == nil {
		err = w.Wait()
	}
	if errors.Is(err, kv.ErrUnknownOutcome) {
		return fmt.Errorf("%w: no numbers could be reserved: %v", kv.ErrUnavailable, err)
	}
	return err
}

// putCounter puts it into b that a generation's numbers up to these are used.
func putCounter(b *kv.Batch, gen uint32, lsn, num uint64) {
	v := make([]byte, 0, 17)
	v = append(v, formatCounter)
	v = binary.BigEndian.AppendUint64(v, lsn)
	v = binary.BigEndian.AppendUint64(v, num)
	b.Put(keys.AppendMeta(nil, keys.MetaCounter, gen, ""), v)
}

// By how much Raise raises what a container's counter has reserved. No store gives out so many while a backup gets old:
// at 100,000 commits a second 2^36 LSNs are eight days of nothing but commits, and 2^28 numbers are a quarter of a
// billion new items in one container. LSNs stay below 2^53, which JavaScript still counts exactly; item numbers below
// 2^40 (docs/formats.md). That is enough for 130,000 restores of a store from backups of its restored self, and 4,000.
const (
	raisedLSNs    = 1 << 36
	raisedNumbers = 1 << 28
	maxLSN        = 1<<53 - 1
	maxNumber     = 1<<40 - 1
)

// Raise puts into b the counters of generations, raised above everything that was given out after the engine's state
// was copied. An error says that the numbers are at their end.
func Raise(ctx context.Context, eng kv.Engine, gens []uint32, b *kv.Batch) error {
	for _, gen := range gens {
		c := counter{eng: eng, gen: gen}
		if err := c.load(ctx); err != nil {
			return translate(err)
		}
		if c.lsn.to > maxLSN-2*raisedLSNs || c.num.to > maxNumber-2*raisedNumbers {
			return status.New(status.BadRequest, "The store has been restored too often: the numbers of a container "+
				"are at their end.")
		}
		putCounter(b, gen, c.lsn.to+raisedLSNs, c.num.to+raisedNumbers)
	}
	return nil
}
