package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

var bg = context.Background()

// firstHead stands for the first value of a slot's head.
var firstHead = []byte("head")

// counting counts the operations of an engine.
type counting struct {
	kv.Engine
	gets, iters, seen, ops, conflicts atomic.Int64
}

func newCounting() *counting { return &counting{Engine: kv.Checked(memkv.New())} }

func (e *counting) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	e.gets.Add(1)
	return e.Engine.Get(ctx, dst, key)
}

func (e *counting) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	c, err := e.Engine.Write(ctx, b, pre)
	if errors.Is(err, kv.ErrConflict) {
		e.conflicts.Add(1)
	} else {
		e.ops.Add(int64(b.Len()))
	}
	return c, err
}

func (e *counting) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	return &countingSnapshot{s, e}, err
}

type countingSnapshot struct {
	kv.Snapshot
	e *counting
}

func (s *countingSnapshot) Iter(lo, hi []byte) (kv.Iterator, error) {
	s.e.iters.Add(1)
	it, err := s.Snapshot.Iter(lo, hi)
	return &countingIterator{it, s.e}, err
}

type countingIterator struct {
	kv.Iterator
	e *counting
}

func (i *countingIterator) Value() []byte {
	i.e.seen.Add(1)
	return i.Iterator.Value()
}

// asked returns the counts so far.
func (e *counting) asked() [4]int64 {
	return [4]int64{e.gets.Load(), e.iters.Load(), e.seen.Load(), e.ops.Load()}
}

func open(t testing.TB, eng kv.Engine) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(eng, clock.New(), catalog.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func spec(id string) catalog.Spec {
	return catalog.Spec{ID: id, PartitionKey: catalog.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}}
}

func name(i int) string { return fmt.Sprintf("c%06d", i) }

func create(t testing.TB, c *catalog.Catalog, db string, s catalog.Spec) *catalog.Container {
	t.Helper()
	k, err := c.CreateContainer(bg, db, s, firstHead)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func createDatabase(t testing.TB, c *catalog.Catalog, id string) *catalog.Database {
	t.Helper()
	d, err := c.CreateDatabase(bg, id, catalog.Throughput{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// filled is a catalog with n containers in database db.
func filled(t testing.TB, eng kv.Engine, n int) *catalog.Catalog {
	t.Helper()
	c := open(t, eng)
	createDatabase(t, c, "db")
	for i := range n {
		create(t, c, "db", spec(name(i)))
	}
	return c
}

// list gives the definitions of a database as text.
func list(t testing.TB, c *catalog.Catalog, db string) (out []string) {
	t.Helper()
	for k, err := range c.Containers(t.Context(), db, 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %x %d %d", k.ID, k.RID(), k.Gen, k.Version))
	}
	return out
}

// metaKeys counts the catalog's keys in a store, by kind.
func metaKeys(t testing.TB, eng kv.Engine) map[keys.MetaKind]int {
	t.Helper()
	out := map[keys.MetaKind]int{}
	snap := kvtest.Snapshot(t, eng)
	defer snap.Close()
	it, err := snap.Iter([]byte{0x10}, []byte{0x11})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		kind, _, _, _ := keys.ParseMeta(it.Key())
		out[kind]++
	}
	return out
}
