package pebblekv

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// heldFS is a disk that can be made busy: syncs of the files that held selects then wait.
type heldFS struct {
	vfs.FS
	held func(name string) bool
	busy sync.RWMutex // locked while the disk is busy
}

func (fs *heldFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return fs.hold(name, f, err)
}

func (fs *heldFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return fs.hold(name, f, err)
}

func (fs *heldFS) hold(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !fs.held(name) {
		return f, err
	}
	return &heldFile{f, fs}, nil
}

type heldFile struct {
	vfs.File
	fs *heldFS
}

func (f *heldFile) Sync() error {
	f.fs.busy.RLock()
	defer f.fs.busy.RUnlock()
	return f.File.Sync()
}

func (f *heldFile) SyncData() error { return f.Sync() }

// writePair writes batch i: two keys, a kilobyte together.
func writePair(t testing.TB, e *Engine, i int) {
	var b kv.Batch
	b.Put(fmt.Appendf(nil, "a%06d", i), make([]byte, 900))
	b.Put(fmt.Appendf(nil, "b%06d", i), []byte("1"))
	if _, err := e.Write(context.Background(), &b, nil); err != nil {
		t.Error(err)
	}
}

// pairs counts the batches of the store. They must be complete, and the first ones that were written.
func pairs(t testing.TB, e *Engine) int {
	t.Helper()
	it, err := e.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var n [2]int
	for ok := it.First(); ok; ok = it.Next() {
		half := it.Key()[0] - 'a'
		if want := fmt.Sprintf("%c%06d", 'a'+half, n[half]); string(it.Key()) != want {
			t.Fatalf("%s comes where %s should", it.Key(), want)
		}
		n[half]++
	}
	if err := it.Error(); err != nil || n[0] != n[1] {
		t.Fatalf("halves of batches: %d and %d, %v", n[0], n[1], err)
	}
	return n[0]
}

// waitsFor reports whether f returns only when the disk is no longer busy.
func waitsFor(fs *heldFS, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	waits := true
	select {
	case <-done:
		waits = false
	case <-time.After(30 * time.Millisecond):
	}
	fs.busy.Unlock()
	<-done
	return waits
}
