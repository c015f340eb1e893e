package index

import (
	"fmt"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/bson"
)

// BenchmarkCount measures the work of a commit under the slot's latch, for an item with 100 fields and the given
// numbers of facts in the slot.
func BenchmarkCount(b *testing.B) {
	p, _ := Compile(nil, 1)
	doc := make([]byte, 4)
	for k := range 100 {
		doc = appendField(b, doc, fmt.Sprintf("f%d", k), "1")
	}
	var t Terms
	p.Collect(&t, bson.End(doc, 0), 1)
	for _, n := range []int{1, 100, 1000} {
		paths, sums := make([]uint64, n), make([]Counts, n)
		for k := range paths {
			paths[k] = p.PathID([]string{fmt.Sprintf("f%d", k)})
		}
		slices.Sort(paths)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				clear(sums)
				t.Count(paths, sums, 1)
			}
		})
	}
}
