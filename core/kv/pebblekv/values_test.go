package pebblekv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
)

func counted(n uint64, size int) []byte {
	return append(binary.BigEndian.AppendUint64(nil, n), make([]byte, size)...)
}

// TestValuesAreThePresentOnes: several writers write and delete keys whose values only grow, alone and together, while
// others read them. A read of the current state never returns less than an earlier read of anyone. A snapshot's Get
// returns what its iterator finds.
func TestValuesAreThePresentOnes(t *testing.T) {
	t.Parallel()
	const keys, writers, steps = 12, 4, 3000
	e := mustOpen(t, t.TempDir(), Options{Kept: everyKey, CacheMB: 1, MemTableMB: 1, Relaxed: true})
	defer e.Close()
	key := func(i int) []byte { return fmt.Appendf(nil, "k%02d", i) }
	var next atomic.Uint64
	var seen [keys]atomic.Uint64
	// a key's value grows only if its writers take turns; two owners still meet in one shard
	var owner [keys]sync.Mutex
	var writing, reading sync.WaitGroup
	for w := range writers {
		r := rand.New(rand.NewPCG(uint64(w), 7))
		writing.Go(func() {
			for range steps {
				var b kv.Batch
				first, n := r.IntN(keys), 1+r.IntN(3)
				n = min(n, keys-first)
				for i := first; i < first+n; i++ {
					owner[i].Lock()
				}
				for i := first; i < first+n; i++ {
					b.Put(key(i), counted(next.Add(1), r.IntN(300)))
				}
				if _, err := e.Write(t.Context(), &b, nil); err != nil {
					t.Error(err)
				}
				for i := first; i < first+n; i++ {
					owner[i].Unlock()
				}
			}
		})
	}
	stop := make(chan struct{})
	for g := range 3 {
		r := rand.New(rand.NewPCG(uint64(g), 8))
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				i := r.IntN(keys)
				least := seen[i].Load()
				v, err := e.Get(context.Background(), nil, key(i))
				if err != nil && !errors.Is(err, kv.ErrNotFound) {
					t.Error(err)
				}
				if err == nil {
					n := binary.BigEndian.Uint64(v)
					if n < least {
						t.Errorf("key %d: %d was read after %d", i, n, least)
						return
					}
					for old := seen[i].Load(); old < n && !seen[i].CompareAndSwap(old, n); old = seen[i].Load() {
					}
				}
				if r.IntN(8) == 0 {
					sameAsScanned(t, e, key, r, keys)
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	if m := e.Metrics(); m.ValueHits == 0 || m.ValueMisses == 0 {
		t.Errorf("%d hits, %d misses: this tests nothing", m.ValueHits, m.ValueMisses)
	}
}

// sameAsScanned compares a snapshot's Get with its iterator.
func sameAsScanned(t *testing.T, e *Engine, key func(int) []byte, r *rand.Rand, keys int) {
	s := kvtest.Snapshot(t, e)
	defer s.Close()
	it, err := s.Iter([]byte("k"), []byte("l"))
	if err != nil {
		t.Error(err)
		return
	}
	defer it.Close()
	for range 4 {
		k := key(r.IntN(keys))
		got, err := s.Get(nil, k)
		if !it.SeekGE(k) || string(it.Key()) != string(k) {
			if !errors.Is(err, kv.ErrNotFound) {
				t.Errorf("%s is not in the snapshot, Get: %v", k, err)
			}
		} else if err != nil || string(got) != string(it.Value()) {
			t.Errorf("%s: %.8x, the iterator has %.8x, %v", k, got, it.Value(), err)
		}
	}
}

// getter is a snapshot, or the current state of an engine.
type getter interface {
	Get(dst, key []byte) ([]byte, error)
}

type now struct{ *Engine }

func (n now) Get(dst, key []byte) ([]byte, error) {
	return n.Engine.Get(context.Background(), dst, key)
}

// TestValuesKept counts which reads find a cached value.
func TestValuesKept(t *testing.T) {
	var e *Engine
	put := func(key, value string) {
		var b kv.Batch
		if value == "" {
			b.Delete([]byte(key))
		} else {
			b.Put([]byte(key), []byte(value))
		}
		if _, err := e.Write(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
	}
	get := func(s getter, key, want string) {
		t.Helper()
		v, err := s.Get(nil, []byte(key))
		if string(v) != want || (want == "") != errors.Is(err, kv.ErrNotFound) {
			t.Errorf("%s: %.20q, %v, want %.20q", key, v, err, want)
		}
	}
	long := strings.Repeat("x", maxValue+1)
	for _, tc := range []struct {
		name         string
		do           func()
		hits, misses int64
	}{
		{"a written value", func() { put("k1", "a"); get(now{e}, "k1", "a") }, 1, 0},
		{"a replaced one", func() { put("k1", "a"); put("k1", "bcd"); get(now{e}, "k1", "bcd") }, 1, 0},
		{"a deleted one", func() { put("k1", "a"); put("k1", ""); get(now{e}, "k1", "") }, 0, 1},
		{"a long one", func() {
			put("k1", "a")
			put("k1", long)
			get(now{e}, "k1", long)
			get(now{e}, "k1", long)
		}, 0, 2},
		{"a key that isn't kept", func() { put("n1", "a"); get(now{e}, "n1", "a") }, 0, 0},
		{"read twice after a restart", func() {
			put("k1", "a")
			e.values.forget([]byte("k"), []byte("l"))
			get(now{e}, "k1", "a")
			get(now{e}, "k1", "a")
		}, 1, 1},
		{"a snapshot of before", func() {
			put("k1", "a")
			s := kvtest.Snapshot(t, e)
			defer s.Close()
			put("k1", "b")
			get(s, "k1", "a")
			get(now{e}, "k1", "b")
		}, 1, 1},
		{"a snapshot of after", func() {
			put("k1", "a")
			s := kvtest.Snapshot(t, e)
			defer s.Close()
			get(s, "k1", "a")
		}, 1, 0},
		{"a snapshot of before keeps nothing old", func() {
			put("k1", "a")
			s := kvtest.Snapshot(t, e)
			defer s.Close()
			put("k1", long)
			get(s, "k1", "a")
			get(now{e}, "k1", long)
		}, 0, 2},
		{"a dropped range", func() {
			put("k1", "a")
			if err := e.DropRange(t.Context(), []byte("k"), []byte("l")); err != nil {
				t.Fatal(err)
			}
			get(now{e}, "k1", "")
		}, 0, 1},
		{"beside a dropped range", func() {
			put("k1", "a")
			put("k2", "b")
			for _, r := range []string{"k", "k2", "k3"} { // ranges around k1; only k2 contains it
				if err := e.DropRange(t.Context(), []byte(r), []byte(r+"\x00")); err != nil {
					t.Fatal(err)
				}
			}
			get(now{e}, "k1", "a")
			get(now{e}, "k2", "")
		}, 1, 1},
		{"while a writer is inside", func() {
			put("k1", "a")
			var b kv.Batch
			b.Delete([]byte("k1"))
			ts := []touch{{hash: hashOf("k1")}}
			e.values.enter(ts)
			get(now{e}, "k1", "a")
			e.values.leave(ts, &b, nil, false)
			get(now{e}, "k1", "a")
			get(now{e}, "k1", "a")
		}, 1, 2},
		{"of two writers at once the first leaves first", func() {
			put("k1", "c")
			bothInside(e, 0, 1)
			get(now{e}, "k1", "c")
		}, 0, 1},
		{"of two writers at once the second leaves first", func() {
			put("k1", "c")
			bothInside(e, 1, 0)
			get(now{e}, "k1", "c")
		}, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e = mustOpen(t, t.TempDir(),
				Options{Kept: func(k []byte) bool { return k[0] == 'k' }, CacheMB: 16, Relaxed: true})
			defer e.Close()
			tc.do()
			if m := e.Metrics(); m.ValueHits != tc.hits || m.ValueMisses != tc.misses {
				t.Errorf("%d hits, %d misses, want %d, %d", m.ValueHits, m.ValueMisses, tc.hits, tc.misses)
			}
		})
	}
}

// The caller's memory is reused for values of similar size, from the cache and from the store.
func TestValuesIntoMemory(t *testing.T) {
	e := mustOpen(t, t.TempDir(), Options{Kept: everyKey, CacheMB: 16, Relaxed: true})
	defer e.Close()
	var b kv.Batch
	var keys [10][]byte
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "k%d", i)
		b.Put(keys[i], []byte(strings.Repeat("x", 1000+i)))
	}
	if _, err := e.Write(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	var mem []byte
	read := func() {
		for i, key := range keys {
			v, err := e.Get(context.Background(), mem[:0], key)
			if err != nil || len(v) != 1000+i {
				t.Fatal(len(v), err)
			}
			mem = v
		}
	}
	read()
	if n := testing.AllocsPerRun(20, read); n >= 1 {
		t.Errorf("%v allocations in ten reads", n)
	}
	if m := e.Metrics(); m.ValueHits == 0 || m.ValueMisses != 0 {
		t.Errorf("%d hits, %d misses", m.ValueHits, m.ValueMisses)
	}
}

// bothInside has two writers of a key enter, and leave in a given order. Neither knows whose value is the last.
func bothInside(e *Engine, order ...int) {
	var ts [2][]touch
	for i := range ts {
		ts[i] = []touch{{hash: hashOf("k1")}}
		e.values.enter(ts[i])
	}
	for _, i := range order {
		var b kv.Batch
		b.Put([]byte("k1"), []byte{'a' + byte(i)})
		e.values.leave(ts[i], &b, nil, true)
	}
}

func hashOf(key string) uint64 { return xxhash.Sum64String(key) }
