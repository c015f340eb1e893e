package kvtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// walk is what an iterator must do: a sorted list of keys, and a position in it. from and to are the bounds. at is
// from-1 before the first key, and to after the last one.
type walk struct {
	all          []string
	from, to, at int
	fresh        bool // not positioned since its bounds were given
}

func (w *walk) index(key string) int {
	i, _ := slices.BinarySearch(w.all, key)
	return i
}

func (w *walk) reset(lo, hi string) {
	w.from, w.to, w.fresh = w.index(lo), w.index(max(lo, hi)), true
}

func (w *walk) key() string {
	if w.fresh || w.at < w.from || w.at >= w.to {
		return ""
	}
	return w.all[w.at]
}

// forward goes to an index, or past the last key if there is none. backward goes to one, or before the first key.
func (w *walk) forward(to int)  { w.at, w.fresh = min(to, w.to), false }
func (w *walk) backward(to int) { w.at, w.fresh = max(to, w.from-1), false }

// An iterator does what a list of keys does, whatever its bounds were before: the same, inside of them, partly outside,
// or empty.
func testWalks(t *testing.T, e kv.Engine) {
	w := walk{}
	r := rand.New(rand.NewPCG(1, 2))
	name := func(n int) string { return fmt.Sprintf("k%02d", n) }
	for n := range 60 {
		put(t, e, name(n)+"=v")
		if n%3 == 0 {
			put(t, e, name(n)) // removed
		} else {
			w.all = append(w.all, name(n))
		}
	}
	s := Snapshot(t, e)
	defer s.Close()
	it, err := s.Iter(b(name(10)), b(name(50)))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	w.reset(name(10), name(50))
	for n := range 5000 {
		lo, hi, key := name(r.IntN(61)), name(r.IntN(61)), name(r.IntN(61))
		var op string
		var ok bool
		switch r.IntN(12) {
		case 0:
			op = fmt.Sprintf("reset to [%s, %s)", lo, hi)
			w.reset(lo, hi)
			it.Reset(b(lo), b(hi))
		case 1:
			op, ok = "first", it.First()
			w.forward(w.from)
		case 2:
			op, ok = "last", it.Last()
			w.backward(w.to - 1)
		case 3:
			op, ok = "seek to "+key, it.SeekGE(b(key))
			w.forward(max(w.index(key), w.from))
		case 4:
			op, ok = "seek below "+key, it.SeekLT(b(key))
			w.backward(min(w.index(key), w.to) - 1)
		case 5, 6, 7, 8:
			op, ok = "next", it.Next()
			if w.fresh {
				w.at = w.from - 1
			}
			w.forward(w.at + 1)
		default:
			op, ok = "prev", it.Prev()
			if w.fresh {
				w.at = w.to
			}
			w.backward(w.at - 1)
		}
		got := ""
		if ok {
			got = string(it.Key())
		}
		if got != w.key() || it.Err() != nil {
			t.Fatalf("step %d, %s: %q (%v), want %q", n, op, got, it.Err(), w.key())
		}
	}
}
