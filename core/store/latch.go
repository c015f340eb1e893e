package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
)

// latch is a mutex whose waiters can have a context, and whose queue is bounded. A new caller may take it before those
// that wait: that saves a switch of goroutines for each of many short holds. But when the head of the queue has lost
// the latch to several callers, it gets the latch before new ones.
//
// The bound of the queue is a time, because the duration of a hold depends on the machine and on the documents. Once
// waiting has taken longer than latchTarget, callers beyond latchFew are refused until it takes less. A few dozen
// waiting writers are no overload: they share one sync of the log.
//
// Example: A holds the latch, B and C wait, B is the head of the queue. A unlocks and B is woken. Before B runs, D
// takes the latch. B waits again. After 64 such losses newcomers wait behind B.
//
// The zero latch is free.
type latch struct {
	held    atomic.Bool
	first   atomic.Bool // new callers wait behind the head of the queue
	waiting atomic.Int32
	slow    atomic.Bool // the last head of the queue has waited longer than latchTarget
	queue   atomic.Pointer[latchQueue]
}

// latchQueue is the queue of a latch with waiters. Most latches have none.
type latchQueue struct {
	head chan struct{} // has a token, owned by the waiter that is the head of the queue
	free chan struct{} // gets a token when the latch is released while a caller waits
}

const (
	latchTarget   = 50 * time.Millisecond
	latchFew      = 64
	latchPatience = 64 // new callers that the head of the queue lets pass
)

// line returns the queue. The first call creates it.
func (l *latch) line() *latchQueue {
	if l.queue.Load() == nil {
		l.queue.CompareAndSwap(nil, &latchQueue{make(chan struct{}, 1), make(chan struct{}, 1)})
	}
	return l.queue.Load()
}

// realTime measures how long a caller has waited, independent of the time that items get.
var realTime = clock.New()

// Lock waits for the latch without limit: for background work.
func (l *latch) Lock() {
	if !l.try() {
		l.waiting.Add(1)
		_ = l.wait(context.Background())
	}
}

// LockFor takes the latch for a request. It fails immediately with status.TooManyRequests when the queue is too long,
// and with Timeout when ctx ends.
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

// wait waits in the queue. The caller has incremented waiting.
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

// headWait waits as the head of the queue.
func (l *latch) headWait(ctx context.Context, q *latchQueue) error {
	if l.held.CompareAndSwap(false, true) {
		return nil
	}
	late := time.NewTimer(latchTarget) // the holder may be stuck: new callers must learn that
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
		if l.held.CompareAndSwap(false, true) { // the latch was released between the two
			return nil
		}
	}
}

// Unlock releases the latch.
func (l *latch) Unlock() {
	l.held.Store(false)
	if l.waiting.Load() == 0 {
		return
	}
	q := l.queue.Load()
	if q == nil {
		return // the waiter has not checked held yet: it creates the queue before that
	}
	select {
	case q.free <- struct{}{}:
	default: // the head of the queue has a token already
	}
}

// without releases the latch, which the caller holds, runs f, and takes the latch again.
func (l *latch) without(f func() error) error {
	l.Unlock()
	defer l.Lock()
	return f()
}
