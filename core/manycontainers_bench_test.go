package core_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// BenchmarkManyContainers measures a change of the catalog, a look-up, a start and a round of the reaper in a store
// with many containers. Creating 100,000 takes half a minute:
//
//	go test ./core -run '^$' -bench ManyContainers/pebble/10000$
func BenchmarkManyContainers(b *testing.B) {
	for _, kind := range []string{"mem", "pebble"} {
		for _, n := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				var open func() kv.Engine
				if kind == "mem" {
					raw := memkv.New()
					open = func() kv.Engine { return &unclosedEngine{raw} }
				} else {
					dir := b.TempDir()
					open = func() kv.Engine {
						e, err := pebblekv.Open(
							dir, pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned, Kept: core.GotSingly})
						if err != nil {
							b.Fatal(err)
						}
						return e
					}
				}
				manyContainers(b, n, open)
			})
		}
	}
}

// unclosedEngine is an engine that stays open when its user closes it.
type unclosedEngine struct{ kv.Engine }

func (unclosedEngine) Close() error { return nil }

func heapNow() float64 {
	for range 2 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func manyContainers(b *testing.B, n int, open func() kv.Engine) {
	start := func(k kv.Engine) *core.Engine {
		e, err := core.Open(bg, k, core.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	e := start(open())
	spec := func(i int) core.ContainerSpec {
		return core.ContainerSpec{ID: fmt.Sprintf("c%06d", i), PartitionKey: core.PartitionKeyDef{
			Paths: []string{"/pk"}}}
	}
	if _, err := e.EnsureDatabase(bg, "db"); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		if _, err := e.CreateContainer(bg, "db", spec(i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	var rids [][8]byte
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			k := open()
			e = nil
			before := heapNow()
			b.StartTimer()
			e = start(k)
			b.StopTimer()
			b.ReportMetric((heapNow()-before)/float64(n), "B/container")
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	e = start(open())
	defer e.Close()
	for i := range 100 {
		c, err := e.Container("db", fmt.Sprintf("c%06d", i*n/100))
		if err != nil {
			b.Fatal(err)
		}
		rids = append(rids, c.RID())
	}
	b.Run("reap", func(b *testing.B) {
		for b.Loop() {
			e.Reap(bg)
		}
	})
	b.Run("create and drop", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.CreateContainer(bg, "db", spec(n)); err != nil {
				b.Fatal(err)
			}
			if err := e.DropContainer(bg, "db", spec(n).ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("replace", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.ReplaceContainer(bg, "db", spec(0).ID, spec(0)); err != nil {
				b.Fatal(err)
			}
		}
	})
	names := make([]string, len(rids))
	for i := range names {
		names[i] = fmt.Sprintf("c%06d", i*n/100)
	}
	b.Run("by name", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if _, err := e.Container("db", names[i%100]); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	b.Run("by rid", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if _, err := e.ContainerByRID(rids[i%100]); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	b.Run("page of a list", func(b *testing.B) {
		for b.Loop() {
			got := 0
			for _, err := range e.Definitions(bg, "db", 1<<31+uint32(n/2)) {
				if err != nil {
					b.Fatal(err)
				}
				if got++; got == 100 {
					break
				}
			}
		}
	})
}
