// Package admit limits how many requests a door processes and how many wait for it. Further requests are refused
// immediately, so that accepted requests are answered in time.
//
// The number of running requests adapts to the machine. While goroutines wait long for a processor, the limit falls in
// steps of a fifth. While requests wait at the gate although processors are free, it grows. So few requests run at once
// if they compute, and many if they wait for a sync of the log, which they share. As many may wait as may run, but
// always leastWaiting: a client that sends on all its connections at once is not an overload, however small or busy the
// machine is.
//
// Example: on two processors 1,000 clients read in a loop. At first 64 requests run. Goroutines wait 2 ms for a
// processor, so the limit falls in a few steps to 6. 128 more requests wait. An accepted read takes at most as long as
// 134 reads one after another. All other clients are refused immediately.
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

// Options are the limits of a Gate.
type Options struct {
	Running int           // largest number of running requests
	Waiting int           // largest number of requests that wait to run
	Wait    time.Duration // longest time that a request waits

	// Delay returns the 90th percentile of the time that goroutines wait for a processor at present. It is negative if
	// there are too few samples. nil = the runtime's figures.
	Delay func() time.Duration
	// Now returns the time by which the limit is adjusted. nil = the wall clock.
	Now func() time.Time
}

// The parameters of the limit.
const (
	perProcessor = 3 // minimum of the limit, for each processor
	// May always wait: the connection pools of drivers have up to 100 connections.
	leastWaiting = 128
	firstLimit   = 32                     // initial limit, for each processor
	target       = 500 * time.Microsecond // the longest time that a goroutine should wait for a processor
	interval     = 10 * time.Millisecond  // between adjustments
)

// Gate admits requests. A nil Gate admits all. Safe for concurrent use.
type Gate struct {
	o       Options
	least   int64
	limit   atomic.Int64
	running atomic.Int64
	waiting atomic.Int64
	refused atomic.Int64
	full    atomic.Bool // a request had to wait since the last adjustment
	enters  atomic.Uint32

	mu    sync.Mutex
	queue []chan struct{} // waiting requests, in the order of their arrival
	next  time.Time       // of the next adjustment
}

// New returns a gate with these limits.
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

// Enter admits a request, or refuses it with status.TooManyRequests and RetryAfter. If ctx ends first, it returns ctx's
// error. An admitted request must call Leave.
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

// take takes a place if one is free.
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
		if g.waiting.Load() == 1 && g.take() { // a place is free by now
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

// giveUp removes a request from the queue. It returns false if the request was already admitted.
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

// letIn admits waiting requests while places are free. The caller holds mu.
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

// Leave gives the place back.
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

// Return takes a place again after Leave, even if none is free, because a request that has begun must finish. It is for
// requests that call Leave while they wait for their client.
func (g *Gate) Return() {
	if g != nil {
		g.running.Add(1)
	}
}

// adjust changes the limit if the interval is over.
func (g *Gate) adjust() {
	if !g.mu.TryLock() { // another goroutine adjusts it
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

// Running returns how many requests are admitted now.
func (g *Gate) Running() int {
	if g == nil {
		return 0
	}
	return int(g.running.Load())
}

// Limit returns how many requests may run now.
func (g *Gate) Limit() int {
	if g == nil {
		return 0
	}
	return int(g.limit.Load())
}

// Refused returns how many requests have been refused.
func (g *Gate) Refused() int64 {
	if g == nil {
		return 0
	}
	return g.refused.Load()
}
