package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/work"
	"github.com/orrerydb/orrery/internal/race"
)

// A union with more items than its window walks its leaves again: no item is lost or comes twice, and the order is
// kept.
func TestUnionWindow(t *testing.T) {
	defer func(n int) { window = n }(window)
	eng := kv.Checked(memkv.New())
	defer eng.Close()
	clk := clock.New()
	cat, err := catalog.Open(eng, clk, catalog.Settings{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := cat.CreateDatabase(ctx, "db", catalog.Throughput{}); err != nil {
		t.Fatal(err)
	}
	def, err := cat.CreateContainer(ctx, "db",
		catalog.Spec{ID: "c", PartitionKey: catalog.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}},
		store.FirstHead())
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Open(eng, cat, clk, store.Limits{}, work.New(nil)).Container(ctx, def)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 900 {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"p%d","a":%d,"b":[%d,%d]}`, i, i%7, i%25, i%30,
			i%31), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(ctx, &store.Write{Kind: store.Create, Doc: d}); err != nil {
			t.Fatal(err)
		}
	}
	pred := access.Or(access.Eq(access.NewPath("a"), value.Int32Of(3)),
		access.Eq(access.NewPath("b").Element(), value.Int32Of(2)))
	run := func(n, page int, shown Shown) (got []uint64) {
		window = n
		q := Query{Pred: pred, Shown: shown}
		for {
			r, err := Open(ctx, c, &q, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Stats().Plan.Union) != 2 {
				t.Fatalf("plan is %s", r.Stats().Plan.Explain())
			}
			k := 0
			for k < page && r.Next() {
				got = append(got, r.Item().Number)
				k++
			}
			q.Continuation = r.Continuation()
			r.Close()
			if q.Continuation == "" {
				return got
			}
		}
	}
	want := run(1000, 1000, AnyOrder)
	if len(want) < 60 || len(slices.Compact(slices.Sorted(slices.Values(want)))) != len(want) {
		t.Fatalf("%d items, some twice", len(want))
	}
	made := map[bool][]uint64{}
	for _, newest := range []bool{false, true} {
		made[newest] = slices.SortedFunc(slices.Values(want), func(a, b uint64) int {
			if newest {
				a, b = b, a
			}
			return cmp.Compare(store.Counter(a), store.Counter(b))
		})
	}
	for _, n := range []int{7, 1, 2, 50}[:race.Fewer(4, 1)] {
		for _, page := range []int{3, 1000} {
			if got := run(n, page, AnyOrder); !slices.Equal(got, want) {
				t.Errorf("window %d, pages of %d: %d items, want %d", n, page, len(got), len(want))
			}
			for _, shown := range []Shown{Creation, Oldest, Newest} {
				if got := run(n, page, shown); !slices.Equal(got, made[shown == Newest]) {
					t.Errorf("window %d, pages of %d, shown %d:\n got %x\nwant %x", n, page, shown, got,
						made[shown == Newest])
				}
			}
		}
	}
}
