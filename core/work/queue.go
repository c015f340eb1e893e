package work

import (
	"sync"
	"time"
)

// Queue processes tasks of one kind in the order in which they were added, one at a time. Its goroutine belongs to a
// Group and exists only while there are tasks. A task that fails goes to the end of the queue, and the next attempt
// waits for a pause. When the group closes, the remaining tasks are dropped.
//
// Example: a, b and c are added, and a fails once. The order is a (fails), pause of 100 ms, b, c, a.
type Queue[T any] struct {
	g    *Group
	what string
	do   func(T) error

	mu      sync.Mutex
	todo    []T
	running bool
}

// The pauses after failures. Each is twice as long as the one before, until a task succeeds.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = time.Minute
)

// NewQueue returns a queue that calls do for each task. what names the work in the log.
func NewQueue[T any](g *Group, what string, do func(T) error) *Queue[T] {
	return &Queue[T]{g: g, what: what, do: do}
}

// Add adds tasks. It never blocks.
func (q *Queue[T]) Add(things ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.todo = append(q.todo, things...)
	if !q.running && len(q.todo) > 0 {
		q.running = q.g.Go(q.what, q.run)
	}
}

// Len returns the number of tasks that wait or are being processed.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.todo)
}

func (q *Queue[T]) run() {
	pause := firstPause
	for {
		t, ok := q.next()
		if !ok {
			return
		}
		err := q.g.Try(q.what, func() error { return q.do(t) })
		q.settle(err)
		if err == nil {
			pause = firstPause
			continue
		}
		q.g.Sleep(pause)
		pause = min(2*pause, lastPause)
	}
}

// next returns the first task. ok is false if there is none or the group is closed.
func (q *Queue[T]) next() (t T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.todo) == 0 || q.g.ctx.Err() != nil {
		q.running = false
		return t, false
	}
	return q.todo[0], true
}

// settle removes the first task from the queue; after an error it appends it at the end.
func (q *Queue[T]) settle(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.todo[0]
	if q.todo = q.todo[1:]; err != nil {
		q.todo = append(q.todo, first)
	}
}
