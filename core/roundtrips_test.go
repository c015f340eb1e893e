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

// TestRoundTrips says how many round trips an operation waits for one after the other, on an engine over a network.
// Those that are under way at once count as one: the clock is that of a bubble, which moves only while everybody waits.
func TestRoundTrips(t *testing.T) {
	made := 0
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
		{"20 of an equality", 4, 3, pageOf(20, eqQuery("k", 1))},
		{"20 of an equality in many slots", 400, 5, pageOf(20, eqQuery("k", 1))},
		{"ORDER BY LIMIT 10", 4, 6, pageOf(10, leastBy("n", 10))},
		{"ORDER BY LIMIT 10 in many slots", 400, 6, pageOf(10, leastBy("n", 10))},
		{"20 by id", 4, 2, pageOf(20, byIDs(20))},
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
				tc.do(t, c) // whatever is remembered from now on
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

// byIDs asks for the items with some ids in one logical partition.
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
