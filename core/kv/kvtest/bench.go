package kvtest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core/kv"
)

// BenchKeys is how many 1 KB values Bench's store holds.
const BenchKeys = 50_000

// BenchKey is the i-th key: 40 bytes, in the order of a hash, as the core's item keys are.
func BenchKey(dst []byte, i int) []byte {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(i))
	h := xxhash.Sum64(n[:])
	for k := range 4 {
		dst = binary.BigEndian.AppendUint64(dst, h*uint64(k*2+1))
	}
	return append(dst, n[:]...)
}

// BenchValue is 1 KB of text, of which compression removes about half.
func BenchValue(r *rand.Rand) []byte {
	var v []byte
	for n := 0; len(v) < 1024; n++ {
		v = fmt.Appendf(v, `"property%02d":"%016x%08x","active":true,"type":"order",`, n, r.Uint64(), r.Uint32())
	}
	return v[:1024]
}

// BenchFill loads BenchKeys values through put.
func BenchFill(put func(k, v []byte)) {
	r := rand.New(rand.NewPCG(1, 7))
	for i := range BenchKeys {
		put(BenchKey(nil, i), BenchValue(r))
	}
}

// BenchBatch fills w with the keys of one typical insert: one item of 1 KB and ten small entries.
func BenchBatch(w *kv.Batch, i int, value []byte) {
	w.Reset()
	k := BenchKey([]byte{'n'}, i)
	w.Put(k, value)
	for j := range 10 {
		k[0] = byte('o' + j)
		w.Put(k, []byte{1})
	}
}

// Bench measures an engine that BenchFill has loaded.
func Bench(b *testing.B, e kv.Engine) {
	key := make([]byte, 0, 64)
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			key = BenchKey(key[:0], i*7919%BenchKeys)
			if _, err := e.Get(ctx, nil, key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("SnapshotGet20", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			s := Snapshot(b, e)
			for j := range 20 {
				key = BenchKey(key[:0], (i*20+j)*7919%BenchKeys)
				if _, err := s.Get(nil, key); err != nil {
					b.Fatal(err)
				}
			}
			_ = s.Close()
		}
	})
	has := func(first int, want bool, fresh bool) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			s := Snapshot(b, e)
			for i := 0; b.Loop(); i++ {
				if fresh {
					_ = s.Close()
					s = Snapshot(b, e)
				}
				key = BenchKey(key[:0], first+i*7919%BenchKeys)
				if ok, err := s.Has(key); err != nil || ok != want {
					b.Fatal(ok, err)
				}
			}
			_ = s.Close()
		}
	}
	b.Run("HasAbsent", has(BenchKeys, false, false))
	b.Run("HasAbsentFreshSnapshot", has(BenchKeys, false, true))
	b.Run("HasPresent", has(0, true, false))
	b.Run("Scan100", func(b *testing.B) {
		b.ReportAllocs()
		hi := []byte{0xff, 0xff}
		for i := 0; b.Loop(); i++ {
			s := Snapshot(b, e)
			it, err := s.Iter(BenchKey(key[:0], i*7919%BenchKeys), hi)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for ok := it.First(); ok && n < 100; ok = it.Next() {
				n += len(it.Value()) >> 10
			}
			_ = it.Close()
			_ = s.Close()
		}
	})
	value := BenchValue(rand.New(rand.NewPCG(9, 9)))
	b.Run("Write11", func(b *testing.B) {
		b.ReportAllocs()
		var w kv.Batch
		pre := []kv.Precondition{{Expect: kv.Absent}}
		for i := 0; b.Loop(); i++ {
			BenchBatch(&w, i, value)
			pre[0].Key = w.Op(0).Key
			if _, err := e.Write(ctx, &w, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Write11Absent", func(b *testing.B) {
		b.ReportAllocs()
		var w kv.Batch
		pre := []kv.Precondition{{Expect: kv.Absent}}
		for i := 0; b.Loop(); i++ {
			BenchBatch(&w, -1-i, value)
			pre[0].Key = w.Op(0).Key
			if _, err := e.Write(ctx, &w, pre); err != nil && i == 0 {
				b.Fatal(err)
			}
		}
	})
	b.Run("Write11Wait", func(b *testing.B) {
		b.ReportAllocs()
		var w kv.Batch
		for i := 0; b.Loop(); i++ {
			BenchBatch(&w, 1<<40+i, value)
			c, err := e.Write(ctx, &w, nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := c.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
