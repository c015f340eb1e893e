package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// BenchmarkSortInMemory sorts 5,000 items of a kilobyte without an index: all of them, and the first hundred.
func BenchmarkSortInMemory(b *testing.B) {
	e, err := core.Open(bg, memkv.New(), core.Options{MinSlots: 2, Budget: budget.New(112<<20, 56<<20)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	c := newContainer(b, e, core.ContainerSpec{IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)})
	text := strings.Repeat("x", 1000)
	const items = 5000
	putMany(b, c, items, func(i int) string {
		return fmt.Sprintf(`{"id":"%d","pk":"%d","n":%d,"text":%q}`, i, i%7, i*7919%items, text)
	})
	for _, limit := range []int{0, 100} {
		b.Run(fmt.Sprint("limit ", limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.Query(bg, byN(limit))
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for r.Next() {
					n++
				}
				if r.Err() != nil || n != items && n != limit {
					b.Fatal(n, r.Err())
				}
				r.Close()
			}
		})
	}
}
