package work

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Each calls f(0, worker), .., f(n-1, worker) on several goroutines, of which the caller's is one, and returns when all
// calls have returned. It is for the steps of one request that wait for the store. worker is from 0 on and below
// workers; calls of one worker come one after the other, with ascending i, so they may share memory that belongs to the
// worker. After an error no more calls begin, and the error of the least i is returned. After a panic of f no more
// calls begin either, and Each panics itself on the goroutine of the caller, with the stack of the first one: so it
// ends the request, as any other, and not the process.
//
// With one worker, or one call, it is a loop that starts no goroutine.
func Each(workers, n int, f func(i, worker int) error) error {
	e := each{n: n, f: f}
	workers = min(workers, n)
	if workers <= 1 {
		e.run(0)
		return e.err
	}
	var wg sync.WaitGroup
	for w := 1; w < workers; w++ {
		wg.Go(func() { e.caught(w) })
	}
	e.caught(0)
	wg.Wait()
	if e.panicked != nil {
		panic(e.panicked)
	}
	return e.err
}

// each is one call of Each.
type each struct {
	n    int
	f    func(i, worker int) error
	next atomic.Int64
	over atomic.Bool

	mu       sync.Mutex
	at       int // of err
	err      error
	panicked error
}

func (e *each) run(worker int) {
	for !e.over.Load() {
		i := int(e.next.Add(1) - 1)
		if i >= e.n {
			return
		}
		if err := e.f(i, worker); err != nil {
			e.fail(i, err)
		}
	}
}

func (e *each) caught(worker int) {
	defer func() {
		if p := recover(); p != nil {
			e.over.Store(true)
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.panicked == nil {
				e.panicked = fmt.Errorf("%v\n%s", p, debug.Stack())
			}
		}
	}()
	e.run(worker)
}

func (e *each) fail(i int, err error) {
	e.over.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil || i < e.at {
		e.at, e.err = i, err
	}
}
