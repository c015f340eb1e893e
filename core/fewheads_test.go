package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// headed is the store of a process. It counts the heads of slots that are read in snapshots.
type headed struct {
	*kvtest.Process
	heads atomic.Int32
}

func (p *headed) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	s, err := p.Process.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &headedSnap{s, p}, nil
}

type headedSnap struct {
	kv.Snapshot
	of *headed
}

func (s *headedSnap) With(ctx context.Context) kv.Snapshot {
	return &headedSnap{kv.With(ctx, s.Snapshot), s.of}
}

func (s *headedSnap) GetMany(v *kv.Values, names [][]byte) error {
	for _, name := range names {
		if _, kind, ok := keys.ParseSlot(name); ok && kind == keys.KindHead {
			s.of.heads.Add(1)
		}
	}
	return s.Snapshot.GetMany(v, names)
}

// The cost of a query of one partition key doesn't grow with the container: it reads the head of one slot.
func TestQueriesOfOneKeyReadOneHead(t *testing.T) {
	store := &headed{Process: kvtest.NewShared(memkv.New(), 1).Engine()}
	e := opened(t, store, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 80_000}})
	slots := int32(len(slotMap(t, c).Slots))
	if slots < 8 {
		t.Fatalf("%d slots", slots)
	}
	for i := range 40 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d}`, i, i%20, i))
	}
	ps, err := c.Partitions(bg)
	if err != nil {
		t.Fatal(err)
	}
	between := func(from, to int) (n int) { // partitions
		for _, p := range ps[from:to] {
			n += int(p.Items)
		}
		return n
	}
	query := func(q *exec.Query) func() int { return func() int { return len(ids(t, c, q)) } }
	inKey := func(key string, q *exec.Query) func() int {
		keyed := *q
		keyed.PK = pk(key)
		return query(&keyed)
	}
	named := func(key string) *exec.Query {
		return &exec.Query{Pred: access.Eq(access.NewPath("pk"), value.StringOf(key)), PlanHash: 1,
			Match: func(it *core.Item) (bool, error) {
				return value.EqualCosmos(doc.Get(it.Doc, "pk"), value.StringOf(key)), nil
			}}
	}
	for _, tc := range []struct {
		name  string
		do    func() int // returns a number of items
		heads int32
		items int
	}{
		{"all items of a key", inKey("p7", &exec.Query{}), 1, 2},
		{"items of a key by a value", inKey("p7", eqQuery("n", 7)), 1, 1},
		{"items of a key by another one's value", inKey("p7", eqQuery("n", 8)), 1, 0},
		{"items of a key that has none", inKey("none", &exec.Query{}), 1, 0},
		{"items of a key that the filter names", query(named("p7")), 1, 2},
		{"a key and a filter that names another one", inKey("p7", named("p8")), 1, 0},
		{"the number of items of a key", func() int {
			n, ok, err := c.CountIn(bg, pk("p7"))
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			return int(n)
		}, 1, 2},
		{"a transaction", func() (n int) {
			if _, err := c.WithTx(bg, pk("p7"), func(tx *core.Tx) error {
				rows, err := c.QueryTx(bg, tx, &exec.Query{})
				if err != nil {
					return err
				}
				defer rows.Close()
				for n = 0; rows.Next(); n++ {
				}
				return rows.Err()
			}); err != nil {
				t.Fatal(err)
			}
			return n
		}, 1, 2},
		{"a page of a key's change feed", func() int {
			p, err := c.Feed(bg, feed.Scope{PK: pk("p7")}, feed.Start(), 10)
			if err != nil {
				t.Fatal(err)
			}
			return len(p.Items)
		}, 1, 2},
		{"items of two of the partitions", query(&exec.Query{Ranges: []epk.Range{{Min: ps[2].Min, Max: ps[2].Max},
			{Min: ps[3].Min, Max: ps[3].Max}}}), 2, between(2, 4)},
		{"a page of the change feed of three", func() int {
			p, err := c.Feed(bg, feed.Scope{Range: epk.Range{Min: ps[5].Min, Max: ps[7].Max}}, feed.Start(), 100)
			if err != nil {
				t.Fatal(err)
			}
			return len(p.Items)
		}, 3, between(5, 8)},
		{"items of all keys", query(eqQuery("n", 7)), slots, 1},
	} {
		store.heads.Store(0)
		if n := tc.do(); n != tc.items {
			t.Errorf("%s: %d items, want %d", tc.name, n, tc.items)
		}
		if n := store.heads.Load(); n != tc.heads {
			t.Errorf("%s: %d heads were read, want %d", tc.name, n, tc.heads)
		}
	}
}

// A query of one key is right whatever the stage is that the other slots have in a rebuild of the index.
func TestQueriesOfOneKeyBesideRebuilds(t *testing.T) {
	ps := startProcesses(t, 2, kvtest.Faults{})
	cs := ps.containers(core.ContainerSpec{Throughput: core.Throughput{Manual: 80_000}})
	const items = 160
	for i := range items {
		put(t, cs[0], core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"a":%d}`, i, i%20, i, i))
	}
	var stop atomic.Bool
	var changes atomic.Int32
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for ; !stop.Load(); changes.Add(1) {
			spec := cs[1].Spec().Clone()
			spec.IndexingPolicy = []byte([]string{onlyA, noIndex, ""}[changes.Load()%3])
			if _, err := ps.all[1].ReplaceContainer(bg, "db", "c", spec); err != nil {
				t.Error(err)
				return
			}
			if err := cs[1].WaitIndex(bg); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for i, begun := 0, time.Now(); changes.Load() < 12 && time.Since(begun) < 30*time.Second; i++ {
		q := *eqQuery([]string{"n", "a"}[i%2], i%items)
		q.PK = pk(fmt.Sprint("p", i%items%20))
		if got := ids(t, cs[0], &q); len(got) != 1 || got[0] != fmt.Sprint(i%items) {
			t.Errorf("the query for %d finds %v", i%items, got)
		}
	}
	stop.Store(true)
	<-ended
	if n := changes.Load(); n < 12 {
		t.Errorf("the policy was replaced %d times", n)
	}
}
