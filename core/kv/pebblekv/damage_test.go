package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/internal/race"
	"github.com/orrerydb/orrery/internal/testlog"
)

// Whichever block of a table is damaged, an examination names the block and its file. An open store fails requests that
// need the block, reports that it is damaged, logs the file's name, and continues with everything else.
func TestDamagedBlocks(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	whole, table, blocks := mergedStore(t)
	for name, b := range blocks {
		t.Run(name, func(t *testing.T) {
			dir := damagedCopy(t, whole, table, b)
			before := fingerprint(t, dir)
			var found []string
			e, err := Examine(context.Background(), dir, Options{CacheMB: 1},
				Watch{Report: func(p Problem) { found = append(found, p.String()) }})
			if err != nil {
				t.Fatal(err)
			}
			if e != nil {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if all := strings.Join(found, "\n"); !strings.Contains(all, table) || len(found) == 0 {
				t.Errorf("found %q", found)
			}
			if fingerprint(t, dir) != before {
				t.Error("the directory was changed")
			}
			serveDamagedBlock(t, dir, table, name)
		})
	}
}

// mergedStore makes a store with all keys in tables of the lowest level, so nothing is merged by itself. It returns the
// largest table, which has the first 2000 keys, and its first block of each kind.
func mergedStore(t *testing.T) (dir, table string, blocks map[string]tableBlock) {
	t.Helper()
	dir = t.TempDir()
	storeIn(t, dir)
	e := mustOpen(t, dir, Options{MemTableMB: 1})
	if err := e.db.Compact(context.Background(), []byte("a"), []byte("z"), false); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	removeAll(t, dir, closedName) // later writes aren't in the note of the last close
	p, err := partsOf(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	largest := int64(0)
	for _, f := range p.tables {
		if i, err := os.Stat(filepath.Join(dir, f.name)); err != nil {
			t.Fatal(err)
		} else if i.Size() > largest {
			table, largest = f.name, i.Size()
		}
	}
	r, err := openTable(context.Background(), vfs.Default, filepath.Join(dir, table))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := blocksOf(r)
	if err != nil {
		t.Fatal(err)
	}
	blocks = map[string]tableBlock{}
	for _, b := range all {
		name, _, _ := strings.Cut(b.Name, ".")
		if _, seen := blocks[name]; !seen {
			blocks[name] = b
		}
	}
	for _, kind := range []string{"data", "index", "filter", "properties"} {
		if _, seen := blocks[kind]; !seen {
			t.Fatalf("no %s block: %v", kind, blocks)
		}
	}
	return dir, table, blocks
}

// damagedCopy is a copy of a store with one bit flipped in a block of one of its tables.
func damagedCopy(t *testing.T, whole, table string, b tableBlock) string {
	t.Helper()
	dir := copyDir(t, whole)
	overwrite(t, dir, table, func(f []byte) []byte { f[b.Offset+b.Length/2] ^= 0x10; return f })
	return dir
}

// A merge of a damaged table either reports it, and the table stays, or it doesn't need the damaged block, and the
// damage is gone.
func TestMergesOfDamagedTables(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	whole, table, blocks := mergedStore(t)
	for name, b := range blocks {
		t.Run(name, func(t *testing.T) {
			dir := damagedCopy(t, whole, table, b)
			e := mustOpen(t, dir, Options{CacheMB: 1})
			defer e.Close()
			if err := put(e, "key 000000x", []byte("v")); err != nil { // so that there is something to merge
				t.Fatal(err)
			}
			err := e.db.Compact(context.Background(), []byte("a"), []byte("z"), false)
			_, there := os.Stat(filepath.Join(dir, table))
			if h := e.Health(); err != nil {
				if h.State != kv.Damaged || !strings.Contains(h.Reason, table) || there != nil {
					t.Errorf("the merge: %v; then %+v, %v", err, h, there)
				}
				return
			}
			if name == "data" || name == "index" {
				t.Error("a merge goes on without the " + name)
			}
			for i := range 2100 {
				if _, err := e.Get(context.Background(), nil, fmt.Appendf(nil, "key %06d", i)); err != nil {
					t.Fatalf("after a merge: key %d: %v", i, err)
				}
			}
		})
	}
}

func serveDamagedBlock(t *testing.T, dir, table, kind string) {
	var log testlog.Lines
	e := mustOpen(t, dir, Options{CacheMB: 1, Logger: log.Logger()})
	defer e.Close()
	failed := 0
	for i := 0; i < 2000; i += race.Fewer(1, 7) {
		key := fmt.Appendf(nil, "key %06d", i)
		v, err := e.Get(context.Background(), nil, key)
		if err == nil && !strings.HasPrefix(string(v), fmt.Sprintf("value %d ", i)) {
			t.Fatalf("key %d: %q", i, v)
		}
		if err != nil {
			failed++
			if !errors.Is(err, kv.ErrCorruption) {
				t.Fatalf("key %d: %v", i, err)
			}
		}
	}
	var b kv.Batch
	b.Put([]byte("key 000000x"), []byte("v"))
	c, err := e.Write(context.Background(), &b, []kv.Precondition{{Key: []byte("key 000000x"), Expect: kv.Absent}})
	if err == nil {
		err = c.Wait()
	} else {
		failed++
	}
	if err != nil && !errors.Is(err, kv.ErrCorruption) {
		t.Errorf("a create: %v", err)
	}
	b.Reset()
	b.Put([]byte("another"), []byte("v")) // this store has no damage
	if c, err = e.Write(context.Background(), &b, nil); err != nil || c.Wait() != nil {
		t.Errorf("another write: %v", err)
	}
	if kind == "filter" && failed == 0 {
		t.Error("the filter was not asked")
	}
	if h := e.Health(); failed > 0 && (h.State != kv.Damaged || !strings.Contains(h.Reason, table) ||
		!strings.Contains(log.String(), table)) {
		t.Errorf("%d failed: %+v\n%s", failed, h, log.String())
	}
	var found []string
	if err := e.ScrubFiles(context.Background(), func(int64) error { return nil }, func(p string) {
		found = append(found, p)
	}); err != nil || len(found) == 0 {
		t.Errorf("a scrub found %q, %v", found, err)
	}
	if h := e.Health(); h.State != kv.Damaged {
		t.Errorf("after a scrub: %+v", h)
	}
}

// The error says why a directory can't be locked.
func TestLockErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		says   string
		locked bool
	}{
		{&os.PathError{Op: "open", Path: "LOCK", Err: syscall.EROFS}, "the file system is read-only", false},
		{&os.PathError{Op: "open", Path: "LOCK", Err: syscall.EACCES}, "permission denied", false},
		{&os.PathError{Op: "open", Path: "LOCK", Err: syscall.ENOSPC}, "the disk is full", false},
		{syscall.EAGAIN, "", true},
		{syscall.EACCES, "", true},
		{errors.New("lock held by current process"), "", true},
	} {
		err := lockError("dir", c.err)
		if errors.Is(err, ErrLocked) != c.locked || errors.Is(err, kv.ErrUnavailable) == c.locked ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}

// stuckLog is a log on a disk that hangs.
type stuckLog struct{ begun, goOn chan struct{} }

func (l stuckLog) Write(p []byte) (int, error) {
	close(l.begun)
	<-l.goOn
	return len(p), nil
}

// Health returns while a log message is stuck on the damaged disk.
func TestHealthDoesNotWaitForTheLog(t *testing.T) {
	log := stuckLog{make(chan struct{}), make(chan struct{})}
	e := mustOpen(t, "db", Options{FS: vfs.NewMem(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	var wg sync.WaitGroup
	wg.Go(func() { e.damages.add("000007.sst", kv.ErrCorruption) })
	<-log.begun
	healthy := make(chan kv.Health, 1)
	wg.Go(func() { healthy <- e.Health() })
	select {
	case h := <-healthy:
		if h.State != kv.Damaged {
			t.Errorf("%+v", h)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits")
	}
	close(log.goOn)
	wg.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
