package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// turns lets a transaction that has lost its races be alone in its logical partition: those who lose queue for a turn,
// and while one has it the other writers of the partition wait, outside of the latch. So the rest of the slot goes on.
//
// A turn makes nothing true: a commit checks what it has read in any case. So it may be bounded. A writer waits for one
// turn at most and is let past the next one, and a turn that lasts longer than turnMost keeps nobody any more.
type turns struct {
	used atomic.Int32 // logical partitions with a queue; writers look no further while there is none
	mu   sync.Mutex
	of   map[string]*turn // by tuple
}

// turn is the queue of one logical partition. But for queue it belongs to turns.mu.
type turn struct {
	queue latch
	users int           // who have it or wait for it
	over  chan struct{} // closed when the present turn is over; nil: nobody has it
	until time.Time     // how long that keeps others
}

// turnMost is how long a turn keeps other writers: many times what a function takes that only computes, and less than a
// client waits.
const turnMost = time.Second

// take waits for the turn of a logical partition; the caller calls leave. It fails as latch.LockFor does.
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

// drop takes a user off a queue, and removes a queue without users.
func (t *turns) drop(q *turn, tuple []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(t.of, string(tuple))
		t.used.Add(-1)
	}
}

// wait lets the present turn of a logical partition end first, for who is about to write there.
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
