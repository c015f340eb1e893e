package core_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// hooks is an engine in memory whose Write a test can watch, hold up and let fail.
type hooks struct {
	kv.Engine
	mu sync.Mutex
	on hookSet
}

// hookSet is what hooks do; nil does nothing.
type hookSet struct {
	visible  func()       // called when a batch is visible, before Write returns
	fail     func() error // an error for Write: nothing is applied
	unsure   func() error // an error for Write: the batch is applied
	wait     func() error // what Wait of the commits does
	snapshot func(take func() kv.Snapshot) kv.Snapshot
	refuse   func() error    // an error for Snapshot and Get
	drop     func()          // called when a range is dropped, before it is
	pre      func(*kv.Batch) // called with each batch before it is applied
}

func (h *hooks) set(f func(*hookSet)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&h.on)
}

type hookCommit struct {
	kv.Commit
	wait func() error
}

func (c hookCommit) Wait() error {
	if c.wait != nil {
		return c.wait()
	}
	return c.Commit.Wait()
}

func (h *hooks) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	h.mu.Lock()
	on := h.on
	h.mu.Unlock()
	if on.pre != nil {
		on.pre(b)
	}
	if on.fail != nil {
		if err := on.fail(); err != nil {
			return nil, err
		}
	}
	cm, err := h.Engine.Write(ctx, b, pre)
	if err != nil {
		return nil, err
	}
	if on.visible != nil {
		on.visible()
	}
	if on.unsure != nil {
		if err := on.unsure(); err != nil {
			return nil, err
		}
	}
	return hookCommit{cm, on.wait}, nil
}

// refused is what Snapshot and Get fail with.
func (h *hooks) refused() error {
	h.mu.Lock()
	f := h.on.refuse
	h.mu.Unlock()
	if f == nil {
		return nil
	}
	return f()
}

func (h *hooks) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if err := h.refused(); err != nil {
		return dst, err
	}
	return h.Engine.Get(ctx, dst, key)
}

func (h *hooks) Snapshot(ctx context.Context) (s kv.Snapshot, err error) {
	if err := h.refused(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	f := h.on.snapshot
	h.mu.Unlock()
	if f != nil && !calledBy("beginIDFilter") { // work beside the test, which has a latch meanwhile
		s = f(func() kv.Snapshot {
			var of kv.Snapshot
			of, err = h.Engine.Snapshot(ctx)
			return of
		})
		return s, err
	}
	return h.Engine.Snapshot(ctx)
}

func (h *hooks) DropRange(ctx context.Context, lo, hi []byte) error {
	h.mu.Lock()
	f := h.on.drop
	h.mu.Unlock()
	if f != nil {
		f()
	}
	return h.Engine.DropRange(ctx, lo, hi)
}

// calledBy reports whether a function whose name has this in it is among the callers: other work takes snapshots, too.
func calledBy(name string) bool {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, name) {
			return true
		}
		if !more {
			return false
		}
	}
}

// hooked opens an engine on hooks; the checker must find nothing at the end.
func hooked(t *testing.T, o core.Options) (*core.Engine, *hooks) {
	t.Helper()
	h := &hooks{Engine: kv.Checked(memkv.New())}
	e, err := core.Open(bg, h, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.set(func(h *hookSet) { *h = hookSet{} })
		clean(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, h
}

// clean fails the test when the checker finds a problem.
func clean(t testing.TB, e *core.Engine) {
	t.Helper()
	problems, err := e.Check(bg)
	if err != nil {
		t.Error(err)
	}
	for _, p := range problems {
		t.Errorf("check: %s", p)
	}
}
