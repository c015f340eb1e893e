package core_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// silentRange is a store in which only the single keys of containers aren't answered, from a generation on.
type silentRange struct {
	kv.Engine
	silent silent
	from   atomic.Uint32 // 0: all are answered
	last   atomic.Uint32 // the generation of the last key that was read
}

func (s *silentRange) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if gen, ok := keys.Generation(key); ok {
		s.last.Store(gen)
		if from := s.from.Load(); from > 0 && gen >= from {
			if err := s.silent.answer(ctx, kv.ErrUnavailable); err != nil {
				return dst, err
			}
		}
	}
	return s.Engine.Get(ctx, dst, key)
}

// reopenedShared returns an engine of one more process over a store that has these containers, each with an item.
func reopenedShared(t *testing.T, over func(kv.Engine) kv.Engine, ids ...string) (*core.Engine, *kvtest.Shared) {
	shared := kvtest.NewShared(memkv.New(), 1)
	e, err := core.Open(bg, shared.Engine(), core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		put(t, newContainer(t, e, core.ContainerSpec{ID: id}), core.Create, `{"id":"a","pk":"p","n":0}`)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, err = core.Open(bg, over(shared.Engine()), core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	return e, shared
}

// A container whose range doesn't answer is opened by nobody's deadline but their own, and holds up no other container.
// It is open when the range answers again.
func TestOpensWaitAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store *silentRange
		e, _ := reopenedShared(t, func(eng kv.Engine) kv.Engine {
			store = &silentRange{Engine: eng}
			return store
		}, "before", "later", "silent")
		before, err := e.Container("db", "before")
		if err != nil {
			t.Fatal(err)
		}
		store.from.Store(store.last.Load() + 2)
		store.silent.now.Store(true)
		var all sync.WaitGroup
		for n := range 3 {
			deadline := time.Duration(n+1) * time.Second
			all.Go(func() {
				ctx, cancel := context.WithTimeout(bg, deadline)
				defer cancel()
				begun := time.Now()
				_, err := e.Within(ctx).Container("db", "silent")
				wantCode(t, err, status.Timeout, 0)
				if took := time.Since(begun); took != deadline {
					t.Errorf("with a deadline of %v it took %v", deadline, took)
				}
			})
		}
		var opened atomic.Bool
		all.Go(func() {
			c, err := e.Container("db", "silent")
			if err != nil {
				t.Error(err)
				return
			}
			opened.Store(true)
			if _, err := c.Read(bg, pk("p"), pk("a")[0]); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		begun := time.Now()
		put(t, before, core.Upsert, `{"id":"a","pk":"p","n":1}`)
		for _, id := range []string{"before", "later"} {
			c, err := e.Container("db", id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(bg, pk("p"), pk("a")[0]); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begun); took != 0 || opened.Load() {
			t.Errorf("others took %v; the silent one is open: %v", took, opened.Load())
		}
		time.Sleep(5 * time.Second)
		store.silent.now.Store(false)
		all.Wait()
		clean(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A store that is closed doesn't wait for the load of a container.
func TestCloseEndsLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store *silentRange
		e, _ := reopenedShared(t, func(eng kv.Engine) kv.Engine {
			store = &silentRange{Engine: eng}
			return store
		}, "c")
		store.silent.now.Store(true)
		store.from.Store(1)
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := e.Container("db", "c"); err == nil {
				t.Error("it is open")
			}
		})
		synctest.Wait()
		begun := time.Now()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Containers are opened side by side: ten of them take no longer than two.
func TestOpensSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}
		e, shared := reopenedShared(t, func(eng kv.Engine) kv.Engine { return eng }, ids...)
		shared.SetFaults(kvtest.Faults{Least: time.Second})
		open := func(ids ...string) time.Duration {
			begun := time.Now()
			var all sync.WaitGroup
			for _, id := range ids {
				all.Go(func() {
					if _, err := e.Container("db", id); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return time.Since(begun)
		}
		one := open(ids[0])
		if ten := open(ids[1:]...); one == 0 || ten > 2*one {
			t.Errorf("one takes %v, ten take %v", one, ten)
		}
		shared.SetFaults(kvtest.Faults{})
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// silentReads is a silent store that stops with a read of a snapshot.
type silentReads struct {
	*silent
	reads atomic.Bool // it stops with the next one
}

func (s *silentReads) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	snap, err := s.silent.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &silentSnapshot{snap, s, ctx}, nil
}

type silentSnapshot struct {
	kv.Snapshot
	s   *silentReads
	ctx context.Context
}

func (s *silentSnapshot) With(ctx context.Context) kv.Snapshot {
	return &silentSnapshot{kv.With(ctx, s.Snapshot), s.s, ctx}
}

func (s *silentSnapshot) GetMany(v *kv.Values, names [][]byte) error {
	if s.s.reads.Swap(false) {
		s.s.now.Store(true)
	}
	if err := s.s.answer(s.ctx, kv.ErrUnavailable); err != nil {
		v.Reset()
		return err
	}
	return s.Snapshot.GetMany(v, names)
}

// Two writes share a commit, one of which has a deadline. While the store doesn't answer, that one ends with its
// deadline, or a second later if it may be committed. The other one waits for the store, and is written.
func TestJointWritersEndWithTheirDeadlines(t *testing.T) {
	const deadline, silence = 500 * time.Millisecond, 5 * time.Second
	for _, tc := range []struct {
		name   string
		commit bool // the store stops with the commit, not before
		first  bool // the one with the deadline leads
		want   status.Code
		took   time.Duration
	}{
		{"reads", false, false, status.Timeout, deadline},
		{"reads of a leader", false, true, status.Timeout, deadline},
		{"commit", true, false, status.UnknownOutcome, deadline + time.Second},
		{"commit of a leader", true, true, status.UnknownOutcome, deadline + time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := kvtest.NewShared(memkv.New(), 1)
				store := &silentReads{silent: &silent{Engine: shared.Engine()}}
				e, err := core.Open(bg, store,
					core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0)), MinSlots: 1})
				if err != nil {
					t.Fatal(err)
				}
				c := newContainer(t, e, core.ContainerSpec{})
				put(t, c, core.Create, `{"id":"a","pk":"p","n":0}`)
				shared.SetFaults(kvtest.Faults{Least: 10 * time.Millisecond})
				ctx, cancel := context.WithTimeout(bg, deadline)
				defer cancel()
				var all sync.WaitGroup
				short := func() {
					d := mustDoc(t, `{"id":"short","pk":"p"}`)
					begun := time.Now()
					_, err := c.Write(ctx, core.Write{Kind: core.Create, Doc: d})
					clear(d) // it is the caller's again
					if took := time.Since(begun); took != tc.took || status.CodeOf(err) != tc.want {
						t.Errorf("the one with a deadline took %v: %v", took, err)
					}
				}
				long := func() {
					_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"long","pk":"p"}`)})
					if err != nil {
						t.Error(err)
					}
				}
				lead, join := long, short
				if tc.first {
					lead, join = short, long
				}
				store.reads.Store(!tc.commit)
				store.commit.Store(tc.commit)
				all.Go(lead)
				synctest.Wait() // it takes a snapshot
				all.Go(join)
				time.Sleep(silence)
				if c.Waiting() > 1 {
					t.Errorf("%d wait", c.Waiting())
				}
				store.now.Store(false)
				all.Wait()
				if _, err := c.Read(bg, pk("p"), pk("long")[0]); err != nil {
					t.Error(err)
				}
				_, err = c.Read(bg, pk("p"), pk("short")[0])
				wantCode(t, err, status.NotFound, 0)
				shared.SetFaults(kvtest.Faults{})
				clean(t, e)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A writer that has left is committed with the others if the store was only slow, and what its caller does with the
// memory of the document meanwhile changes nothing.
func TestJointWriterHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := kvtest.NewShared(memkv.New(), 1)
		eng := &commits{Process: shared.Engine()}
		e, err := core.Open(bg, eng, core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0)), MinSlots: 1})
		if err != nil {
			t.Fatal(err)
		}
		c := newContainer(t, e, core.ContainerSpec{})
		first := mustDoc(t, `{"id":"a","pk":"p"}`)
		got, err := c.Write(bg, core.Write{Kind: core.Create, Doc: first})
		if err != nil || !bytes.Equal(got.Item.Doc, first) || &got.Item.Doc[0] == &first[0] {
			t.Errorf("the commit has the document of its caller, or another one: %v, %v", got.Item, err)
		}
		eng.slow.Store(int64(3 * time.Second))
		shared.SetFaults(kvtest.Faults{Least: 10 * time.Millisecond})
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() { put(t, c, core.Create, `{"id":"long","pk":"p"}`) })
		synctest.Wait()
		all.Go(func() {
			d := mustDoc(t, `{"id":"short","pk":"p","n":7}`)
			_, err := c.Write(ctx, core.Write{Kind: core.Create, Doc: d})
			clear(d)
			wantCode(t, err, status.UnknownOutcome, 0)
		})
		all.Wait()
		it, err := c.Read(bg, pk("p"), pk("short")[0])
		if err != nil || doc.Get(it.Doc, "n").Int() != 7 {
			t.Errorf("%v, %v", it, err)
		}
		eng.slow.Store(0)
		shared.SetFaults(kvtest.Faults{})
		clean(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
