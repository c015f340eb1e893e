package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
)

// latch is a mutex that can be waited for with a context, and whose queue is bounded. A newcomer may take it past those
// who wait: that spares a switch of goroutines for each of many short holds. But the first of the queue is let past
// newcomers when it has lost the latch to several of them.
//
// How long the queue may get is said in time, because what a hold takes depends on the machine and on the documents:
// once waiting has taken longer than latchTarget, newcomers beyond latchFew are refused until it takes less. A few
// dozen writers that wait are no overload: they share one sync of the log.
//
// The zero latch is free.
type latch struct {
	held    atomic.Bool
	first   atomic.Bool // newcomers stay behind the head of the queue
	waiting atomic.Int32
	slow    atomic.Bool // who came last to the head of the queue has waited longer than latchTarget
	queue   atomic.Pointer[latchQueue]
}

// latchQueue is what a latch that somebody waits for has: most of many have nobody.
type latchQueue struct {
	head chan struct{} // has a token of the waiter who is the head of the queue
	free chan struct{} // gets a token when the latch is let go while somebody waits
}

const (
	latchTarget   = 50 * time.Millisecond
	latchFew      = 64
	latchPatience = 64 // newcomers that the head of the queue lets pass
)

// line returns the queue, which is there from the first call on.
func (l *latch) line() *latchQueue {
	if l.queue.Load() == nil {
		l.queue.CompareAndSwap(nil, &latchQueue{make(chan struct{}, 1), make(chan struct{}, 1)})
	}
	return l.queue.Load()
}

// realTime tells how long something has waited, whatever time items are in.
var realTime = clock.New()

// Lock waits for the latch however long it takes: for background work.
func (l *latch) Lock() {
	if !l.try() {
		l.waiting.Add(1)
		_ = l.wait(context.Background())
	}
}

// LockFor takes the latch for a request. It fails with status.TooManyRequests at once when the queue is too long, and
// with Timeout when ctx ends.
func (l *latch) LockFor(ctx context.Context) error {
	if l.try() {
		return nil
	}
	if n := l.waiting.Add(1); n > latchFew && l.slow.Load() {
		l.waiting.Add(-1)
		return errTooMany()
	}
	return l.wait(ctx)
}

func errTooMany() error {
	e := status.WithSub(status.TooManyRequests, status.SubThrottled,
		"This part of the container has more writes than it can do in time. Send this one again later.")
	e.RetryAfter = latchTarget
	return e
}

func (l *latch) try() bool { return !l.first.Load() && l.held.CompareAndSwap(false, true) }

// wait stands in the queue. The caller has counted itself in waiting.
func (l *latch) wait(ctx context.Context) error {
	defer l.waiting.Add(-1)
	begun, q := realTime.Now(), l.line()
	select {
	case q.head <- struct{}{}:
	case <-ctx.Done():
		return translate(ctx.Err())
	}
	defer func() {
		l.first.Store(false)
		l.slow.Store(realTime.Now().Sub(begun) > latchTarget)
		<-q.head
	}()
	return l.headWait(ctx, q)
}

// headWait is the wait of the head of the queue.
func (l *latch) headWait(ctx context.Context, q *latchQueue) error {
	if l.held.CompareAndSwap(false, true) {
		return nil
	}
	late := time.NewTimer(latchTarget) // the holder may be stuck: newcomers must know
	defer late.Stop()
	for lost := 1; ; lost++ {
		select {
		case <-q.free:
		case <-late.C:
			l.slow.Store(true)
			continue
		case <-ctx.Done():
			return translate(ctx.Err())
		}
		if l.held.CompareAndSwap(false, true) {
			return nil
		}
		if lost >= latchPatience {
			l.first.Store(true)
		}
		if l.held.CompareAndSwap(false, true) { // let go between the two
			return nil
		}
	}
}

// Unlock lets the latch go.
func (l *latch) Unlock() {
	l.held.Store(false)
	if l.waiting.Load() == 0 {
		return
	}
	q := l.queue.Load()
	if q == nil {
		return // who waits has not looked at held yet: it makes the queue before
	}
	select {
	case q.free <- struct{}{}:
	default: // the head of the queue has a token already
	}
}

// without runs f with the latch let go, which the caller holds.
func (l *latch) without(f func() error) error {
	l.Unlock()
	defer l.Lock()
	return f()
}
