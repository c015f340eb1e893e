package pebblekv

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ballast is a file that reserves disk space. When the file system is full, the file is removed and the failed write is
// tried again (vfs.OnDiskFull), because a log that can't be written ends the process. The file is made again when
// enough space is free.
type ballast struct {
	path string
	size int64 // of the complete file; 0: there is no ballast

	mu    sync.Mutex
	there bool
}

// ballastName is a file in the store's directory.
const ballastName = "ballast"

// find looks for an existing ballast.
func (b *ballast) find(fs vfs.FS) {
	_, err := fs.Stat(b.path)
	b.there = err == nil
}

// held is the space that dropping the ballast frees.
func (b *ballast) held() int64 {
	if !b.there {
		return 0
	}
	return b.size
}

// drop removes the ballast, and reports whether it existed.
func (b *ballast) drop(fs vfs.FS) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.there
	b.there = false
	if err := fs.Remove(b.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false
	}
	return was
}

// fill makes the ballast if there is none. If it fails there is none, and the next measurement tries again.
func (b *ballast) fill(d *disk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.there || b.size == 0 || !d.running.Load() {
		return
	}
	if err := b.write(d.fs); err != nil {
		_ = d.fs.Remove(b.path)
		return
	}
	b.there = true
	d.space.free.Add(-b.size)
}

func (b *ballast) write(fs vfs.FS) error {
	f, err := fs.Create(b.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if runtime.GOOS == "linux" { // elsewhere Pebble's Preallocate does nothing
		err = f.Preallocate(0, b.size)
	} else {
		zeros := make([]byte, 1<<20)
		for n := b.size; n > 0 && err == nil; n -= int64(len(zeros)) {
			_, err = f.Write(zeros[:min(n, int64(len(zeros)))])
		}
	}
	return errors.Join(err, f.Close())
}
