package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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

// silent is a shared store that stops to answer: calls end only with their ctx. What was written then may be applied,
// or not.
type silent struct {
	kv.Engine
	now    atomic.Bool
	commit atomic.Bool            // it stops with the next Write
	slot   atomic.Bool            // it stops with the next Write into a slot
	passes atomic.Int64           // it stops with the Write after so many, if that is positive
	late   atomic.Pointer[func()] // applies the write that was under way when it stopped
}

// answer waits for the end of ctx if the store is silent.
func (s *silent) answer(ctx context.Context, kind error) error {
	begun := time.Now()
	for s.now.Load() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", kind, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Since(begun) > time.Hour {
			return errors.New("a call without an end")
		}
	}
	return nil
}

func (s *silent) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if err := s.answer(ctx, kv.ErrUnavailable); err != nil {
		return dst, err
	}
	return s.Engine.Get(ctx, dst, key)
}

func (s *silent) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if err := s.answer(ctx, kv.ErrUnavailable); err != nil {
		return nil, err
	}
	return s.Engine.Snapshot(ctx)
}

func (s *silent) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if s.commit.Swap(false) || s.passes.Add(-1) == 0 || intoSlot(b) && s.slot.Swap(false) {
		s.now.Store(true)
		own := new(kv.Batch)
		own.Append(b)
		heads := slices.Clone(pre)
		for i := range heads {
			heads[i].Key, heads[i].Value = bytes.Clone(pre[i].Key), bytes.Clone(pre[i].Value)
		}
		late := func() { _, _ = s.Engine.Write(bg, own, heads) }
		s.late.Store(&late)
	}
	if s.now.Load() {
		_ = s.answer(ctx, kv.ErrUnknownOutcome)
		return nil, kv.ErrUnknownOutcome
	}
	return s.Engine.Write(ctx, b, pre)
}

// intoSlot reports whether a batch writes the head of a slot.
func intoSlot(b *kv.Batch) bool {
	for i := range b.Len() {
		if _, kind, ok := keys.ParseSlot(b.Op(i).Key); ok && kind == keys.KindHead {
			return true
		}
	}
	return false
}

