package pebblekv

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
)

func filled(b *testing.B, o Options) *Engine { return filledBy(b, o, kvtest.BenchFill) }

func filledBy(b *testing.B, o Options, fill func(put func(k, v []byte))) *Engine {
	e := mustOpen(b, b.TempDir(), o)
	fill(func(k, v []byte) {
		if err := e.db.Set(k, v, pebble.NoSync); err != nil {
			b.Fatal(err)
		}
	})
	if err := e.db.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := e.db.Compact(context.Background(), []byte{0}, []byte{0xff, 0xff}, false); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return e
}

// BenchmarkEngine measures the engine behind kv. BenchmarkRawPebble below does the same work on Pebble itself.
func BenchmarkEngine(b *testing.B) { kvtest.Bench(b, filled(b, Options{CacheMB: 256})) }

// BenchmarkBlockSize compares data block sizes on reads.
func BenchmarkBlockSize(b *testing.B) {
	for _, kb := range []int{4, 8, 16, 32} {
		b.Run(map[int]string{4: "4K", 8: "8K", 16: "16K", 32: "32K"}[kb], func(b *testing.B) {
			e := filled(b, Options{BlockKB: kb})
			b.Run("Default", func(b *testing.B) { kvtest.Bench(b, e) })
		})
	}
}

func BenchmarkRawPebble(b *testing.B) {
	e := filled(b, Options{CacheMB: 256})
	key := make([]byte, 0, 64)
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			v, c, err := e.db.Get(kvtest.BenchKey(key[:0], i*7919%kvtest.BenchKeys))
			if err != nil || len(v) == 0 {
				b.Fatal(err)
			}
			_ = c.Close()
		}
	})
	b.Run("GetAbsent", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, _, err := e.db.Get(kvtest.BenchKey(key[:0], kvtest.BenchKeys+i*7919%kvtest.BenchKeys)); err !=
				pebble.ErrNotFound {
				b.Fatal(err)
			}
		}
	})
	write := func(o *pebble.WriteOptions, first int) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			value := make([]byte, 1024)
			for i := range value {
				value[i] = byte(i * 131)
			}
			var w kv.Batch
			for i := 0; b.Loop(); i++ {
				kvtest.BenchBatch(&w, first+i, value)
				pb := e.db.NewBatch()
				for j := range w.Len() {
					op := w.Op(j)
					if err := pb.Set(op.Key, op.Value, nil); err != nil {
						b.Fatal(err)
					}
				}
				if err := pb.Commit(o); err != nil {
					b.Fatal(err)
				}
				_ = pb.Close()
			}
		}
	}
	b.Run("Write11", write(pebble.NoSync, 0))
	b.Run("Write11Wait", write(pebble.Sync, 1<<40))
}

// BenchmarkGetMany reads 20 values of a snapshot: one by one, by GetMany, and by GetMany in the order of the keys; with
// all values cached, and with none.
func BenchmarkGetMany(b *testing.B) {
	for name, o := range map[string]Options{"kept": {CacheMB: 512, Kept: everyKey}, "blocks": {CacheMB: 256}} {
		e := filled(b, o)
		one := func(s kv.Snapshot, v *kv.Values, keys [][]byte) error { return v.Fill(keys, s.Get) }
		many := func(s kv.Snapshot, v *kv.Values, keys [][]byte) error { return s.GetMany(v, keys) }
		for _, by := range []struct {
			name   string
			sorted bool
			read   func(s kv.Snapshot, v *kv.Values, keys [][]byte) error
		}{{"OneByOne", false, one}, {"GetMany", false, many}, {"Sorted", true, many}} {
			b.Run(name+"/"+by.name, func(b *testing.B) {
				b.ReportAllocs()
				var v kv.Values
				keys := make([][]byte, 20)
				for i := 0; b.Loop(); i++ {
					for j := range keys {
						keys[j] = kvtest.BenchKey(keys[j][:0], (i*20+j)*7919%kvtest.BenchKeys)
					}
					if by.sorted {
						slices.SortFunc(keys, bytes.Compare)
					}
					s := kvtest.Snapshot(b, e)
					if err := by.read(s, &v, keys); err != nil || v.Len() != len(keys) {
						b.Fatal(v.Len(), err)
					}
					_ = s.Close()
				}
			})
		}
	}
}

// BenchmarkSixteenRanges moves one iterator to 16 ranges that are far apart, as a merge over 16 slots does, and reads
// the first key of each: by the engine, and by Pebble alone. Like index entries, the keys have short values.
func BenchmarkSixteenRanges(b *testing.B) {
	e := filledBy(b, Options{CacheMB: 256}, func(put func(k, v []byte)) {
		for i := range 4 * kvtest.BenchKeys {
			put(kvtest.BenchKey(nil, i), []byte{1})
		}
	})
	var lo, hi [16][]byte
	ranges := func(i int) {
		for j := range lo {
			lo[j] = append(lo[j][:0], byte(j<<4), byte(i*101))
			hi[j] = append(hi[j][:0], byte(j<<4+2))
		}
	}
	b.Run("Engine", func(b *testing.B) {
		s := kvtest.Snapshot(b, e)
		defer s.Close()
		it, err := s.Iter([]byte{0}, []byte{1})
		if err != nil {
			b.Fatal(err)
		}
		defer it.Close()
		for i := 0; b.Loop(); i++ {
			ranges(i)
			for j := range lo {
				if it.Reset(lo[j], hi[j]); !it.First() {
					b.Fatal(lo[j], it.Err())
				}
			}
		}
	})
	b.Run("Raw", func(b *testing.B) {
		it, err := e.db.NewIter(nil)
		if err != nil {
			b.Fatal(err)
		}
		defer it.Close()
		for i := 0; b.Loop(); i++ {
			ranges(i)
			for j := range lo {
				if it.SetBounds(lo[j], hi[j]); !it.First() {
					b.Fatal(lo[j], it.Error())
				}
			}
		}
	})
}
