package core_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// countsIters is a local engine that counts the iterators of its snapshots.
type countsIters struct {
	kv.Engine
	made atomic.Int64
}

func (e *countsIters) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	return itersCounted{s, e}, err
}

type itersCounted struct {
	kv.Snapshot
	of *countsIters
}

func (s itersCounted) Iter(lo, hi []byte) (kv.Iterator, error) {
	s.of.made.Add(1)
	return s.Snapshot.Iter(lo, hi)
}

// TestIteratorsOfAQuery asserts how many iterators a query over 16 physical partitions makes on a local engine: one
// that is moved from slot to slot. A stream of a merge makes its own when it gives more entries than it has copied.
func TestIteratorsOfAQuery(t *testing.T) {
	eng := &countsIters{Engine: memkv.New()}
	e, err := core.Open(bg, kv.Checked(eng), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 160_000}})
	for i := range 400 { // k has 10 items of each value, one is that of the partition key, n the number
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"k":%d,"one":%d}`, i, i%40, i, i/10, i%40))
	}
	byN := func(q exec.Query, desc bool) *exec.Query {
		q.OrderBy, q.Compare = []exec.Order{{Path: access.NewPath("n"), Desc: desc}}, value.CompareCosmos
		return &q
	}
	numbers := func(from, to int) (out []string) {
		for i := from; i != to; i += max(-1, min(1, to-from)) {
			out = append(out, fmt.Sprint(i))
		}
		return out
	}
	equal := *eqQuery("k", 7)
	equal.Shown = exec.CreationByPartition
	first := exec.Query{Page: 20}
	above := exec.Query{Page: 20, Pred: access.Range(access.NewPath("n"), &access.Bound{Value: value.IntOf(100),
		Inclusive: true}, nil)}
	unknown := above
	unknown.Page = 0
	// they have one partition key, so one stream gives the whole page
	uneven := exec.Query{Page: 8, Pred: access.Range(access.NewPath("one"), &access.Bound{Value: value.IntOf(39),
		Inclusive: true}, nil)}
	for _, tc := range []struct {
		name  string
		q     *exec.Query
		iters int64
		want  []string // sorted, if the query has no order
	}{
		{"equality, each partition in creation order", &equal, 1, numbers(70, 80)},
		{"the first by order", byN(first, false), 1, numbers(0, 20)},
		{"the last by order", byN(first, true), 1, numbers(399, 379)},
		{"a range by order", byN(above, false), 1, numbers(100, 120)},
		{"a range by order, to the end", byN(unknown, false), 16, numbers(100, 400)},
		{"rows of one slot", byN(uneven, false), 1, []string{"39", "79", "119", "159", "199", "239", "279", "319"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			page := func() (got []string) {
				r, err := c.Query(bg, tc.q)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				for len(got) < len(tc.want) && r.Next() {
					got = append(got, r.Item().ID().Str())
				}
				if r.Err() != nil {
					t.Fatal(r.Err())
				}
				if len(tc.q.OrderBy) == 0 {
					slices.Sort(got)
				}
				return got
			}
			page() // a first query may wait for facts of the slots
			before := eng.made.Load()
			got := page()
			if made := eng.made.Load() - before; made != tc.iters {
				t.Errorf("%d iterators, want %d", made, tc.iters)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// fulfils reports whether an item satisfies a predicate of equalities.
func fulfils(p *access.Pred, d doc.Doc) bool {
	is := func(k *access.Pred) bool { return fulfils(k, d) }
	switch p.Op {
	case access.OpAnd:
		return !slices.ContainsFunc(p.Kids, func(k *access.Pred) bool { return !is(k) })
	case access.OpOr:
		return slices.ContainsFunc(p.Kids, is)
	}
	have := doc.Get(d, p.Path.Segs...)
	return slices.ContainsFunc(p.Vals, func(v value.Value) bool { return value.EqualCosmos(have, v) })
}

// TestKeysInTheFilter asserts that a filter which names partition keys, or the first values of them, restricts a query
// to the physical partitions of these keys, as a partition key in the request does.
func TestKeysInTheFilter(t *testing.T) {
	onEngines(t, core.Options{MinSlots: 16}, func(t *testing.T, e *core.Engine) {
		one := newContainer(t, e, core.ContainerSpec{ID: "one", Throughput: core.Throughput{Manual: 160_000}})
		two := newContainer(t, e, core.ContainerSpec{ID: "two", Throughput: core.Throughput{Manual: 160_000},
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk", "/user"}, Kind: "MultiHash", Version: 2}})
		for _, c := range []*core.Container{one, two} {
			for i := range 64 {
				put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","user":%d,"n":%d}`, i, i%8, i/8, i%16))
			}
		}
		is := func(path string, vals ...value.Value) *access.Pred { return access.In(access.NewPath(path), vals...) }
		p1, p2, u3, n1 := value.StringOf("p1"), value.StringOf("p2"), value.IntOf(3), value.IntOf(1)
		for _, tc := range []struct {
			name string
			c    *core.Container
			pred *access.Pred
			keys []core.PartitionKey // nil: all partitions
		}{
			{"a key", one, is("pk", p1), []core.PartitionKey{{p1}}},
			{"a key and another condition", one, access.And(is("n", n1), is("pk", p1)), []core.PartitionKey{{p1}}},
			{"two keys", one, is("pk", p1, p2), []core.PartitionKey{{p1}, {p2}}},
			{"either of two keys", one, access.Or(is("pk", p1), is("pk", p2)), []core.PartitionKey{{p1}, {p2}}},
			{"a key or another condition", one, access.Or(is("pk", p1), is("n", n1)), nil},
			{"another condition", one, is("n", n1), nil},
			{"a whole key of two values", two, access.And(is("pk", p1), is("user", u3)), []core.PartitionKey{{p1, u3}}},
			{"the first value", two, is("pk", p1), []core.PartitionKey{{p1}}},
			{"the second value", two, is("user", u3), nil},
		} {
			for _, shown := range []exec.Shown{exec.AnyOrder, exec.CreationByPartition} {
				run := func(q exec.Query) (rows []string, begun int) {
					q.Pred, q.Shown = tc.pred, shown
					q.Match = func(it *core.Item) (bool, error) { return fulfils(tc.pred, it.Doc), nil }
					r, err := tc.c.Query(bg, &q)
					if err != nil {
						t.Fatal(err)
					}
					defer r.Close()
					for r.Next() {
						rows = append(rows, r.Item().ID().Str())
					}
					if r.Err() != nil {
						t.Fatal(r.Err())
					}
					return rows, r.Stats().Begun
				}
				got, begun := run(exec.Query{})
				var want []string
				partitions := map[string]bool{}
				for _, k := range tc.keys {
					rows, _ := run(exec.Query{PK: k})
					want = append(want, rows...)
					for _, p := range partitionsOf(tc.c) {
						if r := core.EPKRange(tc.c.Spec().PartitionKey, k); r.Min < p.Max && p.Min < r.Max {
							partitions[p.ID] = true
						}
					}
				}
				if tc.keys == nil {
					for _, p := range partitionsOf(tc.c) {
						rows, _ := run(exec.Query{Ranges: []epk.Range{{Min: p.Min, Max: p.Max}}})
						want, partitions[p.ID] = append(want, rows...), true
					}
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) || len(got) == 0 {
					t.Errorf("%s: rows %v, want %v", tc.name, got, want)
				}
				if begun != len(partitions) {
					t.Errorf("%s: begins in %d partitions, want %d", tc.name, begun, len(partitions))
				}
			}
		}
	})
}
