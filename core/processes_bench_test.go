package core_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// BenchmarkProcesses has one, two and three processes over one store whose calls take 2 ms. In apart each process has a
// partition of its own, in together all write to one. Each process has eight clients, which insert an item and read it.
// The ratio to one process shows what they share (-benchtime 2000x). least/share is the part of the operations that the
// slowest of n processes has done, times n, and longest-ms the longest operation: what losers of races pay. crowd is
// together with 64 clients in each process. hot has one process and one partition, and calls
// of different durations: the commits of a partition against the round trip.
func BenchmarkProcesses(b *testing.B) {
	for _, c := range []struct {
		name     string
		clients  int
		together bool
	}{{"apart", 8, false}, {"together", 8, true}, {"crowd", 64, true}} {
		one := 0.0
		for n := 1; n <= 3; n++ {
			b.Run(fmt.Sprintf("%s/processes=%d", c.name, n), func(b *testing.B) {
				ops := benchProcesses(b, n, c.clients, 2*time.Millisecond, c.together)
				if n == 1 {
					one = ops
				}
				b.ReportMetric(ops/one, "ratio")
			})
		}
	}
	for _, trip := range []time.Duration{time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond} {
		for _, clients := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("hot/trip=%v/clients=%d", trip, clients), func(b *testing.B) {
				benchProcesses(b, 1, clients, trip, true)
			})
		}
	}
}

// benchProcesses returns the operations a second of n processes.
func benchProcesses(b *testing.B, n, clients int, trip time.Duration, together bool) float64 {
	store := kvtest.NewShared(memkv.New(), 1)
	var cs []*core.Container
	for i := range n {
		e, err := core.Open(bg, store.Engine(), core.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			store.SetFaults(kvtest.Faults{})
			if err := e.Close(); err != nil {
				b.Error(err)
			}
		})
		if i == 0 {
			newContainer(b, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 30000}})
		}
		c, err := e.Container("db", "c")
		if err != nil {
			b.Fatal(err)
		}
		cs = append(cs, c)
	}
	keys := map[uint32]string{} // of each slot
	for i := 0; len(keys) < 3; i++ {
		res := put(b, cs[0], core.Create, fmt.Sprintf(`{"id":"k","pk":"p%d"}`, i))
		keys[res.Slot.ID()] = fmt.Sprint("p", i)
	}
	var own []string
	for _, key := range keys {
		own = append(own, key)
	}
	store.SetFaults(kvtest.Faults{Least: trip, Most: trip})
	var next, longest atomic.Int64
	did := make([]atomic.Int64, n)
	var g sync.WaitGroup
	b.ResetTimer()
	for p, c := range cs {
		key := own[p]
		if together {
			key = own[0]
		}
		for range clients {
			g.Go(func() {
				for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
					began := time.Now()
					put(b, c, core.Create, fmt.Sprintf(`{"id":"i%d","pk":%q,"n":%d}`, i, key, i))
					if _, err := c.Read(bg, pk(key), value.StringOf(fmt.Sprint("i", i))); err != nil {
						b.Error(err)
					}
					did[p].Add(1)
					for took := int64(time.Since(began)); ; {
						if was := longest.Load(); was >= took || longest.CompareAndSwap(was, took) {
							break
						}
					}
				}
			})
		}
	}
	g.Wait()
	ops := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(ops, "writes/s")
	least := int64(b.N)
	for p := range did {
		least = min(least, did[p].Load())
	}
	b.ReportMetric(float64(least)*float64(n)/float64(b.N), "least/share")
	b.ReportMetric(float64(longest.Load())/1e6, "longest-ms")
	return ops
}
