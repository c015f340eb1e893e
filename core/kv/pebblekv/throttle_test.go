package pebblekv

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

func TestThrottleDelays(t *testing.T) {
	const ms = time.Millisecond
	type batch struct {
		full int64
		at   time.Duration // ms
		kb   int
	}
	for _, tc := range []struct {
		name    string
		batches []batch
		want    []time.Duration
	}{
		{"one is being flushed", []batch{{1, 0, 1e6}, {1, 0, 1e6}, {0, 0, 1e6}}, []time.Duration{0, 0, 0}},
		{"the first pays nothing, the next ones for those before", []batch{{2, 0, 250}, {2, 0, 250}, {2, 0, 250}, {2, 0, 250}}, []time.Duration{0, ms, 2 * ms, 3 * ms}},
		{"who comes later has waited", []batch{{2, 0, 250}, {2, 4, 250}, {2, 4, 250}}, []time.Duration{0, 0, ms}},
		{"dearer by the memtable", []batch{{3, 0, 100}, {4, 0, 100}, {5, 0, 100}, {5, 0, 1}},
			[]time.Duration{0, 1500 * time.Microsecond, 6500 * time.Microsecond, 18500 * time.Microsecond}},
		{"more than there can be", []batch{{9, 0, 100}, {9, 0, 1}}, []time.Duration{0, 12 * ms}},
		{"what is too short for a sleep is owed", []batch{{2, 0, 25}, {2, 0, 25}, {2, 0, 25}}, []time.Duration{0, 0, 200 * time.Microsecond}},
		{"nobody waits long, whatever others wrote", []batch{{5, 0, 1e6}, {5, 0, 1}, {5, 150, 1}, {5, 200, 1}}, []time.Duration{0, 100 * ms, 50 * ms, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			th := throttle{size: 1 << 20}
			var got []time.Duration
			for _, b := range tc.batches {
				th.full.Store(b.full<<20 - 1000)
				got = append(got, th.delay(b.kb*1000, b.at*ms))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got  %v\nwant %v", got, tc.want)
			}
		})
	}
}

// The count of full memtables follows the store: it grows while the disk holds up a flush, and is right again after it, whatever
// filled them.
func TestThrottleCountsMemtables(t *testing.T) {
	mem := vfs.NewMem()
	fs := &heldFS{FS: mem, held: func(name string) bool { return strings.HasSuffix(name, ".sst") }}
	for _, fresh := range []bool{true, false} { // the second time there is a log to replay
		e := mustOpen(t, "db", Options{FS: fs, MemTableMB: 1, Relaxed: true})
		if n := e.throttle.full.Load(); n != 0 {
			t.Errorf("%d bytes of full memtables after opening", n)
		}
		fs.busy.Lock()
		for i := 0; e.throttle.full.Load() < 3<<20; i++ {
			if i == 20_000 {
				t.Fatal("no memtable is ever full")
			}
			writePair(t, e, i)
		}
		var large kv.Batch // it becomes a memtable of its own
		large.Put([]byte("large"), make([]byte, 3<<20))
		if _, err := e.Write(context.Background(), &large, nil); err != nil {
			t.Fatal(err)
		}
		fs.busy.Unlock()
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(20 * time.Second); e.throttle.full.Load() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d bytes of full memtables, but all are flushed", e.throttle.full.Load())
			}
		}
		if fresh {
			writePair(t, e, 0)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
