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

// TestEqualitiesInsidePartition: of several equalities in one logical partition, the most selective one is used, or an
// intersection. The entries are counted only in that partition. The rows are those of a plain loop, also in pages.
func TestEqualitiesInsidePartition(t *testing.T) {
	race.Alone(t)
	e, _ := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	r := rand.New(rand.NewPCG(3, 3))
	docs := map[string]doc.Doc{}
	for i := range 3000 {
		key, a := "big", i%4
		if i%3 == 0 {
			key, a = fmt.Sprintf("p%d", i%60), 1 // in this partition all items are alike
		}
		id := fmt.Sprintf("i%04d", i)
		d := fmt.Sprintf(`{"id":%q,"pk":%q,"a":%d,"b":%d,"c":%d,"tags":[%d,%d]}`, id, key, a, r.IntN(20), r.IntN(15),
			r.IntN(30), r.IntN(30))
		put(t, c, core.Create, d)
		docs[id] = mustDoc(t, d)
	}
	num := func(n int) value.Value { return value.Int32Of(int32(n)) }
	plans := map[int]int{}
	for n := range 60 {
		preds := []*access.Pred{access.Eq(access.NewPath("a"), num(r.IntN(4))),
			access.In(access.NewPath("b"), num(r.IntN(20)), num(r.IntN(20)))}
		switch n % 4 {
		case 0:
			preds = append(preds, access.Eq(access.NewPath("c"), num(r.IntN(15))))
		case 1:
			preds = append(preds, access.Eq(access.NewPath("tags").Element(), num(r.IntN(30))))
		case 2:
			preds = append(preds, access.Range(access.NewPath("c"), &access.Bound{Value: num(5)}, nil))
		}
		key := []string{"big", "big", "p3"}[n%3]
		q := exec.Query{PK: pk(key), Pred: access.And(preds...), PlanHash: uint64(n)}
		q.Match = func(it *core.Item) (bool, error) { return satisfies(q.Pred, it.Doc), nil }
		var want []string
		for id, d := range docs {
			if doc.Get(d, "pk").Str() == key && satisfies(q.Pred, d) {
				want = append(want, id)
			}
		}
		rows, err := c.Query(bg, &q)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		st := *rows.Stats()
		rows.Close()
		if key == "big" {
			plans[len(st.Plan.Both)]++
			if st.Plan.Kind != access.Index || st.Plan.Leaf != nil && st.Plan.Leaf.Path.Segs[0] == "a" ||
				st.Items > 300 {
				t.Errorf("query %d read %d items by %s", n, st.Items, st.Plan.Explain())
			}
		}
		for _, size := range []int{2, 1000} {
			got := paged(t, c, q, size)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("query %d (%s), pages of %d: %v, want %v", n, st.Plan.Explain(), size, got, want)
			}
		}
	}
	if plans[2]+plans[3] < 10 {
		t.Errorf("intersections by their leaves: %v", plans)
	}
}

// TestSharesOfSkewedSlots: a range that is everything in some slots and nothing in the others is scanned, also if the
// first slot is the only one with it, or without it. A range that is rare in every slot is read from the index.
func TestSharesOfSkewedSlots(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 8})
	c := newContainer(t, e, core.ContainerSpec{})
	first := 0
	for i := range 2400 {
		n, m := 1000+i, 5000+i
		if core.EPKText(c.Spec().PartitionKey, pk(fmt.Sprintf("p%d", i))) < "08" { // the first of eight slots
			n, m = -i, i
			first++
		}
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"m":%d}`, i, i, n, m))
	}
	if first < 200 || first > 400 {
		t.Fatalf("%d items in the first slot", first)
	}
	above := func(name string, n int32) *access.Pred {
		return access.Range(access.NewPath(name), &access.Bound{Value: value.Int32Of(n)}, nil)
	}
	below := func(name string, n int32) *access.Pred {
		return access.Range(access.NewPath(name), nil, &access.Bound{Value: value.Int32Of(n)})
	}
	for name, x := range map[string]struct {
		pred *access.Pred
		kind access.Kind
		rows int
	}{
		"nothing of the first": {above("n", 999), access.Scan, 2400 - first},
		"only the first":       {below("n", 1), access.Scan, first},
		"rare everywhere":      {above("n", 3350), access.Index, -1},
	} {
		q := exec.Query{Pred: x.pred, Match: func(it *core.Item) (bool, error) {
			return satisfies(x.pred, it.Doc), nil
		}}
		rows := ids(t, c, &q)
		plan, err := c.Explain(bg, &q)
		if err != nil || plan.Kind != x.kind || x.rows >= 0 && len(rows) != x.rows {
			t.Errorf("%s: %d rows by %s (%v)", name, len(rows), plan.Explain(), err)
		}
	}
}
