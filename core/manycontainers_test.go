package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// A start, background work and lists open no container. Of the containers with expiring items, only those with items
// are read.
func TestNothingOpensUnusedContainers(t *testing.T) {
	const containers = 60
	raw := memkv.New()
	e := reopened(t, raw)
	ttl := int32(1)
	for i := range containers {
		s := core.ContainerSpec{ID: fmt.Sprint("c", i)}
		if i%3 == 0 {
			s.DefaultTTL = &ttl
		}
		if c := newContainer(t, e, s); i%6 == 0 {
			put(t, c, core.Create, `{"id":"1","pk":"a"}`)
		}
	}
	if n := e.OpenContainers(); n != containers {
		t.Errorf("%d containers are open", n)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = reopened(t, raw)
	defer e.Close()
	sum := int64(0)
	for st, err := range e.Stats(bg, "") {
		if err != nil || len(st.Partitions) != 1 || st.Rebuild != 100 {
			t.Fatalf("%+v, %v", st, err)
		}
		sum += st.Items
	}
	defs := 0
	for range e.Definitions(bg, "db", 0) {
		defs++
	}
	if sum != containers/6 || defs != containers || containersOf(t, e) != containers || e.OpenContainers() != 0 {
		t.Errorf("%d items, %d definitions, %d open", sum, defs, e.OpenContainers())
	}
	if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	if err := e.Scrub(bg); err != nil {
		t.Error(err)
	}
	e.Clock().Advance(5 * time.Second)
	if n := e.Reap(bg); n != containers/6 {
		t.Errorf("%d items were reaped, want %d", n, containers/6)
	}
	for st := range e.Stats(bg, "") {
		if st.Items != 0 {
			t.Errorf("%s has %d items", st.ID(), st.Items)
		}
	}
	if _, err := e.Container("db", "c7"); err != nil {
		t.Error(err)
	}
}

// reopened opens a store in memory that stays when the engine is closed.
func reopened(t testing.TB, raw kv.Engine) *core.Engine {
	t.Helper()
	e, err := core.Open(bg, &unowned{raw}, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// stopping is an engine whose process ends after some writes: later ones are refused.
type stopping struct {
	kv.Engine
	left atomic.Int64
}

func (e *stopping) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if e.left.Add(-1) < 0 {
		return nil, kv.ErrUnavailable
	}
	return e.Engine.Write(ctx, b, pre)
}

func (e *stopping) DropRange(ctx context.Context, lo, hi []byte) error {
	if e.left.Add(-1) < 0 {
		return kv.ErrUnavailable
	}
	return e.Engine.DropRange(ctx, lo, hi)
}

func (*stopping) Close() error { return nil }

// The process ends at each write of the drop of a database with many containers. The next process continues: at the end
// nothing of the database is left, and everything else is.
func TestDropOfADatabaseGoesOnAfterACrash(t *testing.T) {
	const containers = 150
	for stop := int64(0); ; stop++ {
		raw := kv.Checked(memkv.New())
		dying := &stopping{Engine: raw}
		dying.left.Store(1 << 30)
		e, err := core.Open(bg, dying, core.Options{MinSlots: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range containers {
			c := newContainer(t, e, core.ContainerSpec{ID: fmt.Sprint("c", i)})
			if i%50 == 0 {
				put(t, c, core.Create, `{"id":"1","pk":"a"}`)
			}
		}
		if _, err := e.EnsureDatabase(bg, "stays"); err != nil {
			t.Fatal(err)
		}
		stays, err := e.CreateContainer(
			bg, "stays", core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
		if err != nil {
			t.Fatal(err)
		}
		put(t, stays, core.Create, `{"id":"1","pk":"a"}`)
		dying.left.Store(stop)
		err = e.DropDatabase(bg, "db")
		if stop == 0 {
			if err == nil || containersOf(t, e) != containers {
				t.Fatalf("a drop that failed: %v, %d containers", err, containersOf(t, e))
			}
		} else if err != nil {
			t.Fatal(err)
		}
		whole := func() bool { return dying.left.Load() >= 0 && dropsDone(t, raw, 1) }
		for end := time.Now().Add(time.Minute); dying.left.Load() >= 0 && stop > 0 &&
			!whole(); time.Sleep(100 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatal("the drop doesn't end")
			}
		}
		done := whole()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}

		e = reopened(t, raw)
		if stop == 0 {
			if n := containersOf(t, e); n != containers {
				t.Errorf("%d containers after a drop that failed", n)
			}
			if err := e.DropDatabase(bg, "db"); err != nil {
				t.Fatal(err)
			}
		}
		_, err = e.Container("db", "c0")
		wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
		newContainer(t, e, core.ContainerSpec{ID: "c0"})
		for end := time.Now().Add(time.Minute); !dropsDone(t, raw, 2); time.Sleep(100 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatalf("stopped after %d writes: what was dropped isn't removed", stop)
			}
		}
		c, err := e.Container("stays", "c")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(bg, pk("a"), value.StringOf("1")); err != nil {
			t.Error(err)
		}
		if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := raw.Close(); err != nil {
			t.Fatal(err)
		}
		if done {
			if stop < 8 {
				t.Errorf("the drop of %d containers took %d writes", containers, stop)
			}
			return
		}
	}
}

// dropsDone reports whether nothing of the dropped containers is left, and the given number of containers has data.
func dropsDone(t testing.TB, eng kv.Engine, containers int) bool {
	t.Helper()
	snap := kvtest.Snapshot(t, eng)
	defer snap.Close()
	for _, k := range []keys.MetaKind{keys.MetaDropped, keys.MetaDroppedDatabase} {
		lo, hi := keys.MetaBounds(k)
		it, err := snap.Iter(lo, hi)
		if err != nil {
			t.Fatal(err)
		}
		left := it.First()
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		if left {
			return false
		}
	}
	gens := map[uint32]bool{}
	lo, hi := keys.DataBounds()
	it, err := snap.Iter(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		g, _ := keys.Generation(it.Key())
		gens[g] = true
	}
	return len(gens) == containers
}

// Data without a container, in a store from before drops left notes, is found at the start and removed.
func TestOrphansOfAStoreWithoutNotes(t *testing.T) {
	raw := memkv.New()
	e := reopened(t, raw)
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	newContainer(t, e, core.ContainerSpec{ID: "other"})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var b kv.Batch // an older version removes the catalog's entry, and the process ends
	b.Delete(keys.AppendMeta(nil, keys.MetaContainer, 0x10000001, "c"))
	b.Delete(keys.AppendMeta(nil, keys.MetaVersion, 0, ""))
	if _, err := raw.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	e = reopened(t, raw)
	defer e.Close()
	for end := time.Now().Add(time.Minute); !dropsDone(t, raw, 1); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the data stays")
		}
	}
	if _, err := e.Container("db", "other"); err != nil {
		t.Error(err)
	}
}

// Writes of a handle fail from the moment a database is dropped, also while the heads of its containers still exist.
func TestWritesToADroppedDatabase(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	hold := make(chan struct{})
	h.set(func(s *hookSet) {
		s.pre = func(b *kv.Batch) {
			for i := range b.Len() {
				if op := b.Op(i); op.Delete && len(op.Key) == keys.PrefixLen && !keys.IsMeta(op.Key) {
					<-hold // the heads stay
					return
				}
			}
		}
	})
	if err := e.DropDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"write": func() error {
			_, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
			return err
		}(),
		"many": c.WriteMany(bg, []core.Write{{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)}}, true)[0].Err,
		"tx": func() error {
			_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
				_, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)})
				return err
			})
			return err
		}(),
	} {
		if !status.Is(err, status.NotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	close(hold)
}
