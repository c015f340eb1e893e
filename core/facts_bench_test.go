package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// BenchmarkFacts inserts an item with 100 fields into slots with 0, 1 and 100 facts of paths that the item has, and
// with 100 facts of paths that it lacks.
func BenchmarkFacts(b *testing.B) {
	for _, bc := range []struct {
		name  string
		facts int
		lacks bool
	}{{"0", 0, false}, {"1", 1, false}, {"100", 100, false}, {"100 lacking", 100, true}} {
		b.Run(bc.name, func(b *testing.B) {
			e, err := core.Open(bg, memkv.New(), core.Options{MinSlots: 1})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			c := newContainer(b, e, core.ContainerSpec{})
			path := func(k int) string { return fmt.Sprintf("f%d", k) }
			if bc.lacks {
				path = func(k int) string { return fmt.Sprintf("none%d", k) }
			}
			item := func(i int) string {
				var s strings.Builder
				fmt.Fprintf(&s, `{"id":"%d","pk":"p%d"`, i, i%7)
				for k := range 100 {
					fmt.Fprintf(&s, `,"f%d":%d`, k, i+k)
				}
				return s.String() + "}"
			}
			for i := range 10 {
				put(b, c, core.Create, item(i))
			}
			for k := range bc.facts {
				firstRows(b, c, byField(path(k)), 1)
			}
			docs := make([]string, b.N)
			for i := range docs {
				docs[i] = item(10 + i)
			}
			b.ResetTimer()
			for _, d := range docs {
				put(b, c, core.Create, d)
			}
		})
	}
}
