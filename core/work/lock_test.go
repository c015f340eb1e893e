package work_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/work"
)

// One has the lock at a time, and who waits stops with its ctx.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := work.NewLock()
		if err := l.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second one has the lock: %v", err)
		}
		n := 0
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := l.Lock(t.Context()); err != nil {
					t.Error(err)
					return
				}
				defer l.Unlock()
				was := n
				time.Sleep(time.Millisecond)
				n = was + 1
			})
		}
		l.Unlock()
		all.Wait()
		if n != 10 {
			t.Errorf("%d of 10 had the lock alone", n)
		}
	})
}
