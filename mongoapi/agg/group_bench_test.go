package agg

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// BenchmarkGroup measures $group with all groups in memory.
func BenchmarkGroup(b *testing.B) {
	const docs = 20_000
	h := &memHost{colls: map[string][]value.Value{}}
	for i := range docs {
		h.colls["c"] = append(h.colls["c"], mtest.Value(b, fmt.Sprintf(`{"_id":%d,"ten":%d,"cat":"c%d","n":%d}`,
			i, i%10, i%(docs/10), i)))
	}
	for _, tc := range []struct {
		key    string
		groups int
	}{{"$ten", 10}, {"$cat", docs / 10}, {"$_id", docs}} {
		b.Run(fmt.Sprint(tc.groups), func(b *testing.B) {
			p := mtest.Value(b, fmt.Sprintf(`[{"$group":{"_id":%q,"n":{"$sum":1},"most":{"$max":"$n"}}}]`, tc.key))
			b.ReportAllocs()
			for b.Loop() {
				out, err := runWith(h, "c", p, budget.New(64<<20, 0), nil)
				if err != nil || len(out) != tc.groups {
					b.Fatal(len(out), err)
				}
			}
		})
	}
}
