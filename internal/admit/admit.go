// Package admit bounds how many requests a door works on and how many wait for it. Past the bounds a request is
// refused at once, so that those which are let in are answered in time.
//
// The number of requests that run at once follows from what the machine can do: while goroutines wait long for a
// processor it falls, by a fifth at a time, and while requests wait at the gate though processors are free it grows.
// So requests that compute are let in few at a time, and those that wait for a sync of the log, which they share,
// many. As many may wait as may run, and leastWaiting in any case: a client that sends on all its connections at once
// is no overload, however small or busy the machine is.
//
// Example: on two processors 1,000 clients read in a loop. 64 run, goroutines wait 2 ms for a processor, and the
// limit falls in a few steps to 6. 128 more wait. A read takes as long as 134 take one after the other, and the other
// clients are refused at once.
package admit

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
)

// Options are the bounds of a Gate.
type Options struct {
	Running int           // requests that are worked on at once, at most
	Waiting int           // requests that wait for that, at most
	Wait    time.Duration // how long one waits at most

	// Delay returns how long goroutines wait for a processor now: all but a tenth of them less long; negative while it
	// isn't known. nil = what the runtime says.
	Delay func() time.Duration
	// Now is the time by which the limit is adjusted; nil = the real one.
	Now func() time.Time
}

// How the limit moves.
const (
	perProcessor = 3 // the least limit
	// that may wait whatever the limit is: the drivers' pools have up to 100 connections
	leastWaiting = 128
	firstLimit   = 32                     // for each processor
	target       = 500 * time.Microsecond // that a goroutine should wait for a processor at most
	interval     = 10 * time.Millisecond  // between adjustments
)

// Gate lets requests in. A nil Gate lets in all. Safe for concurrent use.
type Gate struct {
	o       Options
	least   int64
	limit   atomic.Int64
	running atomic.Int64
	waiting atomic.Int64
	refused atomic.Int64
	full    atomic.Bool // somebody had to wait since the last adjustment
	enters  atomic.Uint32

	mu    sync.Mutex
	queue []chan struct{} // who waits, in the order of their coming
	next  time.Time       // of the next adjustment
}

// New returns a gate with these bounds.
func New(o Options) *Gate {
	o.Running = max(o.Running, 1)
	if o.Delay == nil {
		o.Delay = newRuntimeDelay().read
	}
	if o.Now == nil {
		o.Now = clock.New().Now
	}
	procs := runtime.GOMAXPROCS(0)
	g := &Gate{o: o, least: int64(min(o.Running, perProcessor*procs))}
	g.limit.Store(int64(min(o.Running, firstLimit*procs)))
	return g
}

// Enter lets a request in, or refuses it with status.TooManyRequests and a time to wait; ctx's error when that ends
// first. Who was let in calls Leave.
func (g *Gate) Enter(ctx context.Context) error {
	if g == nil {
		return nil
	}
	if g.waiting.Load() > 0 || !g.take() {
		return g.wait(ctx)
	}
	if g.running.Load() > g.least && g.enters.Add(1)&15 == 0 {
		g.adjust()
	}
	return nil
}

// take takes a place if there is one.
func (g *Gate) take() bool {
	for {
		n := g.running.Load()
		if n >= g.limit.Load() {
			return false
		}
		if g.running.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// wait waits for a place.
func (g *Gate) wait(ctx context.Context) error {
	g.full.Store(true)
	g.adjust()
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > min(int64(g.o.Waiting), max(g.limit.Load(), leastWaiting)) {
		if g.waiting.Load() == 1 && g.take() { // let go since
			return nil
		}
		return g.refuse()
	}
	mine := make(chan struct{})
	g.mu.Lock()
	g.queue = append(g.queue, mine)
	g.letIn()
	g.mu.Unlock()
	t := time.NewTimer(g.o.Wait)
	defer t.Stop()
	select {
	case <-mine:
		return nil
	case <-t.C:
		if g.giveUp(mine) {
			return g.refuse()
		}
	case <-ctx.Done():
		if g.giveUp(mine) {
			return ctx.Err()
		}
	}
	return nil
}

// giveUp takes one out of the queue; false when it was let in at the same moment.
func (g *Gate) giveUp(mine chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, c := range g.queue {
		if c == mine {
			g.queue = append(g.queue[:i:i], g.queue[i+1:]...)
			return true
		}
	}
	return false
}

// letIn lets those in who wait, as far as there are places. The caller holds mu.
func (g *Gate) letIn() {
	for len(g.queue) > 0 && g.take() {
		close(g.queue[0])
		g.queue = g.queue[1:]
	}
}

func (g *Gate) refuse() error {
	g.refused.Add(1)
	e := status.New(status.TooManyRequests, "The server has more requests than it can answer in time. Send this one "+
		"again later.")
	e.Sub, e.RetryAfter = status.SubThrottled, g.o.Wait
	return e
}

// Leave makes room for another request.
func (g *Gate) Leave() {
	if g == nil {
		return
	}
	g.running.Add(-1)
	if g.waiting.Load() > 0 {
		g.mu.Lock()
		g.letIn()
		g.mu.Unlock()
	}
}

// Return takes the place again that Leave gave back, whether or not there is one: a request that is under way goes
// on. It is for who calls Leave while its client keeps it waiting.
func (g *Gate) Return() {
	if g != nil {
		g.running.Add(1)
	}
}

// adjust moves the limit when it is time.
func (g *Gate) adjust() {
	if !g.mu.TryLock() { // somebody else will
		return
	}
	defer g.mu.Unlock()
	now := g.o.Now()
	if now.Before(g.next) {
		return
	}
	g.next = now.Add(interval)
	delay := g.o.Delay()
	if delay < 0 {
		return
	}
	limit, full := g.limit.Load(), g.full.Swap(false)
	switch {
	case delay > target:
		limit = max(min(limit, g.running.Load())*4/5, g.least)
	case full && delay < target/2:
		limit = min(limit+max(limit/8, 1), int64(g.o.Running))
	}
	g.limit.Store(limit)
	g.letIn()
}

// Running is how many requests are let in now.
func (g *Gate) Running() int {
	if g == nil {
		return 0
	}
	return int(g.running.Load())
}

// Limit is how many requests may run at once now.
func (g *Gate) Limit() int {
	if g == nil {
		return 0
	}
	return int(g.limit.Load())
}

// Refused is how many requests were refused.
func (g *Gate) Refused() int64 {
	if g == nil {
		return 0
	}
	return g.refused.Load()
}
