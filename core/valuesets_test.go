package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// countsSeeks is a local engine that counts how often iterators of its snapshots are positioned by a search.
type countsSeeks struct {
	kv.Engine
	seeks atomic.Int64
}

func (e *countsSeeks) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	return seeksCounted{s, e}, err
}

type seeksCounted struct {
	kv.Snapshot
	of *countsSeeks
}

func (s seeksCounted) Iter(lo, hi []byte) (kv.Iterator, error) {
	it, err := s.Snapshot.Iter(lo, hi)
	return seekCounted{it, s.of}, err
}

type seekCounted struct {
	kv.Iterator
	of *countsSeeks
}

func (i seekCounted) First() bool {
	i.of.seeks.Add(1)
	return i.Iterator.First()
}

func (i seekCounted) SeekGE(key []byte) bool {
	i.of.seeks.Add(1)
	return i.Iterator.SeekGE(key)
}

// sixteen opens a store in memory with a container of 16 physical partitions.
func sixteen(t *testing.T) (*core.Engine, *core.Container, *countsSeeks) {
	t.Helper()
	eng := &countsSeeks{Engine: memkv.New()}
	e := opened(t, eng, core.Options{})
	return e, newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 160_000}}), eng
}

// After some queries for values at a path, the slots that don't have a value are no longer searched for it.
func TestSetsOfValues(t *testing.T) {
	e, c, eng := sixteen(t)
	for i := range 400 { // each n is that of one item
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"tags":["t%d"]}`, i, i, i, i))
	}
	asks := func(n int) int64 {
		before := eng.seeks.Load()
		if got, want := ids(t, c, eqQuery("n", n)), fmt.Sprint(n); len(got) != 1 || got[0] != want {
			t.Fatalf("n = %d: %v", n, got)
		}
		return eng.seeks.Load() - before
	}
	if n := asks(7); n < 16 {
		t.Errorf("the first query makes %d searches", n)
	}
	deadline := time.Now().Add(10 * time.Second)
	for n := 0; asks(n%400) > 4; n++ {
		if time.Now().After(deadline) {
			t.Fatal("all slots are searched all the time")
		}
	}
	// What is written from now on is in the sets too.
	put(t, c, core.Upsert, `{"id":"new","pk":"p1","n":1000}`)
	put(t, c, core.Upsert, `{"id":"7","pk":"p7","n":1001}`)
	for n, want := range map[int]string{1000: "new", 1001: "7"} {
		if got := ids(t, c, eqQuery("n", n)); len(got) != 1 || got[0] != want {
			t.Errorf("n = %d: %v", n, got)
		}
	}
	if got := ids(t, c, eqQuery("n", 7)); len(got) != 0 {
		t.Errorf("n = 7: %v", got)
	}
	// A policy without the path adds no values to the sets, and a rebuild adds entries.
	for _, policy := range []string{onlyA, ""} {
		if _, err := e.ReplaceContainer(bg, "db", "c", core.ContainerSpec{ID: "c", IndexingPolicy: []byte(policy),
			Throughput: core.Throughput{Manual: 160_000}}); err != nil {
			t.Fatal(err)
		}
		if err := c.WaitIndex(bg); err != nil {
			t.Fatal(err)
		}
		if policy == onlyA {
			put(t, c, core.Upsert, `{"id":"hidden","pk":"p2","n":2000}`)
		}
	}
	if got := ids(t, c, eqQuery("n", 2000)); len(got) != 1 || got[0] != "hidden" {
		t.Errorf("n = 2000: %v", got)
	}
}

// Writers change, remove and create items, slots are split and joined, and the policy is replaced, while sets are made
// and used. A writer's query finds what it has written.
func TestSetsOfValuesAmongWriters(t *testing.T) {
	e, c, _ := sixteen(t)
	const writers, rounds = 4, 150
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 5))
			has := map[int]map[string]bool{} // ids by n, of this writer
			is := map[string]int{}
			for i := range rounds {
				id := fmt.Sprintf("%d-%d", w, r.IntN(60))
				n := w*100 + r.IntN(40)
				if was, ok := is[id]; ok {
					delete(has[was], id)
					delete(is, id)
				}
				if r.IntN(4) > 0 {
					put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%s","pk":"%s","n":%d}`, id, id, n))
					if has[n] == nil {
						has[n] = map[string]bool{}
					}
					is[id], has[n][id] = n, true
				} else {
					_, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk(id), ID: value.StringOf(id)})
					if err != nil && !status.Is(err, status.NotFound) {
						t.Error(err)
					}
				}
				for range 3 {
					n := w*100 + r.IntN(40)
					q := eqQuery("n", n)
					if i%2 == 0 {
						q.Shown = exec.CreationByPartition
					}
					got := ids(t, c, q)
					var want []string
					for id := range has[n] {
						want = append(want, id)
					}
					slices.Sort(got)
					if slices.Sort(want); !slices.Equal(got, want) {
						t.Errorf("round %d, n = %d: %v, want %v", i, n, got, want)
						return
					}
				}
			}
		})
	}
	all.Go(func() {
		for i := range 3 {
			for _, at := range nested(32)[16:20] {
				if err := c.SplitSlot(bg, at); err != nil {
					t.Error(err)
				}
			}
			for _, at := range nested(32)[16:20] {
				if err := c.JoinSlots(bg, at); err != nil {
					t.Error(err)
				}
			}
			p := []string{onlyA, "", noIndex}[i]
			if _, err := e.ReplaceContainer(bg, "db", "c", core.ContainerSpec{ID: "c", IndexingPolicy: []byte(p),
				Throughput: core.Throughput{Manual: 160_000}}); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
}
