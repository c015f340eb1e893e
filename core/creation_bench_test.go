package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// BenchmarkCreationOrder reads pages of 100 by number entries, and all of a container by sorting. It reports the time
// for a row and its ratio to that of the same read in storage order ("x-scan"). Small documents are the worst case,
// because the work that both have in common is smallest.
func BenchmarkCreationOrder(b *testing.B) {
	for _, c := range []struct {
		name        string
		items, page int
		shown       exec.Shown
	}{{"page/100000", 100_000, 100, exec.Oldest}, {"page/10000", 10_000, 100, exec.Creation},
		{"all/10000", 10_000, 0, exec.Creation}} {
		b.Run(c.name, func(b *testing.B) {
			e, _ := benchEngine(b, true)
			ct := newContainer(b, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}},
				IndexingPolicy: []byte(`{"includedPaths":[],"excludedPaths":[{"path":"/*"}]}`)})
			var ws []core.Write
			for i := range c.items {
				ws = append(ws, core.Write{
					Kind: core.Create, Doc: mustDoc(
						b, fmt.Sprintf(`{"id":"i%08d","n":%d,"s":"some text of a small document","t":[1,2,3]}`,
							i*7919%c.items, i))})
				if len(ws) == 1000 {
					ct.WriteMany(bg, ws, true)
					ws = ws[:0]
				}
			}
			read := func(shown exec.Shown, n int) time.Duration {
				start, rows := time.Now(), 0
				for range n {
					q := exec.Query{Shown: shown, Page: c.page}
					for pages := 0; pages < 10; pages++ { // ten pages, or all
						r, err := ct.Query(bg, &q)
						if err != nil {
							b.Fatal(err)
						}
						got := 0
						for (c.page == 0 || got < c.page) && r.Next() {
							got++
						}
						if r.Err() != nil {
							b.Fatal(r.Err())
						}
						rows += got
						q.Continuation = r.Continuation()
						r.Close()
						if q.Continuation == "" {
							break
						}
					}
				}
				return time.Since(start) / time.Duration(rows)
			}
			read(exec.AnyOrder, 1)
			b.ReportAllocs()
			b.ResetTimer()
			row := read(c.shown, b.N)
			b.StopTimer()
			b.ReportMetric(float64(row.Nanoseconds())/1000, "µs/row")
			b.ReportMetric(float64(row)/float64(read(exec.AnyOrder, max(1, b.N))), "x-scan")
		})
	}
}

// BenchmarkCreationEquality finds ten of 10,000 items by an index, in creation order and in storage order ("x-today").
func BenchmarkCreationEquality(b *testing.B) {
	c, _ := benchContainer(b)
	run := func(shown exec.Shown, limit, n int) time.Duration {
		start := time.Now()
		for i := range n {
			q := exec.Query{
				Pred:  access.Eq(access.NewPath("customer"), value.StringOf(fmt.Sprintf("c%07d", i*7919%1000))),
				Shown: shown, Limit: limit}
			r, err := c.Query(bg, &q)
			if err != nil {
				b.Fatal(err)
			}
			rows := 0
			for (limit == 0 || rows < limit) && r.Next() {
				rows++
			}
			if r.Close(); r.Err() != nil || rows == 0 {
				b.Fatal(rows, r.Err())
			}
		}
		return time.Since(start) / time.Duration(n)
	}
	for _, limit := range []int{0, 1} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			b.ReportAllocs()
			run(exec.AnyOrder, limit, 100)
			b.ResetTimer()
			d := run(exec.Creation, limit, b.N)
			b.StopTimer()
			b.ReportMetric(float64(d)/float64(run(exec.AnyOrder, limit, b.N)), "x-today")
		})
	}
}