// While a shared store doesn't answer, a request ends with its deadline, or soon afterwards. A commit under way then
// looks for its outcome for a second more, and for the state of its slot for another one. Look-ups of names have no
// deadline, and end after five seconds.
func TestRequestsEndWhileTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &silent{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
		e, err := core.Open(bg, store, core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
		if err != nil {
			t.Fatal(err)
		}
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"a","pk":"p","n":0}`)
		const deadline = 2 * time.Second
		for _, tc := range []struct {
			name string
			most time.Duration
			want status.Code
			do   func(ctx context.Context) error
		}{
			{"read", deadline, status.Timeout, func(ctx context.Context) error {
				_, err := c.Read(ctx, pk("p"), pk("a")[0])
				return err
			}},
			{"name", 5 * time.Second, status.Unavailable, func(context.Context) error {
				_, err := e.Container("db", "c")
				return err
			}},
			{"name of a request", deadline, status.Timeout, func(ctx context.Context) error {
				_, err := e.Within(ctx).Container("db", "c")
				return err
			}},
			{"commit", deadline + 2*time.Second + 100*time.Millisecond, status.UnknownOutcome,
				func(ctx context.Context) error {
					store.now.Store(false)
					store.commit.Store(true)
					_, err := c.Write(ctx, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"a","pk":"p","n":1}`)})
					return err
				}},
		} {
			store.now.Store(true)
			ctx, cancel := context.WithTimeout(bg, deadline)
			begun := time.Now()
			err := tc.do(ctx)
			if took := time.Since(begun); took > tc.most || status.CodeOf(err) != tc.want {
				t.Errorf("%s took %v: %v", tc.name, took, err)
			}
			cancel()
		}
		store.now.Store(false)
		if got := put(t, c, core.Replace, `{"id":"a","pk":"p","n":2}`); got.LSN == 0 {
			t.Error("no LSN")
		}
		clean(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Work without a deadline that waits for the store keeps no request waiting behind its own deadline, and the second in
// which the catalog looks for the outcome of a change.
func TestBackgroundWorkWaitsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &silent{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
		e, err := core.Open(bg, store, core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
		if err != nil {
			t.Fatal(err)
		}
		const deadline = 2 * time.Second
		for name, work := range map[string]func() error{
			"journal": func() error { return e.TrimJournal(bg) },
			"catalog": func() error {
				_, err := e.CreateDatabase(bg, core.DatabaseSpec{ID: "of the work"})
				return err
			},
		} {
			store.now.Store(true)
			var all sync.WaitGroup
			all.Go(func() {
				// The silent store knows of no write whether it was applied.
				if err := work(); err != nil && !status.Is(err, status.UnknownOutcome) {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
			ctx, cancel := context.WithTimeout(bg, deadline)
			begun := time.Now()
			_, err := e.CreateDatabase(ctx, core.DatabaseSpec{ID: "db"})
			if took := time.Since(begun); took > deadline+1100*time.Millisecond || err == nil {
				t.Errorf("beside work on the %s it took %v: %v", name, took, err)
			}
			cancel()
			store.now.Store(false)
			all.Wait()
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Look-ups of names and lists end with the request too, whether the store answers nothing, or everything but the
// definitions of containers.
func TestLookUpsEndWithTheRequest(t *testing.T) {
	each := func(e *core.Engine, ctx context.Context, rid [8]byte) map[string]func() error {
		names := e.Within(ctx)
		list := func(defs iter.Seq2[core.Definition, error]) error {
			for _, err := range defs {
				if err != nil {
					return err
				}
			}
			return nil
		}
		return map[string]func() error{
			"container":   func() error { _, err := names.Container("db", "c"); return err },
			"in fold":     func() error { _, err := names.ContainerFold("db", "C"); return err },
			"all in fold": func() error { _, err := e.ContainersFold(ctx, "db", "C"); return err },
			"by _rid":     func() error { _, err := names.ContainerByRID(rid); return err },
			"definitions": func() error { return list(e.Definitions(ctx, "db", 0)) },
			"numbered":    func() error { return list(e.Numbered(ctx, 1, 1)) },
			"resizing":    func() error { _, err := e.Resizing(ctx, "db", "c"); return err },
			"replace": func() error {
				_, err := e.ReplaceContainer(ctx, "db", "c", core.ContainerSpec{})
				return err
			},
			"rename": func() error { _, err := e.RenameContainer(ctx, "db", "c", "d", false); return err },
			"drop":   func() error { return e.DropContainer(ctx, "db", "c") },
			"stats": func() error {
				for _, err := range e.Stats(ctx, "db") {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"database":  func() error { _, err := names.Database("db"); return err },
			"databases": func() error { _, err := e.Databases(ctx); return err },
			"count":     func() error { _, err := e.ContainerCount(ctx, "db"); return err },
			"names":     func() error { _, err := e.Names(ctx, "db", ""); return err },
			"resource":  func() error { _, err := names.Resource("db", core.User, 0, "u"); return err },
			"resources": func() error { _, err := e.Resources(ctx, "db", core.User, 0); return err },
		}
	}
	noDefinition := []string{"database", "databases", "count", "names", "resource", "resources"}
	open := func(store kv.Engine) *core.Engine {
		e, err := core.Open(bg, store, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for name := range each(&core.Engine{}, bg, [8]byte{}) {
		for _, only := range [][]byte{nil, keys.AppendMeta(nil, keys.MetaContainer, 0, "")[:2]} {
			if only != nil && slices.Contains(noDefinition, name) {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				below := memkv.New()
				e := open(kvtest.NewShared(below, 1).Engine())
				rid := newContainer(t, e, core.ContainerSpec{}).RID()
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				store := &kvtest.Mute{Engine: kvtest.NewShared(below, 2).Engine(), Only: only}
				e = open(store)
				store.Now.Store(true)
				const deadline = 2 * time.Second
				ctx, cancel := context.WithTimeout(bg, deadline)
				defer cancel()
				begun := time.Now()
				err := each(e, ctx, rid)[name]()
				if took := time.Since(begun); took > deadline || !status.Is(err, status.Timeout) {
					t.Errorf("%s, %x isn't read: it took %v: %v", name, only, took, err)
				}
				store.Now.Store(false)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A split of a slot ends soon after its deadline too, whichever of its writes the store doesn't answer. It has a second
// each for the catalog, the slot map, the end of the copy, and the lease. What it has left behind is removed when the
// store answers again, and writers don't wait for that.
func TestSplitsEndWhileTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &silent{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
		clk := clock.Fake(time.Unix(1_700_000_000, 0))
		e, err := core.Open(bg, store, core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"a","pk":"p","n":0}`)
		const deadline = 2 * time.Second
		failed := 0
		for n := range int64(9) {
			store.passes.Store(n + 1)
			ctx, cancel := context.WithTimeout(bg, deadline)
			begun := time.Now()
			err := c.SplitSlot(ctx, []byte{0x20, byte(n + 1)})
			if took := time.Since(begun); took > deadline+4*time.Second+100*time.Millisecond {
				t.Errorf("silent from write %d on, it took %v: %v", n, took, err)
			}
			if cancel(); err != nil {
				failed++
			}
			store.passes.Store(0)
			store.now.Store(false)
			if got := put(t, c, core.Replace, `{"id":"a","pk":"p","n":2}`); got.LSN == 0 {
				t.Error("no LSN")
			}
		}
		if failed < 4 {
			t.Errorf("%d splits have failed", failed)
		}
		for n := 0; e.DropsLeft() > 0 && n < 3600; n++ {
			clk.Advance(time.Second)
			time.Sleep(time.Second)
		}
		if n := e.DropsLeft(); n > 0 {
			t.Errorf("%d slots remain", n)
		}
		clean(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A request that declares a unique index ends soon after its deadline too, whichever of its writes the store doesn't
// answer. It has a second each for the outcome of its write, the removal of what it has built, the catalog, and the
// lease.
func TestDeclarationsEndWhileTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &silent{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
		e, err := core.Open(bg, store, core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
		if err != nil {
			t.Fatal(err)
		}
		c := newContainer(t, e, core.ContainerSpec{})
		for i := range 3 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p","u":%d}`, i, i))
		}
		const deadline = 2 * time.Second
		failed := 0
		for n := range int64(6) {
			store.passes.Store(n + 1)
			ctx, cancel := context.WithTimeout(bg, deadline)
			begun := time.Now()
			_, err := e.ChangeContainer(ctx, "db", "c", func(s *core.ContainerSpec) error {
				s.Declared = []core.Declared{uniqueIn(fmt.Sprint("u", n), "u")}
				return nil
			})
			if took := time.Since(begun); took > deadline+4*time.Second+100*time.Millisecond {
				t.Errorf("silent from write %d on, it took %v: %v", n, took, err)
			}
			if cancel(); err != nil {
				failed++
			}
			store.passes.Store(0)
			store.now.Store(false)
			time.Sleep(20 * time.Second)
		}
		if failed < 4 {
			t.Errorf("%d declarations have failed", failed)
		}
		clean(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The progress of an index rebuild, which an open container reads from the store, ends with the request.
func TestProgressEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &silent{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
		e, err := core.Open(bg, store, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"a","pk":"p","n":0}`)
		store.now.Store(true)
		const deadline = 2 * time.Second
		ctx, cancel := context.WithTimeout(bg, deadline)
		defer cancel()
		begun := time.Now()
		c.IndexProgressWithin(ctx)
		if took := time.Since(begun); took > deadline {
			t.Errorf("it took %v", took)
		}
		store.now.Store(false)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Close ends soon while the store doesn't answer, whatever background work has asked it for: a commit under way, which
// would look for its outcome, and the sign of life of the process. Others find out both without it.
func TestCloseEndsWhileTheStoreIsSilent(t *testing.T) {
	ttl := int32(10)
	for name, before := range map[string]func(store *silent, clk *clock.Clock){
		"nothing": func(store *silent, _ *clock.Clock) { store.now.Store(true) },
		"removal of items": func(store *silent, clk *clock.Clock) {
			store.slot.Store(true)
			clk.Advance(time.Minute)
			for !store.now.Load() {
				time.Sleep(time.Second)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &silent{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
			clk := clock.Fake(time.Unix(1_700_000_000, 0))
			e, err := core.Open(bg, store, core.Options{Clock: clk})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Announce(core.Announcement{Name: "test"}); err != nil {
				t.Fatal(err)
			}
			c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &ttl})
			put(t, c, core.Create, `{"id":"a","pk":"p","n":0}`)
			time.Sleep(10 * time.Second) // it has a sign of life
			before(store, clk)
			begun := time.Now()
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > 1100*time.Millisecond {
				t.Errorf("%s: Close took %v", name, took)
			}
			store.now.Store(false)
		})
	}
}

// A commit whose outcome stays unknown is applied late, when the process makes another one, whose outcome is unknown
// too. Both change no count. The second one was refused, and is not taken for applied.
func TestTwoUnknownOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &silent{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
		e, err := core.Open(bg, store, core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
		if err != nil {
			t.Fatal(err)
		}
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"a","pk":"p","n":0}`)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		store.commit.Store(true)
		_, err = c.Write(ctx, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"a","pk":"p","n":1}`)})
		wantCode(t, err, status.UnknownOutcome, 0)
		first := *store.late.Load()
		time.Sleep(2 * time.Second) // until it isn't looked for any more
		store.now.Store(false)
		store.commit.Store(true) // the second commit
		go func() {
			time.Sleep(100 * time.Millisecond) // it is on its way
			first()
			(*store.late.Load())() // refused: the head is no longer what it was
			store.now.Store(false)
		}()
		ctx, cancel = context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		_, err = c.Write(ctx, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"a","pk":"p","n":2}`)})
		if store.commit.Load() {
			t.Error("there was no second commit")
		}
		it, rerr := c.Read(bg, pk("p"), pk("a")[0])
		if rerr != nil {
			t.Fatal(rerr)
		}
		if n := doc.Get(it.Doc, "n").Int(); err == nil && n != 2 {
			t.Errorf("an acknowledged write is lost: n is %d", n)
		}
		clean(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
