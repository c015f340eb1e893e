package work

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

func TestEachCallsAll(t *testing.T) {
	for _, workers := range []int{0, 1, 3, 100} {
		for _, n := range []int{0, 1, 2, 50} {
			calls := make([]atomic.Int32, n)
			last := make([]int, max(workers, 1))
			for i := range last {
				last[i] = -1
			}
			if err := Each(workers, n, func(i, worker int) error {
				calls[i].Add(1)
				if last[worker] >= i {
					t.Errorf("worker %d does %d behind %d", worker, i, last[worker])
				}
				last[worker] = i
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for i := range calls {
				if calls[i].Load() != 1 {
					t.Errorf("%d workers, %d calls: %d was done %d times", workers, n, i, calls[i].Load())
				}
			}
		}
	}
}

// Four workers wait for eight jobs of a second each in two seconds.
func TestEachWaitsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := Each(4, 8, func(int, int) error { time.Sleep(time.Second); return nil }); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestEachEndsAtAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		bad := errors.New("no")
		err := Each(2, 100, func(i, _ int) error {
			calls.Add(1)
			time.Sleep(time.Second)
			if i >= 4 {
				return errors.Join(bad, status.New(status.Conflict, "%d", i))
			}
			return nil
		})
		if !errors.Is(err, bad) || !strings.Contains(err.Error(), "4") || calls.Load() != 6 {
			t.Errorf("%v after %d calls", err, calls.Load())
		}
	})
}

// A panic on any goroutine becomes a panic of the caller, who can recover it.
func TestEachPanicsAtItsCaller(t *testing.T) {
	for _, workers := range []int{2, 8} {
		func() {
			defer func() {
				p := recover()
				if err, _ := p.(error); err == nil || !strings.Contains(err.Error(), "no such thing") ||
					!strings.Contains(err.Error(), "each_test.go") {
					t.Errorf("%d workers: %v", workers, p)
				}
			}()
			_ = Each(workers, 8, func(i, _ int) error {
				if i == 5 {
					panic("no such thing")
				}
				return nil
			})
		}()
	}
}
