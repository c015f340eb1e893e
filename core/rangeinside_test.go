package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// TestRangesInsidePartition: inside one logical partition, a range, a prefix or a disjunction of which the slot has few
// entries is read from the index. The rows are those of a plain loop, also in pages, in an order, and where items have
// several entries.
func TestRangesInsidePartition(t *testing.T) {
	race.Alone(t)
	onEngines(t, core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		r := rand.New(rand.NewPCG(7, 7))
		docs := map[string]doc.Doc{}
		for i := range 900 {
			key := []string{"big", "big", "other"}[i%3]
			id := fmt.Sprintf("i%04d", i)
			d := fmt.Sprintf(`{"id":%q,"pk":%q,"n":%d,"s":"s%03d","tags":[%d,%d]}`, id, key, i, r.IntN(900),
				r.IntN(900), r.IntN(900))
			put(t, c, core.Create, d)
			docs[id] = mustDoc(t, d)
		}
		within := func(p access.Path, width int) *access.Pred {
			lo := r.IntN(900)
			return access.Range(p, &access.Bound{Value: value.Int32Of(int32(lo)), Inclusive: true},
				&access.Bound{Value: value.Int32Of(int32(lo + width))})
		}
		indexed := 0
		for i := range 60 {
			n, width := access.NewPath("n"), []int{3, 20, 500}[r.IntN(3)]
			pred := within(n, width)
			switch i % 5 {
			case 1:
				pred = access.Prefix(access.NewPath("s"), fmt.Sprintf("s%02d", r.IntN(90)))
			case 2:
				pred = access.Or(within(n, width), within(n, 5), access.Eq(access.NewPath("s"), value.StringOf("s100")))
			case 3:
				pred = access.Range(access.NewPath("tags").Element(), nil,
					&access.Bound{Value: value.Int32Of(int32(width / 3))})
			case 4:
				pred = access.And(within(n, width), within(access.NewPath("tags").Element(), 500))
			}
			q := exec.Query{PK: pk("big"), Pred: pred, PlanHash: uint64(i)}
			q.Match = func(it *core.Item) (bool, error) { return satisfies(pred, it.Doc), nil }
			if i%2 == 0 {
				q.OrderBy, q.Compare = orderBy(i%4 == 0, "s"), value.CompareCosmos
			}
			var want []string
			for id, d := range docs {
				if doc.Get(d, "pk").Str() == "big" && satisfies(pred, d) {
					want = append(want, id)
				}
			}
			slices.Sort(want)
			rows, err := c.Query(bg, &q)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
			}
			st := *rows.Stats()
			rows.Close()
			if st.Plan.Why == access.RangeInside {
				if indexed++; st.Items > 150 {
					t.Errorf("query %d read %d items by %s", i, st.Items, st.Plan.Explain())
				}
			}
			for _, size := range []int{2, 1000} {
				got := paged(t, c, q, size)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("query %d (%s), pages of %d: %d rows, want %d", i, st.Plan.Explain(), size, len(got),
						len(want))
				}
			}
		}
		if indexed < 20 {
			t.Errorf("an index was used %d times", indexed)
		}
	})
}
