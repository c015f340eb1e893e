package pebblekv

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// hungFS is a disk that can hang: syncs of logs then wait.
type hungFS struct {
	vfs.FS
	mu sync.RWMutex // held while it hangs
}

func (fs *hungFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return hungFile{f, fs}, nil
}

type hungFile struct {
	vfs.File
	fs *hungFS
}

func (f hungFile) Sync() error {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.File.Sync()
}

func (f hungFile) SyncData() error { return f.Sync() }

// The disk doesn't respond for a while: those who wait for the log get an unknown outcome, later writers are refused,
// and everything continues when it responds.
func TestStalledDisk(t *testing.T) {
	fs, log := &hungFS{FS: vfs.NewMem()}, &lines{}
	e := mustOpen(t, "store", Options{FS: fs, Logger: log.logger(), Fatal: mustFail(t), Stall: time.Second})
	defer e.Close()
	if err := put(e, "k1", []byte("v")); err != nil {
		t.Fatal(err)
	}
	fs.mu.Lock()
	var b kv.Batch
	b.Put([]byte("k2"), []byte("v"))
	w, err := e.Write(t.Context(), &b, nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := w.Wait(); !errors.Is(err, kv.ErrUnknownOutcome) {
		t.Errorf("who waits: %v", err)
	}
	if took := time.Since(began); took < time.Second/2 {
		t.Errorf("given up after %v", took)
	}
	if h := e.Health(); h.State != kv.Stalled || !strings.Contains(h.Reason, "a sync of") {
		t.Errorf("health %+v", h)
	}
	for _, err := range []error{put(e, "k3", []byte("v")), del(e, "k1"),
		e.DropRange(t.Context(), []byte("a"), []byte("b"))} {
		if !errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("who comes: %v", err)
		}
	}
	if v, err := e.Get(context.Background(), nil, []byte("k1")); err != nil || string(v) != "v" {
		t.Errorf("a read: %q, %v", v, err)
	}
	fs.mu.Unlock()
	eventually(t, "health is well again", is(e, kv.Well))
	if err := w.Wait(); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if err := put(e, "k3", []byte("v")); err != nil {
		t.Error(err)
	}
	if got := count(t, e); got != 3 {
		t.Errorf("%d values are read", got)
	}
	if n := strings.Count(log.text(), "\n"); n != 2 {
		t.Errorf("%d lines of log:\n%s", n, log.text())
	}
}

// A disk that never responds again ends the process.
func TestDeadDisk(t *testing.T) {
	const limit = 200 * time.Millisecond
	fs, ended := &hungFS{FS: vfs.NewMem()}, make(chan error, 1)
	e := mustOpen(t, "store", Options{FS: fs, Fatal: func(err error) { ended <- err }, Stall: limit})
	fs.mu.Lock()
	defer fs.mu.Unlock()
	began := time.Now()
	if err := put(e, "k", []byte("v")); !errors.Is(err, kv.ErrUnknownOutcome) {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if took := time.Since(began); took < stallEnd*limit || !strings.Contains(err.Error(), "has not answered") {
			t.Errorf("after %v: %v", took, err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the process goes on")
	}
}

// An open that hangs ends the process, too.
func TestDeadDiskAtOpen(t *testing.T) {
	ended := make(chan error, 1)
	fs := &hungUsageFS{vfs.NewMem(), make(chan struct{})}
	t.Cleanup(func() { close(fs.hang) })
	go func() {
		_, _ = Open("store", Options{FS: fs, Fatal: func(err error) { ended <- err }, Stall: 100 * time.Millisecond})
	}()
	select {
	case err := <-ended:
		if !strings.Contains(err.Error(), "a look at the free space") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the process goes on")
	}
}

type hungUsageFS struct {
	vfs.FS
	hang chan struct{}
}

func (fs hungUsageFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	<-fs.hang
	return vfs.DiskUsage{}, vfs.ErrUnsupported
}

func BenchmarkStallBegin(b *testing.B) {
	var s stall
	for b.Loop() {
		s.end(s.begin("a sync of ", "a log"))
	}
}
