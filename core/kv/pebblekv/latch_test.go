package pebblekv

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
)

func key64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// footprintFor is the footprint of a write that checks and writes the keys pre, and also writes the keys [from, to).
func footprintFor(pre []uint64, from, to uint64) *footprint {
	f := new(footprint)
	f.begin(int(to-from) + len(pre))
	for n := from; n < to; n++ {
		f.addWritten(key64(n))
	}
	for _, n := range pre {
		f.addWritten(key64(n))
		f.pre = append(f.pre, xxhash.Sum64(key64(n)))
	}
	return f
}

// Large writes of different keys don't wait for each other. If one of two writes checks a key that the other one
// writes, the later one waits.
func TestAdmission(t *testing.T) {
	var a admission
	large := footprintFor([]uint64{1}, 1000, 5000)
	a.enter(large)
	other := footprintFor([]uint64{2}, 5000, 9000)
	a.enter(other)
	waiting := []*footprint{
		footprintFor([]uint64{3000}, 0, 0), // checks a key that is being written
		footprintFor([]uint64{3}, 1, 2),    // writes a key that is being checked
	}
	var in atomic.Int32
	var wg sync.WaitGroup
	for _, f := range waiting {
		wg.Go(func() {
			a.enter(f)
			in.Add(1)
			a.leave(f)
		})
	}
	time.Sleep(5 * time.Millisecond)
	if n := in.Load(); n != 0 {
		t.Errorf("%d writes went on beside one that they meet", n)
	}
	a.leave(other)
	a.leave(large)
	wg.Wait()
	if len(a.in) != 0 {
		t.Errorf("%d writes are left", len(a.in))
	}
}

// A footprint has every written key, and rarely another one.
func TestFootprint(t *testing.T) {
	for _, n := range []uint64{1, 36, 3600} {
		f := footprintFor(nil, 0, n)
		for k := range n {
			if o := footprintFor([]uint64{k}, 0, 0); !f.meets(o) || !o.meets(f) {
				t.Fatalf("key %d of %d is missing", k, n)
			}
		}
		wrong := 0
		for k := n; k < n+10_000; k++ {
			if footprintFor([]uint64{k}, 0, 0).meets(f) {
				wrong++
			}
		}
		if wrong > 50 {
			t.Errorf("%d keys: %d of 10000 others seem to be written", n, wrong)
		}
	}
}

// Increments with preconditions are never lost, while writes without preconditions to the same keys run concurrently.
func TestChecksHoldBesideBlindWrites(t *testing.T) {
	e := mustOpen(t, t.TempDir(), Options{Relaxed: true})
	defer e.Close()
	const keys, workers, each = 4, 4, 300
	put := func(k uint64, v uint64, pre []kv.Precondition) error {
		var b kv.Batch
		b.Put(key64(k), key64(v))
		_, err := e.Write(context.Background(), &b, pre)
		return err
	}
	for k := range uint64(keys) {
		if err := put(k, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	var added [keys]atomic.Uint64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for range each {
				k := r.Uint64N(keys)
				for {
					v, err := e.Get(context.Background(), nil, key64(k))
					if err != nil {
						t.Error(err)
						return
					}
					n := binary.BigEndian.Uint64(v)
					if err := put(k, n+1, []kv.Precondition{{Key: key64(k), Expect: kv.Equal, Value: v}}); err == nil {
						added[k].Add(1)
						break
					}
				}
				var b kv.Batch // a large write at the same time
				for i := range uint64(100) {
					b.Put(key64(1000+i), []byte{1})
				}
				if _, err := e.Write(context.Background(), &b, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for k := range uint64(keys) {
		v, err := e.Get(context.Background(), nil, key64(k))
		if err != nil || binary.BigEndian.Uint64(v) != 1+added[k].Load() {
			t.Errorf("key %d: %x after %d increments (%v)", k, v, added[k].Load(), err)
		}
	}
}

// Closing a snapshot never waits for a manifest, even if it is the oldest one.
func TestCloseOfTheOldestSnapshotDoesNotWait(t *testing.T) {
	e := mustOpen(t, t.TempDir(), Options{Relaxed: true})
	s := kvtest.Snapshot(t, e)
	if _, err := s.Has([]byte("a")); err != nil {
		t.Fatal(err)
	}
	it, err := s.Iter([]byte("a"), []byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	e.work.begin()
	e.closing.mu.Lock() // the closer can't continue, as if it waited for the store
	e.closing.running = true
	e.closing.mu.Unlock()
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(e.closing.waiting); n != 2 {
		t.Fatalf("%d are left to the closer", n)
	}
	e.work.end()
	go e.closing.run()
	if err := e.Close(); err != nil { // waits for them
		t.Fatal(err)
	}
}

// Flushes and compactions are counted, and what was opened before them is closed in the background.
func TestWorkIsFollowed(t *testing.T) {
	e := mustOpen(t, t.TempDir(), Options{Relaxed: true})
	defer e.Close()
	from := e.work.events.Load()
	if e.work.since(from) {
		t.Fatal("an idle store works")
	}
	if err := e.db.Set([]byte("a"), []byte("1"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := e.db.Compact(context.Background(), []byte("a"), []byte("z"), false); err != nil {
		t.Fatal(err)
	}
	if !e.work.since(from) || e.work.events.Load()-from < 2 {
		t.Errorf("%d events", e.work.events.Load()-from)
	}
	for e.work.running.Load() != 0 {
		time.Sleep(time.Millisecond)
	}
}
