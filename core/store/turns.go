package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// turns lets a transaction that has lost its races run alone in its logical partition. Such transactions queue for a
// turn. During a turn the other writers of the partition wait, without the latch. So the rest of the slot continues.
//
// Correctness doesn't depend on turns: a commit checks what it has read in any case. So a turn may be bounded. A writer
// waits for one turn at most and may pass the next one. A turn that lasts longer than turnMost no longer holds others
// up.
//
// Example: transaction T has lost two races on partition "p" and takes a turn. Writer W of "p" waits until T has
// committed, or turnMost at most. A writer of partition "q" doesn't wait.
type turns struct {
	used atomic.Int32 // number of logical partitions with a queue; at 0 writers don't look further
	mu   sync.Mutex
	of   map[string]*turn // by tuple
}

// turn is the queue of one logical partition. turns.mu guards all fields except queue.
type turn struct {
	queue latch
	users int           // transactions that have a turn or wait for one
	over  chan struct{} // closed when the current turn is over; nil: there is no turn
	until time.Time     // until when it holds others up
}

// turnMost is how long a turn holds other writers up: many times the duration of a function that only computes, and
// less than the time that a client waits.
const turnMost = time.Second

// take waits for the turn of a logical partition. The caller calls leave at the end. It fails as latch.LockFor does.
func (t *turns) take(ctx context.Context, tuple []byte) (leave func(), err error) {
	t.mu.Lock()
	q := t.of[string(tuple)]
	if q == nil {
		if t.of == nil {
			t.of = map[string]*turn{}
		}
		q = &turn{}
		t.of[string(tuple)] = q
		t.used.Add(1)
	}
	q.users++
	t.mu.Unlock()
	if err := q.queue.LockFor(ctx); err != nil {
		t.drop(q, tuple)
		return nil, err
	}
	over := make(chan struct{})
	t.set(q, over)
	return func() {
		t.set(q, nil)
		close(over)
		q.queue.Unlock()
		t.drop(q, tuple)
	}, nil
}

func (t *turns) set(q *turn, over chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.over, q.until = over, realTime.Now().Add(turnMost)
}

// drop removes a user from a queue, and removes a queue without users.
func (t *turns) drop(q *turn, tuple []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(t.of, string(tuple))
		t.used.Add(-1)
	}
}

// wait waits until the current turn of a logical partition is over. A writer calls it before it writes there.
func (t *turns) wait(ctx context.Context, tuple []byte) error {
	if t.used.Load() == 0 {
		return nil
	}
	var over chan struct{}
	var until time.Time
	t.mu.Lock()
	if q := t.of[string(tuple)]; q != nil {
		over, until = q.over, q.until
	}
	t.mu.Unlock()
	if over == nil {
		return nil
	}
	late := time.NewTimer(until.Sub(realTime.Now()))
	defer late.Stop()
	select {
	case <-over:
		return nil
	case <-late.C:
		return nil
	case <-ctx.Done():
		return translate(ctx.Err())
	}
}
