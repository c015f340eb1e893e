package catalog_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core/kv/memkv"
)

// BenchmarkLookUp is part of every request: it finds a container by the names of the database and the container, for
// all containers in turn.
func BenchmarkLookUp(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 5000} {
		c := filled(b, memkv.New(), n)
		ids := make([]string, n)
		for i := range ids {
			ids[i] = name(i * 7919 % n)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := c.Container(bg, "db", ids[i]); err != nil {
					b.Fatal(err)
				}
				if i++; i == len(ids) {
					i = 0
				}
			}
		})
	}
}
