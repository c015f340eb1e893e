package pebblekv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// errReadOnly is the error of a write to a file system that is open for reading only.
var errReadOnly = errors.New("the store is open for reading only")

// readOnlyFS is a file system in which nothing can be changed.
type readOnlyFS struct{ vfs.FS }

// Create implements vfs.FS. Like all methods that would write, it fails.
func (readOnlyFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReadOnly }

// Link implements vfs.FS.
func (readOnlyFS) Link(string, string) error { return errReadOnly }

// OpenReadWrite implements vfs.FS.
func (readOnlyFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errReadOnly
}

// Remove implements vfs.FS.
func (readOnlyFS) Remove(string) error { return errReadOnly }

// RemoveAll implements vfs.FS.
func (readOnlyFS) RemoveAll(string) error { return errReadOnly }

// Rename implements vfs.FS.
func (readOnlyFS) Rename(string, string) error { return errReadOnly }

// ReuseForWrite implements vfs.FS.
func (readOnlyFS) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errReadOnly
}

// MkdirAll implements vfs.FS.
func (readOnlyFS) MkdirAll(string, os.FileMode) error { return errReadOnly }

// Unwrap implements vfs.FS.
func (fs readOnlyFS) Unwrap() vfs.FS { return fs.FS }

// Lock implements vfs.FS. The lock excludes writers and allows other readers. The file isn't changed. If there is no
// file, the directory was never opened for writing under this path, and no lock is needed.
func (fs readOnlyFS) Lock(name string) (io.Closer, error) {
	if vfs.Root(fs.FS) != vfs.Default { // in memory: no other process has it
		return io.NopCloser(nil), nil
	}
	if writers.has(filepath.Dir(name)) {
		return nil, errors.New("lock held by current process")
	}
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, err
	}
	if err := lockForReading(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// writers are the directories that this process has open for writing. The system's locks work between processes only.
// Within a process they are ignored, and closing any file handle of the lock's file would release the lock.
var writers dirs

type dirs struct {
	mu   sync.Mutex
	open map[string]bool
}

func absolute(dir string) string {
	if a, err := filepath.Abs(dir); err == nil {
		return a
	}
	return dir
}

func (d *dirs) add(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[string]bool{}
	}
	d.open[absolute(dir)] = true
}

func (d *dirs) remove(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, absolute(dir))
}

func (d *dirs) has(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[absolute(dir)]
}

// errReadOnlyFS is syscall.EROFS with a text like those of the other reasons.
var errReadOnlyFS error = readOnlyFSError{}

type readOnlyFSError struct{}

// Error implements error.
func (readOnlyFSError) Error() string { return "the file system is read-only" }

// Unwrap makes it syscall.EROFS.
func (readOnlyFSError) Unwrap() error { return syscall.EROFS }

// lockError says why a directory couldn't be locked.
func lockError(dir string, err error) error {
	var opening *os.PathError
	switch {
	case !errors.As(err, &opening):
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %s: %w", kv.ErrUnavailable, dir, errReadOnlyFS)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: %s: permission denied", kv.ErrUnavailable, dir)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %s: the disk is full", kv.ErrUnavailable, dir)
	}
	return fmt.Errorf("%w: %s: %w", ErrLocked, dir, err)
}

// LockDirectory makes a directory and locks it, as Open does with that of a store. The error is ErrLocked if somebody
// else has locked it. Closing the lock unlocks the directory.
func LockDirectory(dir string) (io.Closer, error) {
	if err := files.MakeDir(vfs.Default, dir); err != nil {
		return nil, claiming(err)
	}
	lock, err := pebble.LockDirectory(dir, vfs.Default)
	if err != nil {
		return nil, lockError(dir, err)
	}
	return lock, nil
}
