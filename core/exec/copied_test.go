package exec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// TestCopiedEntries compares random walks of a stream that copies its first entries with those of a plain iterator.
func TestCopiedEntries(t *testing.T) {
	eng := memkv.New()
	defer eng.Close()
	var batch kv.Batch
	for i := range 20 {
		batch.Put(fmt.Appendf(nil, "k%02d", i), fmt.Appendf(nil, "v%d", i))
	}
	if _, err := eng.Write(t.Context(), &batch, nil); err != nil {
		t.Fatal(err)
	}
	snap, err := eng.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		lo, hi := fmt.Appendf(nil, "k%02d", r.IntN(12)), fmt.Appendf(nil, "k%02d", 8+r.IntN(12))
		iter := func() kv.Iterator {
			it, err := snap.Iter(lo, hi)
			if err != nil {
				t.Fatal(err)
			}
			return it
		}
		plain, shared, rows := iter(), iter(), &Rows{unused: iter()}
		e := &entries{b: &builder{rows: rows}, lo: lo, hi: hi}
		c := &copied{e: e, via: &via{shared}, most: 1 + r.IntN(5)}
		begin := []func(kv.Iterator) bool{kv.Iterator.First, kv.Iterator.Last,
			func(it kv.Iterator) bool { return it.SeekGE([]byte("k10")) },
			func(it kv.Iterator) bool { return it.SeekLT([]byte("k10")) }}[r.IntN(4)]
		same := func(what string, a, b bool) {
			equal := bytes.Equal(c.Key(), plain.Key()) && bytes.Equal(c.Value(), plain.Value())
			if a != b || !equal || c.Err() != nil {
				t.Fatalf("seed %d, %s: %t %q, want %t %q, error %v", seed, what, a, c.Key(), b, plain.Key(), c.Err())
			}
		}
		c.Reset(lo, hi)
		same("begin", begin(c), begin(plain))
		c.via = nil
		for range 25 {
			if r.IntN(8) < c.most { // one direction in most walks
				same("next", c.Next(), plain.Next())
			} else {
				same("prev", c.Prev(), plain.Prev())
			}
		}
		for _, it := range []kv.Iterator{plain, shared, rows.unused, c.own} {
			if it != nil {
				_ = it.Close()
			}
		}
	}
}
