package few

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type pair struct{ key, at int }

func byKey(a, b pair) int { return a.key - b.key }

func TestSort(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 100 {
		list := make([]pair, n)
		for i := range list {
			list[i] = pair{rnd.IntN(10), i}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, byKey)
		if Sort(list, byKey); !slices.Equal(list, want) {
			t.Fatalf("%v, want %v", list, want)
		}
	}
}

func BenchmarkSort(b *testing.B) {
	list := make([]pair, 100)
	for b.Loop() {
		for i := range list {
			list[i].key = i * 37 % 100
		}
		Sort(list, byKey)
	}
}

func BenchmarkSlices(b *testing.B) {
	list := make([]pair, 100)
	for b.Loop() {
		for i := range list {
			list[i].key = i * 37 % 100
		}
		slices.SortFunc(list, byKey)
	}
}
