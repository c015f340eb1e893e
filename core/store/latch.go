package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
)

// latch is a mutex whose waiters can have a context, and whose queue is bounded. A new caller may take it before those
// that wait: that saves a switch of goroutines for each of many short holds. But when the head of the queue loses the
// latch to one after it has been the head for latchPatience, it gets the latch before new ones from then on. Only the
// head is woken, once for each release.
//
// The bound of the queue is a time, because the duration of a hold depends on the machine and on the documents. Once
// waiting takes longer than latchTarget, callers beyond latchFew are refused until it takes less. A few dozen waiting
// writers are no overload: they share one sync of the log.
//
// Example: A holds the latch, B and C wait, B is the head of the queue. A unlocks and B is woken. Before B runs, D
// takes the latch. B waits again. If that comes again and again, newcomers wait behind B after a millisecond. If A has
// the latch for longer than that, because its commit goes over a network, B loses it once.
//
// The zero latch is free.
type latch struct {
	held    atomic.Bool
	first   atomic.Bool // new callers wait behind the head of the queue
	slow    atomic.Bool // the last waiter that got the latch has waited longer than latchTarget
	waiting atomic.Int32

	mu         sync.Mutex // guards the fields below; held for a few instructions
	head, last *latchWaiter
}

// latchWaiter is a caller in the queue of a latch. latch.mu guards all fields except wake.
type latchWaiter struct {
	wake   chan struct{} // capacity 1: gets a token when the latch is released and the caller is the head
	woken  bool          // wake has a token, or the caller has taken it and looks at the latch
	begun  time.Time
	headed time.Time // when it became the head of the queue
	behind *latchWaiter
}

const (
	latchTarget   = 50 * time.Millisecond
	latchFew      = 64
	latchPatience = time.Millisecond // many times a switch of goroutines
)

// realTime measures how long a caller has waited, independent of the time that items get.
var realTime = clock.New()

// Lock waits for the latch without limit: for background work.
func (l *latch) Lock() {
	if !l.try() {
		l.waiting.Add(1)
		_ = l.wait(context.Background())
	}
}

// LockUntil is Lock that gives up when ctx ends. Over a network a commit may hold the latch for many seconds, and
// others may come first.
func (l *latch) LockUntil(ctx context.Context) error {
	if l.try() {
		return nil
	}
	l.waiting.Add(1)
	return l.wait(ctx)
}

// LockFor takes the latch for a request. It fails immediately with status.TooManyRequests when the queue is too long,
// and with Timeout when ctx ends.
func (l *latch) LockFor(ctx context.Context) error {
	if l.try() {
		return nil
	}
	if n := l.waiting.Add(1); n > latchFew && l.overdue() {
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

// overdue reports whether waiting takes longer than latchTarget. The holder may be stuck, so the present head of the
// queue counts too.
func (l *latch) overdue() bool {
	if l.slow.Load() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head != nil && realTime.Now().Sub(l.head.begun) > latchTarget
}

// wait waits in the queue. The caller has incremented waiting.
func (l *latch) wait(ctx context.Context) error {
	defer l.waiting.Add(-1)
	w := &latchWaiter{wake: make(chan struct{}, 1), begun: realTime.Now()}
	l.mu.Lock()
	if l.head == nil {
		l.head, w.headed = w, w.begun
	} else {
		l.last.behind = w
	}
	l.last = w
	won := l.head == w && l.held.CompareAndSwap(false, true) // released before w was in the queue
	l.mu.Unlock()
	for !won {
		select {
		case <-w.wake:
			won = l.take(w)
		case <-ctx.Done():
			l.leave(w)
			return translate(ctx.Err())
		}
	}
	l.slow.Store(realTime.Now().Sub(w.begun) > latchTarget)
	l.leave(w)
	return nil
}

// take tries to take the latch for the head of the queue, which was woken. If it fails the next release wakes it again.
func (l *latch) take(w *latchWaiter) bool {
	if l.held.CompareAndSwap(false, true) {
		return true
	}
	now := realTime.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	w.woken = false
	if now.Sub(w.headed) >= latchPatience {
		l.first.Store(true)
	}
	return l.held.CompareAndSwap(false, true) // it was released before woken was false
}

// leave removes a caller that got the latch, or gave up. If the latch is free it wakes the next head: the release may
// have woken the one that has left.
func (l *latch) leave(w *latchWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == w {
		l.first.Store(false)
		if l.head = w.behind; l.head == nil {
			l.last = nil
		} else {
			l.head.headed = realTime.Now()
		}
		if !l.held.Load() {
			l.wakeHead()
		}
	} else {
		before := l.head
		for before.behind != w {
			before = before.behind
		}
		if before.behind = w.behind; l.last == w {
			l.last = before
		}
	}
}

// wakeHead wakes the head of the queue unless it is awake. The caller holds mu.
func (l *latch) wakeHead() {
	if w := l.head; w != nil && !w.woken {
		w.woken = true
		w.wake <- struct{}{}
	}
}

// Unlock releases the latch.
func (l *latch) Unlock() {
	l.held.Store(false)
	if l.waiting.Load() == 0 {
		return
	}
	l.mu.Lock() // a caller that isn't in the queue yet looks at held when it is
	l.wakeHead()
	l.mu.Unlock()
}

// without releases the latch, which the caller holds, runs f, and takes the latch again.
func (l *latch) without(f func() error) error {
	l.Unlock()
	defer l.Lock()
	return f()
}
