package pebblekv

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/orrerydb/orrery/core/kv"
)

// DefaultStall is the default of Options.Stall.
const DefaultStall = 10 * time.Second

// stallEnd times Options.Stall is the duration of an operation at which the process ends.
const stallEnd = 6

// stall measures operations that writers wait for: operations on logs and directories, and the query for free space.
// While one takes longer than limit, no request waits for the log, and writes are refused; see disk.watch.
type stall struct {
	limit time.Duration

	mu  sync.Mutex
	ops []diskOp // an unused element is zero

	given atomic.Pointer[chan struct{}] // closed while the disk is stalled
}

// diskOp is a running operation.
type diskOp struct {
	what, name string // concatenated they are its name
	since      time.Time
}

func (s *stall) init(limit time.Duration) {
	s.limit = limit
	c := make(chan struct{})
	s.given.Store(&c)
}

// begin records an operation, and returns its index for end.
func (s *stall) begin(what, name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := diskOp{what, name, time.Now()}
	for i := range s.ops {
		if s.ops[i].since.IsZero() {
			s.ops[i] = o
			return i
		}
	}
	s.ops = append(s.ops, o)
	return len(s.ops) - 1
}

func (s *stall) end(place int) {
	s.mu.Lock()
	s.ops[place] = diskOp{}
	s.mu.Unlock()
}

// oldest returns the operation that has run longest, and for how long; 0 if none is running.
func (s *stall) oldest() (name string, age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, o := range s.ops {
		if d := now.Sub(o.since); !o.since.IsZero() && d > age {
			name, age = o.what+o.name, d
		}
	}
	return name, age
}

// watch checks the running operations until close.
func (d *disk) watch() {
	t := time.NewTicker(max(d.stall.limit/20, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-d.closed:
			return
		case <-t.C:
			d.look(d.stall.oldest())
		}
	}
}

// look acts on the duration of the oldest operation.
func (d *disk) look(name string, age time.Duration) {
	stalled := d.refused.Load()&refuseStalled != 0
	switch {
	case age >= stallEnd*d.stall.limit:
		d.fail.now("the disk has not answered for %v (%s)", age.Round(time.Second), name)
	case age >= d.stall.limit && !stalled:
		d.refused.Or(refuseStalled)
		close(*d.stall.given.Load())
		d.log.Error("The disk does not answer, writes are refused", "operation", name, "for",
			age.Round(time.Millisecond))
	case age < d.stall.limit && stalled:
		c := make(chan struct{})
		d.stall.given.Store(&c)
		d.refused.And(^uint32(refuseStalled))
		d.log.Info("The disk answers again, writes go on")
	}
}

// commit is a batch whose fsync isn't complete.
type commit struct {
	stall *stall
	batch *pebble.Batch
	done  chan struct{} // closed when err is known
	err   error
}

// syncing waits for the log, for all commits. Pebble's wait can't be cancelled, and the wait of a commit ends when the
// disk is stalled. So one goroutine waits for the commits in turn while there are any. That is nearly the order of the
// log, so most waits of a turn return at once: one sync makes many commits durable.
//
// Example: a sync makes five commits durable. Pebble wakes the goroutine that waits for the first one. It doesn't have
// to wait for the other four, and wakes the five writers.
type syncing struct {
	mu      sync.Mutex
	queue   []*commit
	running bool // there is a goroutine
}

// add returns the commit of a batch that Pebble syncs.
func (s *syncing) add(st *stall, b *pebble.Batch) *commit {
	c := &commit{stall: st, batch: b, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, c)
	if !s.running {
		s.running = true
		go s.run()
	}
	return c
}

// run waits for commits until there are none.
func (s *syncing) run() {
	var turn []*commit
	for {
		s.mu.Lock()
		turn, s.queue = s.queue, turn[:0]
		s.running = len(turn) > 0
		s.mu.Unlock()
		if len(turn) == 0 {
			return
		}
		for i, c := range turn {
			c.wait()
			turn[i] = nil
		}
	}
}

// Wait implements kv.Commit. While the disk is stalled it returns ErrUnknownOutcome. It may be called again later.
func (c *commit) Wait() error {
	given := *c.stall.given.Load()
	select {
	case <-c.done:
		return c.err
	case <-given:
	}
	select {
	case <-c.done:
		return c.err
	default:
		return fmt.Errorf("%w: the disk does not answer", kv.ErrUnknownOutcome)
	}
}

func (c *commit) wait() {
	defer close(c.done)
	if err := c.batch.SyncWait(); err != nil {
		c.err = fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, err)
		return // Pebble may still use the batch: leave it to the garbage collector
	}
	_ = c.batch.Close()
	c.batch = nil
}
