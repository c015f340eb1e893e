package core_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

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
