package work

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

func TestAPanicIsAnErrorInTheLog(t *testing.T) {
	var out bytes.Buffer
	g := New(slog.New(slog.NewTextHandler(&out, nil)))
	err := g.Try("reap c", func() error { panic("no such thing") })
	if !status.Is(err, status.Internal) || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("the error is %v", err)
	}
	done := make(chan struct{})
	g.Go("rebuild c", func() {
		defer close(done)
		var none *int
		*none = 1
	})
	<-done
	g.Close()
	if g.Panics() != 2 {
		t.Errorf("%d panics were counted, want 2", g.Panics())
	}
	for _, want := range []string{"reap c", "no such thing", "rebuild c", "nil pointer", "work_test.go"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log says nothing of %q:\n%s", want, &out)
		}
	}
}

func TestCloseWaits(t *testing.T) {
	g := New(nil)
	var ended atomic.Bool
	g.Go("", func() {
		<-g.Context().Done()
		time.Sleep(5 * time.Millisecond)
		ended.Store(true)
	})
	g.Close()
	if !ended.Load() {
		t.Error("Close did not wait")
	}
	if g.Go("", func() { t.Error("work began after Close") }) {
		t.Error("Go says that work runs after Close")
	}
	g.Close()
}

func TestQueueIsOneGoroutine(t *testing.T) {
	g := New(slog.New(slog.DiscardHandler))
	defer g.Close()
	hold, all := make(chan struct{}), make(chan struct{})
	var got []int
	failed := 0
	q := NewQueue(g, "drop", func(n int) error {
		<-hold
		switch n {
		case 1, 2: // once for each
			if failed < 2 {
				failed++
				if n == 1 {
					panic("a fault")
				}
				return errors.New("not now")
			}
		}
		if got = append(got, n); len(got) == 4000 {
			close(all)
		}
		return nil
	})
	before := runtime.NumGoroutine()
	for n := range 4000 {
		q.Add(n)
	}
	if now := runtime.NumGoroutine(); now > before+1 {
		t.Errorf("4,000 things are done by %d goroutines", now-before)
	}
	close(hold)
	<-all
	slices.Sort(got)
	for i, n := range got {
		if i != n {
			t.Fatalf("thing %d is missing or was done twice", i)
		}
	}
}

func TestQueueEndsWithItsGroup(t *testing.T) {
	g := New(nil)
	began := make(chan struct{}, 1)
	q := NewQueue(g, "drop", func(int) error {
		began <- struct{}{}
		<-g.Context().Done()
		return context.Canceled
	})
	q.Add(1, 2, 3)
	<-began
	g.Close()
	q.Add(4)
	if q.Len() != 4 {
		t.Errorf("%d things are left, want 4", q.Len())
	}
}

// AtLeast ends with its ctx, but not early; Within ends with its ctx or with the group.
func TestTimesAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct{ ends, want time.Duration }{{0, time.Second}, {3 * time.Second, 3 * time.Second}} {
			ctx, end := context.WithTimeout(t.Context(), tc.ends)
			within, cancel := AtLeast(ctx, time.Second)
			begun := time.Now()
			<-within.Done()
			if took := time.Since(begun); took != tc.want {
				t.Errorf("it ended after %v, want %v", took, tc.want)
			}
			cancel()
			end()
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		_, cancel := AtLeast(ctx, time.Second)
		cancel()
		g := New(nil)
		within, leave := g.Within(ctx)
		defer leave()
		if within.Err() != nil {
			t.Error("it has ended early")
		}
		g.Close()
		<-within.Done()
		if ctx.Err() != nil {
			t.Error("the ctx that it is of has ended too")
		}
	})
}
