package pebblekv

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ballast is a file that holds room. When the file system refuses to write it is removed, and what was refused is tried
// again (vfs.OnDiskFull): a log that can't be written would end the process. It is made again when there is more than
// enough room.
type ballast struct {
	path string
	size int64 // of a whole one; 0: none is made

	mu    sync.Mutex
	there bool
}

// ballastName is a file in the store's directory.
const ballastName = "ballast"

// find looks whether a ballast is there.
func (b *ballast) find(fs vfs.FS) {
	_, err := fs.Stat(b.path)
	b.there = err == nil
}

// held is what a ballast gives when it is dropped.
func (b *ballast) held() int64 {
	if !b.there {
		return 0
	}
	return b.size
}

// drop removes the ballast, and reports whether there was one.
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

// fill makes the ballast when there is none. A failure leaves none: the next look at the disk tries again.
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
