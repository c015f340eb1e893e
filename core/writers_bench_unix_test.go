//go:build unix

package core_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// BenchmarkWriters has 8, 32 and 64 clients write items of 1 KB, of many partition keys, into a container with one
// slot, with four and with 16, in a store that syncs its log. All writers of a slot need one latch, so the difference
// between one slot and several is the price of waiting for it. Judge by cpu-us/op, the process's CPU time, with runs in
// turn (-benchtime 20000x -count 3).
func BenchmarkWriters(b *testing.B) {
	for _, slots := range []int{1, 4, 16} {
		for _, clients := range []int{8, 32, 64} {
			for _, kind := range []core.WriteKind{core.Create, core.Replace} {
				name := map[core.WriteKind]string{core.Create: "insert", core.Replace: "replace"}[kind]
				b.Run(fmt.Sprintf("%s/slots=%d/clients=%d", name, slots, clients), func(b *testing.B) {
					benchWriters(b, slots, clients, kind)
				})
			}
		}
	}
}

func benchWriters(b *testing.B, slots, clients int, kind core.WriteKind) {
	kve, err := pebblekv.Open(b.TempDir(), pebblekv.Options{Scanned: core.OnlyScanned, Kept: core.GotSingly})
	if err != nil {
		b.Fatal(err)
	}
	e, err := core.Open(bg, kve, core.Options{MinSlots: slots})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	const items = 10000
	c := partitioned(b, e, 1, items)
	text := func(i int) string { return partitionedText(items + i*37) }
	if kind == core.Replace {
		text = func(i int) string {
			return strings.Replace(partitionedText(i*37%items), `"p0":`, fmt.Sprintf(`"p0":%d`, i%9+1), 1)
		}
	}
	var next atomic.Int64
	var ws waiter
	b.ResetTimer()
	begin := cpuTime()
	for range clients {
		ws.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				put(b, c, kind, text(i))
			}
		})
	}
	ws.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64((cpuTime()-begin).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
}
