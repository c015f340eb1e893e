package agg

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// BenchmarkUnwind measures $unwind of an array in documents that have other fields too.
func BenchmarkUnwind(b *testing.B) {
	h := &memHost{colls: map[string][]value.Value{}}
	const elements = 200
	var items []string
	for i := range elements {
		items = append(items, fmt.Sprintf(`{"sku":"s%d","n":%d}`, i%10, i))
	}
	for i := range 50 {
		h.colls["c"] = append(h.colls["c"], mtest.Value(b, fmt.Sprintf(`{"_id":%d,"city":"c%d","text":%q,"items":[%s]}`,
			i, i%10, strings.Repeat("x", 4000), strings.Join(items, ","))))
	}
	for _, tc := range []struct {
		name, behind string
		rows         int
	}{
		{"group", `,{"$group":{"_id":"$items.sku","n":{"$sum":"$items.n"}}}`, 10},
		{"match", `,{"$match":{"items.n":5}}`, 50},
		{"all", ``, 50 * elements},
	} {
		b.Run(tc.name, func(b *testing.B) {
			p := mtest.Value(b, `[{"$unwind":"$items"}`+tc.behind+`]`)
			b.ReportAllocs()
			for b.Loop() {
				out, err := runWith(h, "c", p, budget.New(256<<20, 0), nil)
				if err != nil || len(out) != tc.rows {
					b.Fatal(len(out), err)
				}
			}
		})
	}
}
