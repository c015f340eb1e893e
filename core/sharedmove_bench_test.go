package core_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
)

// BenchmarkSharedMoves splits a slot of 1,000 items of 600 bytes in a store that several processes share, and joins the
// halves again: alone, and while three clients replace its items. trips has calls of 2 ms each. Over TiKV's client
// (core/kv/tikvkv) it is a cluster, or the simulation of one.
func BenchmarkSharedMoves(b *testing.B) {
	stores := map[string]func(testing.TB) kv.Engine{"trips": func(t testing.TB) kv.Engine {
		return sharedBy(t, 2, kvtest.Faults{Least: 2 * time.Millisecond, Most: 2 * time.Millisecond})
	}}
	if open := engines["tikv"]; open != nil {
		stores = map[string]func(testing.TB) kv.Engine{"tikv": open}
	}
	for name, open := range stores {
		for _, writers := range []int{0, 3} {
			b.Run(fmt.Sprintf("%s/writers=%d", name, writers), func(b *testing.B) {
				benchSharedMoves(b, open(b), writers)
			})
		}
	}
}

func benchSharedMoves(b *testing.B, eng kv.Engine, writers int) {
	e, err := core.Open(bg, eng, core.Options{MinSlots: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	c := newContainer(b, e, splitSpec())
	const items = 1000
	item := func(i, n int) string {
		i %= items
		return fmt.Sprintf(`{"id":"%d","pk":"p%d","u":%d,"n":%d,"pad":"%500d"}`, i, i%50, i, n, i)
	}
	var fill waiter
	for w := range 20 {
		fill.Go(func() {
			for i := w; i < items; i += 20 {
				put(b, c, core.Create, item(i, 0))
			}
		})
	}
	fill.Wait()
	var stop atomic.Bool
	var wrote, longest atomic.Int64
	var g waiter
	for w := range writers {
		g.Go(func() {
			for i := w; !stop.Load(); i += writers {
				begun := time.Now()
				put(b, c, core.Replace, item(i, i))
				wrote.Add(1)
				if d := int64(time.Since(begun)); d > longest.Load() {
					longest.Store(d)
				}
			}
		})
	}
	at := nested(2)[0]
	var splits, joins time.Duration
	b.ResetTimer()
	for range b.N {
		begun := time.Now()
		if err := c.SplitSlot(bg, at); err != nil {
			b.Fatal(err)
		}
		splits += time.Since(begun)
		begun = time.Now()
		if err := c.JoinSlots(bg, at); err != nil {
			b.Fatal(err)
		}
		joins += time.Since(begun)
	}
	b.StopTimer()
	stop.Store(true)
	g.Wait()
	b.ReportMetric(splits.Seconds()*1000/float64(b.N), "split-ms")
	b.ReportMetric(joins.Seconds()*1000/float64(b.N), "join-ms")
	b.ReportMetric(float64(wrote.Load())/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64(longest.Load())/1e6, "longest-ms")
}
