package core_test

import (
	"context"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// BenchmarkCompositeOrder takes the first 20 of 10,000 items in an order of two paths: from a composite index, from one
// whose second path has the opposite order, of one status in the order of another path, and by a sort. The floor is 20
// Gets.
func BenchmarkCompositeOrder(b *testing.B) {
	c, e := benchIndexed(b, compositePolicy([]string{"status", "-total"}, []string{"p6", "p7"}))
	key, _ := rawKeys(b, e, benchDocs)
	status, total := access.NewPath("status"), access.NewPath("total")
	paid := value.StringOf("paid")
	isPaid := func(it *core.Item) (bool, error) { return value.EqualCosmos(doc.Get(it.Doc, "status"), paid), nil }
	for _, x := range []struct {
		name string
		kind access.Kind
		q    exec.Query
	}{
		{"all", access.Ordered, exec.Query{OrderBy: []exec.Order{{Path: status}, {Path: total, Desc: true}}}},
		{"ties", access.Ordered, exec.Query{
			OrderBy: []exec.Order{{Path: access.NewPath("p6"), Desc: true}, {Path: access.NewPath("p7"), Desc: true}}}},
		{"equality", access.Ordered, exec.Query{
			Pred: access.Eq(status, paid), Match: isPaid, OrderBy: []exec.Order{{Path: total}}}},
		{"flipped", access.Ordered, exec.Query{
			Pred: access.Eq(status, paid), Match: isPaid, OrderBy: []exec.Order{{Path: total, Desc: true}}}},
		{"sort", access.Scan, exec.Query{OrderBy: []exec.Order{{Path: total}, {Path: status}}}},
	} {
		x.q.Compare, x.q.Collation, x.q.Limit = value.CompareCosmos, access.JSONOrder, 20
		b.Run(x.name, func(b *testing.B) {
			if plan, err := c.Explain(bg, &x.q); err != nil || plan.Kind != x.kind {
				b.Fatalf("the plan is %s (%v)", plan.Explain(), err)
			}
			benchQuery(b, c, 20, func(int) *exec.Query { return &x.q })
			floor(b, func(i int) {
				for k := range 20 {
					if _, err := e.Get(context.Background(), nil, key((i*20+k)%benchDocs)); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
