package store

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// collected collects garbage until at most n containers are open.
func collected(t *testing.T, s *Store, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		s.CloseIdle()
		if s.Open() <= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d containers are open, want %d", s.Open(), n)
		}
	}
}

func write(t *testing.T, c *Container, id int) int64 {
	t.Helper()
	d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"i%d","pk":"a","a":"new%[1]d"}`, id),
		doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Write(t.Context(), &Write{Kind: Create, Doc: d})
	if err != nil {
		t.Fatal(err)
	}
	return r.LSN
}

// An unused container is closed, and opened again with the same state. While anyone has it, there is never a second
// one.
func TestIdleContainersAreClosed(t *testing.T) {
	c, _ := checkedContainer(t, 10)
	s, def := c.st, c.Def()
	lsn := write(t, c, 1)
	for range 3 {
		s.CloseIdle()
	}
	runtime.GC()
	if n := len(s.Opened()); n != 0 {
		t.Errorf("%d containers are in use", n)
	}
	again, err := s.Container(t.Context(), def)
	if err != nil || again != c {
		t.Fatalf("a second one was opened, %v", err)
	}
	if n := len(s.Opened()); n != 1 {
		t.Errorf("%d containers are in use after it was asked for", n)
	}
	s.CloseIdle()
	if n := len(s.Opened()); n != 1 {
		t.Error("it was closed too early")
	}
	runtime.KeepAlive(c)
	c, again = nil, nil
	collected(t, s, 0)
	if c, err = s.Container(t.Context(), def); err != nil {
		t.Fatal(err)
	}
	if c.Items() != 11 {
		t.Errorf("%d items", c.Items())
	}
	if next := write(t, c, 2); next <= lsn {
		t.Errorf("LSN %d after %d", next, lsn)
	}
	if _, err := c.Read(t.Context(), PartitionKey{value.StringOf("a")}, value.StringOf("i1")); err != nil {
		t.Error(err)
	}
	if err := c.Check(t.Context(), Watch{Problem: func(p string) { t.Error(p) }}); err != nil {
		t.Error(err)
	}
}

// Background work leaves a container open only if others use it.
func TestVisitsLeaveContainersClosed(t *testing.T) {
	c, _ := checkedContainer(t, 1)
	s, def := c.st, c.Def()
	visit := func(use bool) {
		v, done, err := s.Visit(t.Context(), def)
		if err != nil {
			t.Fatal(err)
		}
		if use {
			if u, err := s.Container(t.Context(), def); err != nil || u != v {
				t.Fatal(err)
			}
		}
		done()
	}
	visit(false)
	if n := len(s.Opened()); n != 1 {
		t.Fatal("a visit has closed a container in use")
	}
	c = nil
	collected(t, s, 0)
	visit(false)
	if n := len(s.Opened()); n != 0 {
		t.Error("a visit leaves a container open")
	}
	visit(true)
	if n := len(s.Opened()); n != 1 {
		t.Error("a visit has closed what was asked for meanwhile")
	}
}

// The heads of a closed container give the same statistics as an open container.
func TestStatsOfClosedContainers(t *testing.T) {
	c, _ := checkedContainer(t, 25)
	s, def := c.st, c.Def()
	open, _, rt, err := s.Stats(context.Background(), def)
	if err != nil || rt != c || open[0].Items != 25 {
		t.Fatalf("%v, %v", open, err)
	}
	c, rt = nil, nil
	collected(t, s, 0)
	closed, _, rt, err := s.Stats(context.Background(), def)
	if err != nil || rt != nil || fmt.Sprint(closed) != fmt.Sprint(open) {
		t.Errorf("closed %v, open %v, %v", closed, open, err)
	}
	if s.Open() != 0 {
		t.Error("it was opened for it")
	}
}

// A container of a dropped database can't be opened with an earlier definition, while its heads still exist.
func TestDroppedDatabasesStayClosed(t *testing.T) {
	c, _ := checkedContainer(t, 1)
	s, def := c.st, c.Def()
	s.ForgetDatabase(def.DBNum)
	if err := c.Alive(); !status.Is(err, status.NotFound) {
		t.Errorf("an open one: %v", err)
	}
	if _, err := s.Container(t.Context(), def); !status.Is(err, status.NotFound) {
		t.Errorf("a closed one: %v", err)
	}
	s.Cleared(def.DBNum)
	if len(s.gone) > 0 {
		t.Error("the database isn't forgotten")
	}
}

// gate is an engine whose reads of single keys wait while it is shut, or fail.
type gate struct {
	kv.Engine
	shut  chan bool // nil: open
	fails atomic.Bool
	reads atomic.Int64
}

func (g *gate) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	g.reads.Add(1)
	if g.shut != nil {
		<-g.shut
	}
	if g.fails.Load() {
		return dst, kv.ErrUnavailable
	}
	return g.Engine.Get(ctx, dst, key)
}

// closedBehindGate returns a store in which a container isn't open, and its engine.
func closedBehindGate(t *testing.T) (*Store, *catalog.Container, *gate) {
	c, eng := checkedContainer(t, 1)
	g := &gate{Engine: eng, shut: make(chan bool)}
	return Open(g, c.st.cat, c.st.clk, Limits{}, c.st.work), c.Def(), g
}

// All that wait for a container get the result of one load; if it fails, the next one loads again.
func TestOneLoadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, def, g := closedBehindGate(t)
		g.fails.Store(true)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := s.Container(context.Background(), def); !status.Is(err, status.Unavailable) {
					t.Errorf("a failed load: %v", err)
				}
			})
		}
		synctest.Wait()
		close(g.shut)
		all.Wait()
		if n := g.reads.Load(); n != 1 {
			t.Errorf("%d reads", n)
		}
		g.fails.Store(false)
		if _, err := s.Container(context.Background(), def); err != nil {
			t.Errorf("the next load: %v", err)
		}
		if len(s.opening) > 0 {
			t.Error("a load is left")
		}
	})
}

// A container that is dropped while it is loaded isn't open afterwards.
func TestDropsEndLoads(t *testing.T) {
	for name, drop := range map[string]func(*Store, *catalog.Container){
		"container": func(s *Store, def *catalog.Container) { s.Forget(def.Gen) },
		"database": func(s *Store, def *catalog.Container) {
			s.ForgetDatabase(def.DBNum)
			s.Cleared(def.DBNum)
		},
	} {
		s, def, g := closedBehindGate(t)
		got := make(chan error, 1)
		go func() {
			_, err := s.Container(context.Background(), def)
			got <- err
		}()
		for g.reads.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		drop(s, def)
		close(g.shut)
		if err := <-got; !status.Is(err, status.NotFound) || s.Open() != 0 || len(s.opening) != 0 {
			t.Errorf("%s: %v, %d are open", name, err, s.Open())
		}
	}
}
