package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
)

// BenchmarkReap removes expired items of 1 KB with few fields, with the pauses of the background work. It reports how
// many are removed each second: items under the container's ttl, found in feed order, and items with their own ttl. The
// log is synced.
func BenchmarkReap(b *testing.B) {
	const items = 20_000
	small := func(i int) string { return fmt.Sprintf(`{"id":"o%08d","tenant":"t%06d","n":%d}`, i, i/100, i) }
	for _, size := range []struct {
		name string
		text func(i int) string
	}{{"1 KB", order}, {"small", small}} {
		for _, own := range []bool{false, true} {
			name := "default ttl"
			if own {
				name = "own ttl"
			}
			b.Run(size.name+"/"+name, func(b *testing.B) {
				ttl, field := int32(1), ""
				if own {
					ttl, field = -1, `"ttl":1,`
				}
				removed, took := 0, time.Duration(0)
				for b.Loop() {
					e, _ := benchEngine(b, false)
					c := newContainer(b, e,
						core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/tenant"}},
							DefaultTTL: &ttl})
					var ws []core.Write
					for i := range items {
						ws = append(ws, core.Write{Kind: core.Create, Doc: mustDoc(b, "{"+field+size.text(i)[1:])})
					}
					for _, o := range c.WriteMany(bg, ws, false) {
						if o.Err != nil {
							b.Fatal(o.Err)
						}
					}
					time.Sleep(2100 * time.Millisecond)
					begun := time.Now()
					for counted(c) > 0 && time.Since(begun) < time.Minute { // the background reaper may be running
						e.Reap(bg)
					}
					took += time.Since(begun)
					removed += items - int(counted(c))
					if err := e.Close(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(removed)/took.Seconds(), "items/s")
			})
		}
	}
}
