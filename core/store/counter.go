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

// counter gives out a container's LSNs and item numbers. Both are reserved in blocks, and a reservation is durable
// before its numbers are used. So no number is ever used twice, even after a crash: a new process continues after the
// reservation.
//
// When half of a block is used, the next block is reserved in the background. A writer waits only if no number is
// reserved: after the first write of a process, or if the disk is slower than the writers use half a block.
//
// Example: LSNs up to 1,000 are reserved and 500 are used. The reservation of 2,000 starts. Writers use 501 to 1,000
// meanwhile. After a crash at 600 the next process begins at 1,001 or 2,001.
type counter struct {
	eng  kv.Engine
	gen  uint32
	work *work.Group

	mu   sync.Mutex // never held while the engine is asked
	lsn  block
	num  block
	run  *reservation // the current one; nil = none
	turn latch        // with a shared engine: held by who takes a number, also while it reserves more of them

	blocks blocks // with a shared engine: guarded by turn

	// given is the greatest LSN that a commit has received. The LSNs between it and the end of the block are only
	// reserved. A new process takes it from the slots' heads.
	given atomic.Int64
}

// gave records that a commit has received an LSN.
func (c *counter) gave(lsn int64) {
	for { // slots take LSNs concurrently
		if was := c.given.Load(); was >= lsn || c.given.CompareAndSwap(was, lsn) {
			return
		}
	}
}

// block is a reserved range of numbers. Numbers up to last are given out; numbers up to to may be given out.
type block struct {
	last, to uint64
	size     uint64
	ahead    uint64 // when last reaches it, the next block is reserved
}

// reservation is a reservation in progress. err may be read when done is closed.
type reservation struct {
	done chan struct{}
	err  error
}

const (
	formatCounter = 1
	lsnBlock      = 1 << 16
	numBlock      = 1 << 14
)

// next returns the end of the block that a reservation brings. It is the end of the current block while less than half
// of that is used.
func (b *block) next(floor uint64) uint64 {
	if n := max(b.last, floor); n+b.size/2 >= b.to {
		return max(n, b.to) + b.size
	}
	return b.to
}

// reserved records that everything up to n may be given out.
func (b *block) reserved(n uint64) { b.to, b.ahead = n, n-b.size/2 }

// take returns the next number above floor; ok is false when it isn't reserved. low says that the next block should be
// reserved now.
func (b *block) take(floor uint64) (n uint64, low, ok bool) {
	n = max(b.last, floor) + 1
	if n > b.to {
		return n, true, false
	}
	b.last = n
	if low = n >= b.ahead; low {
		b.ahead = n + b.size/16 // used if that reservation fails
	}
	return n, low, true
}

func (c *counter) load(ctx context.Context) error {
	c.lsn.size, c.num.size = lsnBlock, numBlock
	lsn, num, _, err := c.stored(ctx)
	if err != nil {
		return err
	}
	c.lsn.last, c.lsn.to = lsn, lsn
	c.num.last, c.num.to = num, num
	if !c.eng.Shared() { // a store that processes have shared has LSNs above the counter
		c.lsn.last = max(lsn, uint64(c.given.Load()))
	}
	return nil
}

// stored reads the reservations. b is the stored value; nil: there is none.
func (c *counter) stored(ctx context.Context) (lsn, num uint64, b []byte, err error) {
	b, err = orNil(c.eng.Get(ctx, nil, keys.AppendMeta(nil, keys.MetaCounter, c.gen, "")))
	if err != nil {
		return 0, 0, nil, err
	}
	lsn, num, err = decodeCounter(b)
	return lsn, num, b, err
}

// decodeCounter decodes stored reservations; nil: there are none.
func decodeCounter(b []byte) (lsn, num uint64, err error) {
	switch {
	case b == nil:
		return 0, 0, nil
	case len(b) != 17 || b[0] != formatCounter:
		return 0, 0, status.New(status.Corruption, "counter of unknown format")
	}
	return binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:]), nil
}

// nextLSN returns the LSN of the next commit into a slot with the head h. With a shared engine it may change h.Block.
func (c *Container) nextLSN(ctx context.Context, h *Head) (int64, error) {
	if c.st.others {
		return c.sharedLSN(ctx, h)
	}
	return c.counter.nextLSN(ctx, h.LSN)
}

// nextLSN returns the next LSN above floor.
func (c *counter) nextLSN(ctx context.Context, floor int64) (int64, error) {
	n, err := c.next(ctx, &c.lsn, uint64(floor))
	if err != nil {
		return 0, err
	}
	c.gave(int64(n))
	return int64(n), nil
}

// nextNumber returns the next item number, without its placement bits.
func (c *counter) nextNumber(ctx context.Context) (uint64, error) { return c.next(ctx, &c.num, 0) }

// next takes a number from one of the blocks.
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

// await waits for a reservation. The caller holds mu, which is released meanwhile.
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

// reserve starts a reservation for the blocks of which half is used. It treats b as used up to floor. It reports
// whether a reservation is in progress. The caller holds mu.
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

// limit returns an LSN that no commit of the container is above.
func (c *counter) limit() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.lsn.to)
}

// base returns the LSN that a new process begins above.
func (c *counter) base() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.lsn.last)
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

// write makes a reservation of numbers durable. If its outcome is unknown, the error is ErrUnavailable: the commit that
// needs the numbers is certainly not applied.
func (c *counter) write(lsn, num uint64) error {
	b := kv.Batch{Frees: true} // even a delete on a full disk takes an LSN
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

// putCounter adds to b that a generation's numbers up to these are used.
func putCounter(b *kv.Batch, gen uint32, lsn, num uint64) {
	v := make([]byte, 0, 17)
	v = append(v, formatCounter)
	v = binary.BigEndian.AppendUint64(v, lsn)
	v = binary.BigEndian.AppendUint64(v, num)
	b.Put(keys.AppendMeta(nil, keys.MetaCounter, gen, ""), v)
}

// Raise adds these amounts to what a container's counter has reserved. No store gives out so many numbers in the age of
// a backup: at 100,000 commits a second 2^36 LSNs take eight days, and 2^28 numbers are a quarter of a billion new
// items in one container. LSNs stay below 2^53, which JavaScript counts exactly; item numbers stay below 2^40
// (docs/formats.md). That is enough to restore a store from backups of its restored self 130,000 times for LSNs, and
// 4,000 times for item numbers.
const (
	raisedLSNs    = 1 << 36
	raisedNumbers = 1 << 28
	maxLSN        = 1<<53 - 1
	maxNumber     = 1<<40 - 1
)

// Raise puts into b the counters of generations, raised above everything that was given out after the engine's state
// was copied. It fails when the numbers are used up.
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
