package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/internal/race"
)

func mustOpen(t testing.TB, dir string, o Options) *Engine {
	t.Helper()
	e, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// everyKey makes the engine cache the values of all keys.
func everyKey([]byte) bool { return true }

func TestContract(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		o    Options
	}{
		{"default", Options{}},
		// flushes and compactions run during the suite
		{"tiny memtable", Options{MemTableMB: 1, CacheMB: 1, BlockKB: 1}},
		{"few values kept", Options{Kept: everyKey, CacheMB: 1, MemTableMB: 1, Relaxed: true}},
		{"values kept", Options{Kept: everyKey}},
		{"relaxed", Options{Relaxed: true}},
	}[:race.Fewer(5, 3)] {
		t.Run(tc.name, func(t *testing.T) {
			kvtest.Run(t, func(t *testing.T) kv.Engine { return mustOpen(t, t.TempDir(), tc.o) })
		})
	}
}

func TestCheckpoint(t *testing.T) {
	kvtest.RunCheckpoint(t, func(t *testing.T) kv.Engine { return mustOpen(t, t.TempDir(), Options{}) },
		func(t *testing.T, dir string) kv.Engine { return mustOpen(t, dir, Options{}) })
}

func TestSecondServerIsRefused(t *testing.T) {
	dir := t.TempDir()
	e := mustOpen(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, dir, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedStoreIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := mustOpen(t, dir, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal("no manifest", err)
	}
	for _, m := range manifests {
		if err := os.WriteFile(m, []byte(strings.Repeat("rubbish", 100)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, kv.ErrCorruption) {
		t.Fatalf("open: %v", err)
	}
}

// A machine that loses everything unsynced keeps what Wait has acknowledged, and each batch completely or not at all.
func TestWaitMeansDurable(t *testing.T) {
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, "db", Options{FS: fs})
	const writers, each = 4, 50
	var acked sync.Map
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				var b kv.Batch
				id := fmt.Sprintf("%d-%d", w, i)
				b.Put([]byte("a"+id), []byte("1"))
				b.Put([]byte("b"+id), []byte("1"))
				c, err := e.Write(context.Background(), &b, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if i%3 != 0 { // the others are visible, but no one was told that they are durable
					if err := c.Wait(); err != nil {
						t.Error(err)
					}
					acked.Store(id, true)
				}
			}
		})
	}
	wg.Wait()
	after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 30, RNG: rand.New(rand.NewPCG(3, 4))})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, "db", Options{FS: after})
	defer r.Close()
	s := kvtest.Snapshot(t, r)
	defer s.Close()
	for w := range writers {
		for i := range each {
			id := fmt.Sprintf("%d-%d", w, i)
			a, errA := s.Has([]byte("a" + id))
			b, errB := s.Has([]byte("b" + id))
			if errA != nil || errB != nil || a != b {
				t.Fatalf("%s is half there: %v %v %v %v", id, a, b, errA, errB)
			}
			if _, ok := acked.Load(id); ok && !a {
				t.Fatalf("%s was acknowledged and is lost", id)
			}
		}
	}
}

func TestCloseWithAnOpenSnapshotKeepsData(t *testing.T) {
	defer func(d time.Duration) { closeGrace = d }(closeGrace)
	closeGrace = 10 * time.Millisecond
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, "db", Options{FS: fs, Relaxed: true})
	var b kv.Batch
	b.Put([]byte("k"), []byte("v"))
	if _, err := e.Write(context.Background(), &b, nil); err != nil {
		t.Fatal(err)
	}
	s := kvtest.Snapshot(t, e)
	if err := e.Close(); !errors.Is(err, kv.ErrContract) {
		t.Fatalf("close: %v", err)
	}
	if v, err := s.Get(nil, []byte("k")); err != nil || string(v) != "v" {
		t.Fatalf("the snapshot is still usable: %q %v", v, err)
	}
	r := mustOpen(t, "db", Options{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	defer r.Close()
	if v, err := r.Get(context.Background(), nil, []byte("k")); err != nil || string(v) != "v" {
		t.Fatalf("lost: %q %v", v, err)
	}
}
