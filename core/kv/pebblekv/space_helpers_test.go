package pebblekv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/internal/testlog"
)

// smallFS is a file system in memory of a given size. Other programs may use a part of it.
type smallFS struct {
	vfs.FS
	mu     sync.Mutex
	total  int64
	others int64
	sizes  map[string]int64
}

func newSmallFS(total int64) *smallFS {
	return &smallFS{FS: vfs.NewMem(), total: total, sizes: map[string]int64{}}
}

func (fs *smallFS) used() (n int64) {
	for _, s := range fs.sizes {
		n += s
	}
	return n + fs.others
}

// take lets other programs use all but left bytes.
func (fs *smallFS) take(left int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.others = 0
	fs.others = fs.total - left - fs.used()
}

// give lets other programs use nothing.
func (fs *smallFS) give() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.others = 0
}

// hasBallast reports whether the ballast has its full size.
func (fs *smallFS) hasBallast() bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.sizes["store/"+ballastName] > 0
}

// grow extends a file to end bytes if there is space.
func (fs *smallFS) grow(name string, end int64) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if more := end - fs.sizes[name]; more > 0 {
		if fs.used()+more > fs.total {
			return syscall.ENOSPC
		}
		fs.sizes[name] = end
	}
	return nil
}

func (fs *smallFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	free := uint64(max(0, fs.total-fs.used()))
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: uint64(fs.total), UsedBytes: uint64(fs.total) - free}, nil
}

func (fs *smallFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	fs.mu.Lock()
	delete(fs.sizes, name)
	fs.mu.Unlock()
	return &smallFile{File: f, fs: fs, name: name}, nil
}

func (fs *smallFS) Remove(name string) error {
	err := fs.FS.Remove(name)
	if err == nil {
		fs.mu.Lock()
		delete(fs.sizes, name)
		fs.mu.Unlock()
	}
	return err
}

func (fs *smallFS) Rename(from, to string) error {
	err := fs.FS.Rename(from, to)
	if err == nil {
		fs.mu.Lock()
		fs.sizes[to] = fs.sizes[from]
		delete(fs.sizes, from)
		fs.mu.Unlock()
	}
	return err
}

type smallFile struct {
	vfs.File
	fs   *smallFS
	name string
	end  int64
}

func (f *smallFile) Preallocate(at, n int64) error { return f.fs.grow(f.name, at+n) }

func (f *smallFile) Write(p []byte) (int, error) {
	if err := f.fs.grow(f.name, f.end+int64(len(p))); err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	f.end += int64(n)
	return n, err
}

// lines is a log that can be read while it is written.
type lines struct{ testlog.Lines }

func (l *lines) logger() *slog.Logger  { return l.Logger() }
func (l *lines) text() string          { return l.String() }
func (l *lines) count(what string) int { return l.Count(what) }

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// mustFail returns an Options.Fatal for stores that must not fail.
func mustFail(t *testing.T) func(error) {
	return func(err error) { t.Errorf("the process would have ended: %v", err) }
}

// put writes one value and waits for it.
func put(e *Engine, key string, val []byte) error {
	var b kv.Batch
	b.Put([]byte(key), val)
	return commitNow(e, &b)
}

// del deletes keys and returns the error.
func del(e *Engine, keys ...string) error {
	b := kv.Batch{Frees: true}
	for _, k := range keys {
		b.Delete([]byte(k))
	}
	return commitNow(e, &b)
}

func commitNow(e *Engine, b *kv.Batch) error {
	w, err := e.Write(context.Background(), b, nil)
	if err != nil {
		return err
	}
	return w.Wait()
}

// fillUp writes values of 10 KB that don't compress until there are most, or until they are refused for longer than a
// merge runs. It returns their number and the refusal.
func fillUp(e *Engine, most int) (n int, err error) { return fillUpWith(e, most, keyName) }

// fillUpWith is fillUp with other keys.
func fillUpWith(e *Engine, most int, key func(int) string) (n int, err error) {
	r := rand.New(rand.NewPCG(1, 2))
	val := make([]byte, 10<<10)
	var refused time.Time
	for n < most {
		for i := 0; i < len(val); i += 8 {
			binary.LittleEndian.PutUint64(val[i:], r.Uint64())
		}
		if err = put(e, key(n), val); err == nil {
			n, refused = n+1, time.Time{}
			continue
		}
		if refused.IsZero() {
			refused = time.Now()
		}
		if !errors.Is(err, kv.ErrFull) || time.Since(refused) > 500*time.Millisecond {
			return n, err
		}
		time.Sleep(time.Millisecond)
	}
	return n, nil
}

func keyName(n int) string { return fmt.Sprintf("k%06d", n) }

// scattered returns the same keys in another order, in which neighbours are far apart.
func scattered(n int) string { return keyName(n * 7919 % 1000000) }

// count reads all values.
func count(t *testing.T, e *Engine) (n int) {
	t.Helper()
	s := kvtest.Snapshot(t, e)
	defer s.Close()
	it, err := s.Iter([]byte("k"), []byte("l"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

func is(e *Engine, s kv.State) func() bool {
	return func() bool { return e.Health().State == s }
}

// holdMerges prevents merges until the result is called.
func holdMerges(t *testing.T, e *Engine) (release func()) {
	t.Helper()
	var held *tree
	eventually(t, "no merge begins", func() bool { held = e.pace.tree.Swap(nil); return held != nil })
	return func() { e.pace.open(held) }
}
