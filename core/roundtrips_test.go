package core_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// TestRoundTrips asserts the number of sequential round trips of an operation on an engine over a network. Concurrent
// round trips count as one: the clock of the synctest bubble advances only when all goroutines wait.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	made := 0
	byKey := &exec.Query{OrderBy: []exec.Order{{Path: access.NewPath("pk")}, {Path: access.ID}},
		Compare: value.CompareCosmos}
	lastKeys := *byKey // one of one item, and one of 20
	lastKeys.Pred = access.Range(access.NewPath("pk"), &access.Bound{Value: value.StringOf("p99")}, nil)
	ofEqual := *byKey
	ofEqual.Pred = access.Eq(access.NewPath("k"), value.Int32Of(77))
	for _, tc := range []struct {
		name  string
		slots int
		trips int
		do    func(t *testing.T, c *core.Container)
	}{
		{"point read", 4, 1, func(t *testing.T, c *core.Container) { readOne(t, c, "7") }},
		{"read of an absent item", 4, 1, func(t *testing.T, c *core.Container) {
			_, err := c.Read(bg, pk("p7"), value.StringOf("none"))
			wantCode(t, err, status.NotFound, 0)
		}},
		{"create", 4, 2, func(t *testing.T, c *core.Container) {
			made++
			put(t, c, core.Create, fmt.Sprintf(`{"id":"new%d","pk":"p7","n":1000}`, made))
		}},
		{"replace", 4, 3, func(t *testing.T, c *core.Container) {
			put(t, c, core.Replace, `{"id":"7","pk":"p7","n":1000}`)
		}},
		{"delete", 4, 3, func(t *testing.T, c *core.Container) {
			made++
			id := value.StringOf(fmt.Sprint(made))
			if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("p" + id.Str()), ID: id}); err != nil {
				t.Fatal(err)
			}
		}},
		{"batch of 20", 4, 4, func(t *testing.T, c *core.Container) {
			id := func(i int) string { return fmt.Sprint("b", i) }
			_, err := c.WithTx(bg, pk("p7"), func(tx *core.Tx) error {
				if err := tx.Fetch(20, func(i int) value.Value { return value.StringOf(id(i)) }); err != nil {
					return err
				}
				for i := range 20 {
					d := mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":"p7"}`, id(i)))
					if _, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: d}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"transaction of 20 creates in 20 partitions", 4, 5, func(t *testing.T, c *core.Container) {
			tx, err := c.Begin(bg, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			var ws []core.Write
			for i := range 20 {
				made++
				ws = append(ws, core.Write{Kind: core.Create,
					Doc: mustDoc(t, fmt.Sprintf(`{"id":"t%d","pk":"p%d"}`, made, i))})
			}
			if err := tx.Fetch(bg, c, ws); err != nil {
				t.Fatal(err)
			}
			for _, w := range ws {
				if _, err := tx.Write(bg, c, w); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := tx.Commit(bg); err != nil {
				t.Fatal(err)
			}
		}},
		{"20 of an equality", 4, 3, pageOf(20, eqQuery("k", 1))},
		{"20 of an equality in many slots", 400, 5, pageOf(20, eqQuery("k", 1))},
		{"ORDER BY LIMIT 10", 4, 6, pageOf(10, leastBy("n", 10))},
		{"ORDER BY LIMIT 10 in many slots", 400, 6, pageOf(10, leastBy("n", 10))},
		{"20 by id", 4, 2, pageOf(20, byIDs(20))},
		{"20 of all in many slots", 400, 2, pageOf(20, &exec.Query{})},
		{"200 of all in many slots", 400, 2, pageOf(200, &exec.Query{})},
		{"all in many slots", 400, 2, pageOf(420, &exec.Query{Whole: true})},
		{"20 in creation order", 60, 4, pageOf(20, &exec.Query{Shown: exec.CreationByPartition})},
		{"20 in creation order, many slots", 400, 5, pageOf(20, &exec.Query{Shown: exec.CreationByPartition})},
		{"20 of many in creation order, many slots", 400, 4, func(t *testing.T, c *core.Container) {
			for i := counted(c); i < 10_001; i++ { // a range that is walked by numbers
				put(t, c, core.Create, fmt.Sprintf(`{"id":"many%d","pk":"p%d"}`, i, i))
			}
			pageOf(20, &exec.Query{Shown: exec.Newest})(t, c)
		}},
		{"20 in the order of keys", 4, 10, pageOf(20, byKey)},
		{"20 in the order of keys, many slots", 400, 10, pageOf(20, byKey)},
		{"20 in the order of keys, of a large partition", 400, 10, pageOf(20, &lastKeys)},
		{"20 of an equality in the order of keys", 400, 9, pageOf(20, &ofEqual)},
		{"feed page of 20", 4, 4, func(t *testing.T, c *core.Container) {
			p, err := c.Feed(bg, feed.Scope{}, feed.Start(), 20)
			if err != nil || len(p.Items) != 20 {
				t.Fatalf("%d items, %v", len(p.Items), err)
			}
		}},
		{"COUNT of an equality", 4, 2, countOf},
		{"COUNT of an equality in many slots", 400, 2, countOf},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const trip = time.Millisecond
				eng := &kvtest.Slow{Engine: memkv.New(), Far: true, Trip: trip}
				e, err := core.Open(bg, kv.Checked(eng), core.Options{MinSlots: tc.slots})
				if err != nil {
					t.Fatal(err)
				}
				c := newContainer(t, e, core.ContainerSpec{})
				for i := range 400 {
					put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"k":%d}`, i, i, i, i%4))
				}
				for i := range 20 {
					put(t, c, core.Create, fmt.Sprintf(`{"id":"x%d","pk":"px","n":%d,"k":77}`, i, 1000+i))
				}
				tc.do(t, c) // from now on everything that can be cached is
				time.Sleep(time.Minute)
				begun, before := time.Now(), eng.Trips()
				tc.do(t, c)
				took, all := time.Since(begun), eng.Trips()-before
				if got := int(took / trip); got != tc.trips {
					t.Errorf("%d round trips one after the other, want %d; %d in all", got, tc.trips, all)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// keptOpen is an engine that stays open for the next user.
type keptOpen struct{ kv.Engine }

func (keptOpen) Close() error { return nil }

// TestRoundTripsOfOpening says the same of the first request for a container: for its definition, the heads of its
// slots and its counters.
func TestRoundTripsOfOpening(t *testing.T) {
	for _, slots := range []int{4, 400} {
		synctest.Test(t, func(t *testing.T) {
			eng := &kvtest.Slow{Engine: memkv.New(), Far: true, Trip: time.Millisecond}
			e, err := core.Open(bg, kv.Checked(keptOpen{eng}), core.Options{MinSlots: slots})
			if err != nil {
				t.Fatal(err)
			}
			c := newContainer(t, e, core.ContainerSpec{})
			put(t, c, core.Create, `{"id":"7","pk":"p7"}`)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := core.Open(bg, kv.Checked(eng), core.Options{MinSlots: slots})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			begun := time.Now()
			if _, err := again.Container(c.Database(), c.Spec().ID); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begun) / time.Millisecond; got != 3 {
				t.Errorf("%d round trips with %d slots", got, slots)
			}
		})
	}
}

func readOne(t *testing.T, c *core.Container, id string) {
	t.Helper()
	if _, err := c.Read(bg, pk("p"+id), value.StringOf(id)); err != nil {
		t.Fatal(err)
	}
}

// pageOf takes a page of a query as an API does.
func pageOf(rows int, q *exec.Query) func(t *testing.T, c *core.Container) {
	return func(t *testing.T, c *core.Container) {
		q := *q
		q.Page = rows
		r, err := c.Query(bg, &q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		n := 0
		for n < rows && r.Next() {
			n++
		}
		if n != rows || r.Err() != nil {
			t.Fatalf("%d rows, %v", n, r.Err())
		}
	}
}

func leastBy(field string, limit int) *exec.Query {
	return &exec.Query{OrderBy: []exec.Order{{Path: access.NewPath(field)}}, Compare: value.CompareCosmos, Limit: limit}
}

// byIDs queries for the items with certain ids in one logical partition.
func byIDs(n int) *exec.Query {
	var vals []value.Value
	for i := range n {
		vals = append(vals, value.StringOf(fmt.Sprintf("x%d", i)))
	}
	return &exec.Query{PK: pk("px"), Pred: access.In(access.NewPath("_id"), vals...)}
}

func countOf(t *testing.T, c *core.Container) {
	k := access.NewPath("k")
	r, err := c.Query(bg, &exec.Query{Pred: access.Eq(k, value.Int32Of(1)), Needs: []access.Path{k}, Whole: true,
		Repeat: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for r.Next() {
		n += r.Times()
	}
	if n != 100 || r.Err() != nil {
		t.Fatalf("%d items, %v", n, r.Err())
	}
}
