package core_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// BenchmarkShown measures answers that must be durable before they are returned, alone and with 8 durable writers of
// all slots. It reports the median ("p50-µs") and its ratio to the median of a durable write with the same writers
// ("x-write"). Both wait for a sync of the log, usually the one after the sync in progress.
func BenchmarkShown(b *testing.B) {
	for _, writers := range []int{0, 8} {
		pause := time.Duration(writers) * 25 * time.Microsecond // with writers: ask at any moment of their cycle
		e, _ := benchEngine(b, false)
		c := newContainer(b, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/tenant"}}})
		for i := range 100 {
			put(b, c, core.Create, order(i))
		}
		hit, there, none := pk("t000000"), value.StringOf("o00000007"), value.StringOf("none")
		answers := []struct {
			name string
			ask  func() error
		}{
			{"hit", func() error { _, err := c.Read(bg, hit, there); return err }},
			{"miss", func() error { _, err := c.Read(bg, hit, none); return wants(err, status.NotFound) }},
			{"refusal", func() error {
				_, err := c.Write(bg, core.Write{Kind: core.Delete, PK: hit, ID: none})
				return wants(err, status.NotFound)
			}},
			{"query of a key", func() error {
				return drain(c, &exec.Query{PK: hit, Pred: access.Eq(access.ID, there)})
			}},
			{"empty query", func() error { return drain(c, &exec.Query{PK: pk("none")}) }},
			{"empty query of all", func() error { return drain(c, eqQuery("none", 1)) }},
			{"count", func() error { counted(c); return c.Settle() }},
		}
		var stop atomic.Bool
		var wg waiter
		for w := range writers {
			wg.Go(func() {
				for i := 0; !stop.Load(); i++ {
					put(b, c, core.Upsert, order((w*7919+i*101)%benchDocs)) // in all logical partitions
				}
			})
		}
		write := p50(100, pause, func() { put(b, c, core.Upsert, order(1)) })
		for _, a := range answers {
			b.Run(fmt.Sprintf("%s/%d writers", a.name, writers), func(b *testing.B) {
				b.ReportAllocs()
				d := p50(b.N, pause, func() {
					if err := a.ask(); err != nil {
						b.Fatal(err)
					}
				})
				b.ReportMetric(float64(d.Nanoseconds())/1e3, "p50-µs")
				b.ReportMetric(float64(d)/float64(write), "x-write")
			})
		}
		stop.Store(true)
		wg.Wait()
	}
}

// p50 returns the median time of n calls with pauses.
func p50(n int, pause time.Duration, f func()) time.Duration {
	ds := make([]time.Duration, n)
	for i := range ds {
		begun := time.Now()
		f()
		ds[i] = time.Since(begun)
		time.Sleep(pause)
	}
	slices.Sort(ds)
	return ds[n/2]
}
