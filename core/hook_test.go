package core_test

import (
	"cmp"
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// hooks is an engine in memory. A test can observe its writes, delay them and make them fail.
type hooks struct {
	kv.Engine
	mu sync.Mutex
	on hookSet
}

// hookSet holds the functions of hooks; nil does nothing.
type hookSet struct {
	visible  func()       // called when a batch is visible, before Write returns
	fail     func() error // returns an error for Write: nothing is applied
	unsure   func() error // returns an error for Write: the batch is applied
	wait     func() error // called by Wait of the commits; its error is that of Wait
	snapshot func(take func() kv.Snapshot) kv.Snapshot
	refuse   func() error    // returns an error for Snapshot and Get
	drop     func()          // called before a range is dropped
	pre      func(*kv.Batch) // called with each batch before it is applied
	added    func()          // called before each key that is added to sorted tables
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

// refused returns the error for Snapshot and Get.
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
	if f != nil && !calledBy("beginIDFilter") { // background work of the test's engine, which holds a latch then
		s = f(func() kv.Snapshot {
			var of kv.Snapshot
			of, err = h.Engine.Snapshot(ctx)
			return of
		})
		return s, err
	}
	return h.Engine.Snapshot(ctx)
}

// Tables implements kv.Ingester. Ingest calls the functions that Write calls; pre gets an empty batch.
func (h *hooks) Tables(ctx context.Context) kv.Tables {
	t := kv.BeginTables(ctx, h.Engine)
	if t == nil {
		return nil
	}
	return hookTables{t, h}
}

type hookTables struct {
	kv.Tables
	h *hooks
}

func (t hookTables) Add(key, value []byte) error {
	t.h.mu.Lock()
	f := t.h.on.added
	t.h.mu.Unlock()
	if f != nil {
		f()
	}
	return t.Tables.Add(key, value)
}

func (t hookTables) Ingest(pre []kv.Precondition) error {
	t.h.mu.Lock()
	on := t.h.on
	t.h.mu.Unlock()
	if on.pre != nil {
		on.pre(&kv.Batch{})
	}
	if on.fail != nil {
		if err := on.fail(); err != nil {
			return err
		}
	}
	if err := t.Tables.Ingest(pre); err != nil {
		return err
	}
	if on.visible != nil {
		on.visible()
	}
	if on.unsure != nil {
		return on.unsure()
	}
	return nil
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

// calledBy reports whether a caller has this text in its name. Other work takes snapshots too.
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

// hooked opens an engine on hooks. At the end the checker must find nothing.
func hooked(t *testing.T, o core.Options) (*core.Engine, *hooks) {
	t.Helper()
	o.MinSlots = cmp.Or(o.MinSlots, someSlots)
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
