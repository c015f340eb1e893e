package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
)

// BenchmarkWriteMany100 inserts 100 items of 1 KB a call; "x-single" is the ratio to writing them one by one, measured in the same run.
func BenchmarkWriteMany100(b *testing.B) {
	for _, ordered := range []bool{true, false} {
		b.Run(fmt.Sprintf("ordered %v", ordered), func(b *testing.B) {
			c, _ := benchContainer(b)
			n := 0
			batch := func() []core.Write {
				ws := make([]core.Write, 100)
				for i := range ws {
					s := order(n)
					n++
					s = fmt.Sprintf(`{"id":"n%010d","tenant":"t%d",%s`, n, n%1000, s[strings.Index(s, `"customer"`):])
					d, err := doc.FromJSON(nil, []byte(s), doc.JSONOptions{Names: doc.NoSQL})
					if err != nil {
						b.Fatal(err)
					}
					ws[i] = core.Write{Kind: core.Create, Doc: d}
				}
				return ws
			}
			var many, single float64
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				ws := batch()
				b.StartTimer()
				before := b.Elapsed()
				for _, o := range c.WriteMany(bg, ws, ordered) {
					if o.Err != nil {
						b.Fatal(o.Err)
					}
				}
				many += float64(b.Elapsed() - before)
				b.StopTimer()
				ws = batch()
				b.StartTimer()
				before = b.Elapsed()
				for i := range ws {
					if _, err := c.Write(bg, ws[i]); err != nil {
						b.Fatal(err)
					}
				}
				single += float64(b.Elapsed() - before)
			}
			b.ReportMetric(many/float64(b.N)/1e6, "ms-many")
			b.ReportMetric(many/single, "x-single")
		})
	}
}
