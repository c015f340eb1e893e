package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

// Many goroutines take the latch, wait for it and give up. One at a time holds it, and none waits forever.
func TestLatchExcludes(t *testing.T) {
	var l latch
	var inside, gaveUp atomic.Int32
	var wg sync.WaitGroup
	n := 0
	for i := range 32 {
		wg.Go(func() {
			for k := range 500 {
				if i%4 == 0 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(k%7)*10*time.Microsecond)
					err := l.LockFor(ctx)
					cancel()
					if err != nil {
						gaveUp.Add(1)
						continue
					}
				} else {
					l.Lock()
				}
				if inside.Add(1) != 1 {
					t.Error("two hold the latch")
				}
				n++
				inside.Add(-1)
				l.Unlock()
			}
		})
	}
	wg.Wait()
	if n != 32*500-int(gaveUp.Load()) || l.waiting.Load() != 0 || l.first.Load() || l.held.Load() || l.head != nil {
		t.Errorf("%d holds, %d gave up; the latch at rest: %d wait", n, gaveUp.Load(), l.waiting.Load())
	}
}

// A waiter gets the latch in the end, though another goroutine takes it again and again.
func TestLatchStarvesNobody(t *testing.T) {
	var l latch
	l.Lock()
	got := make(chan struct{})
	go func() {
		l.Lock()
		close(got)
		l.Unlock()
	}()
	for l.waiting.Load() == 0 {
		time.Sleep(time.Microsecond)
	}
	for begun := time.Now(); ; {
		select {
		case <-got:
			l.Unlock()
			return
		default:
		}
		if time.Since(begun) > time.Minute { // on a busy machine the waiter may not run for long
			t.Fatal("a waiter lost the latch for a minute")
		}
		l.Unlock()
		l.Lock()
	}
}

// Where the latch is held for long, as over a network, who waits for it loses it to a new caller once at most.
func TestLatchTakesTurnsOfLongHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l latch
		var got atomic.Bool
		l.Lock()
		go func() {
			l.Lock()
			got.Store(true)
			l.Unlock()
		}()
		for n := 0; !got.Load(); n++ {
			if n > 1 {
				t.Fatal("a waiter has lost the latch again")
			}
			time.Sleep(20 * time.Millisecond)
			l.Unlock()
			l.Lock() // mostly before the waiter runs
		}
		l.Unlock()
	})
}

// If the holder is stuck, few goroutines wait, and others are refused at once. A context ends a wait.
func TestLatchRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l latch
		l.Lock()
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range latchFew {
			wg.Go(func() {
				if err := l.LockFor(ctx); !status.Is(err, status.Timeout) {
					t.Errorf("a wait that its context has ended: %v", err)
				}
			})
		}
		time.Sleep(2 * latchTarget)
		if !l.overdue() || l.waiting.Load() != latchFew {
			t.Fatalf("%d wait, overdue: %v", l.waiting.Load(), l.overdue())
		}
		begun := time.Now()
		err := l.LockFor(context.Background())
		if !status.Is(err, status.TooManyRequests) || status.From(err).RetryAfter <= 0 || time.Since(begun) > 0 {
			t.Errorf("one too many: %v after %v", err, time.Since(begun))
		}
		cancel()
		wg.Wait()
		l.Unlock()
		if err := l.LockFor(context.Background()); err != nil {
			t.Errorf("the latch is free: %v", err)
		}
		l.Unlock()
	})
}

// LockUntil is for the background work of copies. It waits for as long as its ctx lasts, even where a request would be
// refused, and leaves the queue when ctx ends: those behind it get the latch.
func TestLatchLockUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l latch
		l.Lock()
		begun := time.Now()
		var wg sync.WaitGroup
		work := func(patience time.Duration, want status.Code, took time.Duration) {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				err := l.LockUntil(ctx)
				d := time.Since(begun)
				if d != took || err == nil != (want == 0) || err != nil && !status.Is(err, want) {
					t.Errorf("who waits for %v: %v after %v, want %v after %v", patience, err, d, want, took)
				}
				if err == nil {
					l.Unlock()
				}
			})
			synctest.Wait() // it is in the queue
		}
		const stuck = time.Minute // the holder waits for a store that doesn't answer
		work(10*time.Second, status.Timeout, 10*time.Second)
		for range 2 * latchFew {
			work(2*stuck, 0, stuck)
		}
		work(20*time.Second, status.Timeout, 20*time.Second)
		time.Sleep(2 * latchTarget)
		if err := l.LockFor(context.Background()); !status.Is(err, status.TooManyRequests) {
			t.Errorf("a request beside them: %v", err)
		}
		time.Sleep(stuck - 2*latchTarget)
		l.Unlock()
		wg.Wait()
		if l.held.Load() || l.head != nil || l.waiting.Load() != 0 {
			t.Error("the latch isn't at rest")
		}
		if err := l.LockUntil(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Hundreds of writers that wait for short holds are not refused: they share syncs of the log. A writer comes again when
// its client has had the reply, in the middle of another writer's hold. So it waits in the queue, and the scheduling of
// goroutines doesn't matter.
func TestLatchTakesManyShortHolds(t *testing.T) {
	const (
		writers = 4 * latchFew
		hold    = latchTarget / (2 * writers) // all writers have their turn in half of the time that a wait may take
		reply   = 20*hold + hold/2
	)
	synctest.Test(t, func(t *testing.T) { // the machine's other work takes no time
		var l latch
		var wg sync.WaitGroup
		var most atomic.Int32
		for range writers {
			wg.Go(func() {
				for range 20 {
					if err := l.LockFor(context.Background()); err != nil {
						t.Errorf("%v, overdue: %v", err, l.overdue())
						return
					}
					most.Store(max(most.Load(), l.waiting.Load()))
					time.Sleep(hold)
					l.Unlock()
					time.Sleep(reply)
				}
			})
		}
		wg.Wait()
		if most.Load() < 2*latchFew {
			t.Errorf("at most %d have waited", most.Load())
		}
	})
}

func TestLatchIsHeldAgainAfterAPanicWithoutIt(t *testing.T) {
	var l latch
	l.Lock()
	func() {
		defer func() { _ = recover() }()
		_ = l.without(func() error { panic("a fault") })
	}()
	if l.try() {
		t.Error("the latch isn't held")
	}
	want := errors.New("x")
	if err := l.without(func() error { return want }); err != want {
		t.Error(err)
	}
}

func BenchmarkLatch(b *testing.B) {
	var l latch
	var m sync.Mutex
	b.Run("latch", func(b *testing.B) {
		for b.Loop() {
			_ = l.LockFor(context.Background())
			l.Unlock()
		}
	})
	b.Run("mutex", func(b *testing.B) {
		for b.Loop() {
			m.Lock()
			//lint:ignore SA2001 an empty section is what is measured
			m.Unlock()
		}
	})
	contended := func(lock, unlock func()) func(*testing.B) {
		return func(b *testing.B) {
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				x := 0
				for pb.Next() {
					lock()
					for i := range 2000 {
						x += i
					}
					unlock()
				}
				_ = x
			})
		}
	}
	b.Run("contended latch", contended(func() { _ = l.LockFor(context.Background()) }, l.Unlock))
	b.Run("contended mutex", contended(m.Lock, m.Unlock))
}
