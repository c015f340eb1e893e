package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
)

// BenchmarkWriteMany100 inserts 100 items of 1 KB with each call. "x-single" is the ratio to writing them one by one,
// measured in the same run.
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

// BenchmarkTx100 creates 100 items of 1 KB in one transaction with each call, each time in another logical partition.
func BenchmarkTx100(b *testing.B) {
	c, _ := benchContainer(b)
	n := 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		tenant := fmt.Sprintf("batch%d", i)
		ws := make([]core.Write, 100)
		for k := range ws {
			s := order(n)
			n++
			s = fmt.Sprintf(`{"id":"n%010d","tenant":%q,%s`, n, tenant, s[strings.Index(s, `"customer"`):])
			d, err := doc.FromJSON(nil, []byte(s), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				b.Fatal(err)
			}
			ws[k] = core.Write{Kind: core.Create, Doc: d}
		}
		b.StartTimer()
		_, err := c.WithTx(bg, pk(tenant), func(tx *core.Tx) error {
			for k := range ws {
				if _, err := tx.Write(&ws[k]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
