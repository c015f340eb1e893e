package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// TestOrderInsidePartition: an order inside one logical partition gives the rows of a scan and a sort, ties included,
// whether a walk over the slot's entries finds them, or is given up because those of other partitions lie between, or
// because the filter refuses too many rows. It does so in pages, in both directions, and with rows of entries.
func TestOrderInsidePartition(t *testing.T) {
	race.Alone(t)
	onEngines(t, core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		r := rand.New(rand.NewPCG(5, 5))
		for i := range 600 {
			key, n := "even", i/3 // its entries lie among those of others, with equal values
			switch {
			case i%6 == 1:
				key = "other"
			case i%2 == 1:
				key, n = "old", -i // below all others
			}
			put(t, c, core.Create, fmt.Sprintf(`{"id":"i%04d","pk":%q,"n":%d,"m":%d}`, r.IntN(10)*1000+i, key, n, i%50))
		}
		walked, turned := 0, 0
		for i := range 60 {
			key, desc := []string{"even", "old"}[i%2], r.IntN(2) == 0
			lo, hi, every := value.Int32Of(int32(r.IntN(300)-200)), value.Int32Of(int32(r.IntN(150))), 1+r.IntN(40)
			var preds []*access.Pred
			path := access.NewPath("n")
			if i%3 > 0 {
				preds = append(preds, access.Range(path, &access.Bound{Value: lo, Inclusive: true}, nil))
			}
			if i%3 > 1 {
				preds = append(preds, access.Range(path, nil, &access.Bound{Value: hi}))
			}
			q := exec.Query{PK: pk(key), Pred: access.And(preds...), PlanHash: uint64(i), Compare: value.CompareCosmos,
				Collation: access.JSONOrder, OrderBy: orderBy(desc, "n")}
			holds := q.Pred
			q.Match = func(it *core.Item) (bool, error) {
				return satisfies(holds, it.Doc) && doc.Get(it.Doc, "m").Int()%int64(every) == 0, nil
			}
			if i%4 == 0 {
				q.Needs = []access.Path{access.ID, access.NewPath("pk"), path}
				q.Match = func(it *core.Item) (bool, error) { return satisfies(holds, it.Doc), nil }
			}
			plain := q
			plain.Pred, plain.Needs, plain.Collation = nil, nil, access.AnyOrder
			want := ids(t, c, &plain)
			for _, page := range []int{2, 7, 1000} {
				if got := paged(t, c, q, page); !slices.Equal(got, want) {
					t.Fatalf("query %d, pages of %d:\n got %v\nwant %v", i, page, got, want)
				}
			}
			q.Page = 3
			rows, err := c.Query(bg, &q)
			if err != nil {
				t.Fatal(err)
			}
			for n := 0; n < 3 && rows.Next(); n++ {
			}
			st := rows.Stats()
			if st.Plan.Why == access.OrderInside {
				walked++
			}
			if st.Turned > 0 {
				turned++
			}
			if most := plan.PassedRow * 300; st.Entries > most || st.Items > 600 {
				t.Errorf("query %d read %d entries and %d items", i, st.Entries, st.Items)
			}
			rows.Close()
		}
		if t.Logf("%d walks, %d given up", walked, turned); walked < 20 || turned < 5 {
			t.Errorf("%d walks, %d given up", walked, turned)
		}
	})
}

// BenchmarkOrderInsidePartition reads the 10 last items of one logical partition, which has half of its slot's 10,000;
// the floor is 10 Gets.
func BenchmarkOrderInsidePartition(b *testing.B) {
	e, kve := benchEngine(b, true)
	c := newContainer(b, e, core.ContainerSpec{})
	for i := range benchDocs {
		put(b, c, core.Create, fmt.Sprintf(`{"id":"i%05d","pk":"p%d","n":%d,"text":"some more bytes"}`, i, i%2, i))
	}
	key, _ := rawKeys(b, kve, benchDocs)
	benchQuery(b, c, 10, func(int) *exec.Query {
		return &exec.Query{PK: pk("p0"), OrderBy: orderBy(true, "n"), Compare: value.CompareCosmos,
			Collation: access.JSONOrder, Limit: 10}
	})
	floor(b, func(i int) {
		for k := range 10 {
			if _, err := kve.Get(bg, nil, key((i*10+k)%benchDocs)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
