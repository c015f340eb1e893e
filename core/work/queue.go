package work

import (
	"sync"
	"time"
)

// Queue does things of one kind one after the other, in the order in which they came, on one goroutine of a Group that
// is there only while there is something to do. What fails is done again after a pause. What is left when the group
// closes is not done.
type Queue[T any] struct {
	g    *Group
	what string
	do   func(T) error

	mu      sync.Mutex
	todo    []T
	running bool
}

// The pauses behind failures of a Queue: each is twice as long as the one before.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = time.Minute
)

// NewQueue returns a queue whose things are done by do.
func NewQueue[T any](g *Group, what string, do func(T) error) *Queue[T] {
	return &Queue[T]{g: g, what: what, do: do}
}

// Add adds things. It never waits.
func (q *Queue[T]) Add(things ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.todo = append(q.todo, things...)
	if !q.running && len(q.todo) > 0 {
		q.running = q.g.Go(q.what, q.run)
	}
}

// Len is how many things wait or are being done.
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

// next returns the first thing; false when there is none or the group is closed.
func (q *Queue[T]) next() (t T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.todo) == 0 || q.g.ctx.Err() != nil {
		q.running = false
		return t, false
	}
	return q.todo[0], true
}

// settle takes the first thing out, or with an error puts it behind the others.
func (q *Queue[T]) settle(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.todo[0]
	if q.todo = q.todo[1:]; err != nil {
		q.todo = append(q.todo, first)
	}
}
