package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// BenchmarkUniqueInsert inserts in turns of 100 into a container without a declared index and one with a unique index,
// in one store. The metrics are the medians of the turns: an insert without it, and what the index adds to it.
func BenchmarkUniqueInsert(b *testing.B) {
	eng, err := pebblekv.Open(b.TempDir(), pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned,
		Kept: core.GotSingly})
	if err != nil {
		b.Fatal(err)
	}
	e, err := core.Open(bg, eng, core.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	plain := newContainer(b, e, core.ContainerSpec{ID: "plain"})
	unique := newContainer(b, e, core.ContainerSpec{ID: "unique", Declared: []core.Declared{uniqueIn("u", "u")}})
	n := 0
	turn := func(k *core.Container) float64 {
		began := time.Now()
		for i := range 100 {
			text := fmt.Sprintf(`{"id":"%d","pk":"%d","u":"user%d@example.com","v":%d,"w":[1,2,3]}`, n+i, n+i, n+i, n)
			if _, err := k.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(b, text)}); err != nil {
				b.Fatal(err)
			}
		}
		return float64(time.Since(began).Microseconds()) / 100
	}
	var without, more []float64
	for b.Loop() {
		w := turn(plain)
		without, more = append(without, w), append(more, turn(unique)-w)
		n += 100
	}
	slices.Sort(without)
	slices.Sort(more)
	b.ReportMetric(without[len(without)/2], "µs-insert")
	b.ReportMetric(more[len(more)/2], "µs-more")
	b.ReportMetric(0, "ns/op")
}

// The cost of a unique index for an insert: without one, with one value, and with two.
func BenchmarkDeclaredInsert(b *testing.B) {
	for _, c := range []struct {
		name  string
		index []core.Declared
	}{{"none", nil}, {"one", []core.Declared{uniqueIn("u", "u")}}, {"two", []core.Declared{uniqueIn("u", "u v")}}} {
		b.Run(c.name, func(b *testing.B) {
			eng, err := pebblekv.Open(b.TempDir(), pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned,
				Kept: core.GotSingly})
			if err != nil {
				b.Fatal(err)
			}
			e, err := core.Open(bg, eng, core.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			k := newContainer(b, e, core.ContainerSpec{Declared: c.index})
			n := 0
			for b.Loop() {
				n++
				text := fmt.Sprintf(`{"id":"%d","pk":"%d","u":"user%d@example.com","v":%d,"w":[1,2,3]}`, n, n, n, n)
				if _, err := k.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(b, text)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
