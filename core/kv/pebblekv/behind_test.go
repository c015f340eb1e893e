package pebblekv

import (
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// TestReadsAreNeverFarBehind: writers write without pauses to a disk that is too slow for the merges. A read never has
// to search more than 20 runs, and the compaction debt stays below the size of the levels.
func TestReadsAreNeverFarBehind(t *testing.T) {
	const most = 20
	slow := slowFS{vfs.NewMem(), func(name string) bool { return strings.HasSuffix(name, ".sst") },
		15 * time.Millisecond, 0}
	e := mustOpen(t, "db", Options{FS: slow, MemTableMB: 1, Relaxed: true})
	var over atomic.Bool
	var batches atomic.Uint64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !over.Load() {
				n := batches.Add(1)
				var b kv.Batch
				for i := range uint64(100) {
					b.Put(binary.BigEndian.AppendUint64(nil, (n*100+i)*0x9e3779b97f4a7c15), make([]byte, 500))
				}
				if _, err := e.Write(context.Background(), &b, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var runs, behind int64
	begun := time.Now() // on a slow machine it takes longer until the disk is too slow
	for ; time.Since(begun) < 3*time.Second || (runs < mergeRuns || behind == 0) &&
		time.Since(begun) < time.Minute; time.Sleep(5 * time.Millisecond) {
		m := e.Metrics()
		runs, behind = max(runs, m.Runs), max(behind, e.pace.steps())
		if m.CompactionDebt > 2*m.DiskBytes {
			t.Errorf("%d bytes must be merged in a store of %d", m.CompactionDebt, m.DiskBytes)
		}
	}
	over.Store(true)
	wg.Wait()
	t.Logf("%d batches, up to %d runs, up to %d steps behind", batches.Load(), runs, behind)
	if runs > most {
		t.Errorf("up to %d runs, want %d", runs, most)
	}
	if runs < mergeRuns || behind == 0 {
		t.Error("the disk kept up: this tests nothing")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
