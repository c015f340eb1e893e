//go:build unix

package core_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
)

// BenchmarkSplit splits slots with 10,000 items of about 1 KB and joins them again, without other requests. It
// reports how many items are copied in a second, and for each the process's CPU time and what is written to disk: to
// the log, by flushes, and by merges until there are no more.
func BenchmarkSplit(b *testing.B) {
	c, kve := benchContainer(b)
	items, begin, written := 0, cpuTime(), atRest(kve)
	b.ResetTimer()
	for range b.N {
		items += splitAll(b, c, 8, 4)
	}
	b.StopTimer()
	b.ReportMetric(float64(items)/b.Elapsed().Seconds(), "items/s")
	b.ReportMetric(float64((cpuTime()-begin).Nanoseconds())/1000/float64(items), "cpu-us/item")
	b.ReportMetric(float64(atRest(kve)-written)/float64(items), "disk-B/item")
}

// splitAll splits all slots of a container until there are many, and joins them until there are few. It returns the
// number of items that were copied.
func splitAll(b *testing.B, c *core.Container, many, few int) (items int) {
	keep := nested(few)
	for _, move := range []func([]byte) error{
		func(at []byte) error { return c.SplitSlot(bg, at) }, func(at []byte) error { return c.JoinSlots(bg, at) },
	} {
		for _, at := range nested(many) {
			if slices.ContainsFunc(keep, func(k []byte) bool { return slices.Equal(k, at) }) {
				continue
			}
			if err := move(at); err != nil {
				b.Fatal(err)
			}
		}
		items += int(counted(c))
	}
	return items
}

// BenchmarkReplaceDuringSplit replaces items, one after the other, without and during splits. Besides the mean it
// reports the 99th percentile and the longest time.
func BenchmarkReplaceDuringSplit(b *testing.B) {
	for _, during := range []bool{false, true} {
		b.Run(fmt.Sprint(during), func(b *testing.B) {
			c, _ := benchContainer(b)
			var stop atomic.Bool
			var w waiter
			if during {
				w.Go(func() {
					for !stop.Load() {
						splitAll(b, c, 8, 4)
					}
				})
			}
			took := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for i := range b.N {
				begun := time.Now()
				put(b, c, core.Replace, order(i*7919%benchDocs))
				took = append(took, time.Since(begun))
			}
			b.StopTimer()
			stop.Store(true)
			w.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
		})
	}
}
