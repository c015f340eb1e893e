// Package spill keeps state that is too large for memory in temporary files: sorted runs, which are merged when they
// are read. It knows no query and no language. Its user defines how an element is encoded and compared.
//
// Example: a sort holds rows until its share of the memory is used. It sorts them, calls Runs.Write, removes them from
// memory and continues. At the end Runs.Merge gives the rows of all runs in order.
//
// The files are of no use after the process has ended. They are never synced. Where the system allows it, a file loses
// its name as soon as it is created, so a crash leaves no files. Elsewhere Open removes the files that it finds.
package spill

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/orrerydb/orrery/core/status"
)

// Space is a place for temporary files, with a limit of their total size. A nil Space takes no files: nothing is
// spilled. It is safe for concurrent use.
type Space struct {
	dir     string
	o       Options
	used    atomic.Int64 // bytes of all files
	files   atomic.Int64
	written atomic.Int64 // bytes since the start
	unasked atomic.Int64 // bytes written since the last call of Options.Room
}

// Options of a Space.
type Options struct {
	// Limit is the number of bytes that all files together may have; 0 = limited by the disk only.
	Limit int64
	// Room returns the number of bytes that may be written while the disk keeps enough room for more important data.
	// nil = only the disk refuses.
	Room func() int64
	// Wrap replaces files, for tests that need a failing disk. nil = none.
	Wrap func(File) File
}

// File has the operations on a file that a Space needs.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// Names of files: in the Space's own directory, and in the system's directory for temporary files.
const (
	prefix  = "orrery-"
	suffix  = ".run"
	pattern = prefix + "*" + suffix
)

// roomStep is the number of bytes that are written between two calls of Options.Room.
const roomStep = 256 << 10

// Open returns a Space in its own directory. It creates the directory, and removes files that an earlier process has
// left there. No other process may use the directory.
func Open(dir string, o Options) (*Space, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range left {
		if strings.HasSuffix(e.Name(), suffix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return &Space{dir: dir, o: o}, nil
}

// Temp returns a space in the system's directory for temporary files, which other processes use too.
func Temp(o Options) *Space { return &Space{dir: os.TempDir(), o: o} }

// Used returns the current size of the files in bytes.
func (s *Space) Used() int64 {
	if s == nil {
		return 0
	}
	return s.used.Load()
}

// Files returns the number of open files.
func (s *Space) Files() int64 {
	if s == nil {
		return 0
	}
	return s.files.Load()
}

// Written returns the number of bytes that were written since the start.
func (s *Space) Written() int64 {
	if s == nil {
		return 0
	}
	return s.written.Load()
}

// Spare returns the number of bytes that may still be written: the smaller value of limit and disk. It is negative if
// nothing may be written, and very large if there is no limit.
func (s *Space) Spare() int64 {
	n := int64(1) << 62
	if s.o.Limit > 0 {
		n = s.o.Limit - s.used.Load()
	}
	if s.o.Room != nil {
		n = min(n, s.o.Room())
	}
	return n
}

// take reserves n bytes, or returns the error why there is no room for them.
func (s *Space) take(n int64) error {
	if used := s.used.Add(n); s.o.Limit > 0 && used > s.o.Limit {
		s.used.Add(-n)
		return status.New(status.StoreFull, "The temporary files of the server's queries may have %d bytes, and a "+
			"query needs more.", s.o.Limit)
	}
	if s.o.Room == nil || s.unasked.Add(n) < roomStep {
		return nil
	}
	s.unasked.Store(0)
	if s.o.Room() < n {
		s.unasked.Store(roomStep) // the next call asks again
		s.used.Add(-n)
		return full(nil)
	}
	return nil
}

// full is the error for a disk without room.
func full(cause error) error {
	const text = "The server's disk has no room for the temporary files of a query."
	if cause == nil {
		return status.New(status.StoreFull, text)
	}
	return status.Wrap(status.StoreFull, cause, text)
}

// file is one temporary file. It is written in sequence and read at any offset.
type file struct {
	s    *Space
	f    File
	name string // "" when the file has no name any more
	size int64
}

func (s *Space) create() (*file, error) {
	f, err := os.CreateTemp(s.dir, pattern)
	if err != nil {
		return nil, translate(err)
	}
	s.files.Add(1)
	out := &file{s: s, f: f, name: f.Name()}
	if os.Remove(out.name) == nil {
		out.name = ""
	}
	if s.o.Wrap != nil {
		out.f = s.o.Wrap(f)
	}
	return out, nil
}

// append writes b at the end.
func (f *file) append(b []byte) error {
	n := int64(len(b))
	if err := f.s.take(n); err != nil {
		return err
	}
	if _, err := f.f.WriteAt(b, f.size); err != nil {
		f.s.used.Add(-n)
		return translate(err)
	}
	f.s.written.Add(n)
	f.size += n
	return nil
}

// clear removes all bytes.
func (f *file) clear() error {
	if err := f.f.Truncate(0); err != nil {
		return translate(err)
	}
	f.s.used.Add(-f.size)
	f.size = 0
	return nil
}

func (f *file) close() {
	_ = f.f.Close()
	if f.name != "" {
		_ = os.Remove(f.name)
	}
	f.s.used.Add(-f.size)
	f.s.files.Add(-1)
	f.size = 0
}

// translate turns an error of the file system into one for clients.
func translate(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, errQuota) {
		return full(err)
	}
	return status.Wrap(status.Unavailable, err, "A temporary file of a query failed.")
}

// damaged is the error for a run that differs from what was written.
func damaged(format string, args ...any) error {
	return status.New(status.Corruption, "A temporary file of a query is damaged: %s.", fmt.Sprintf(format, args...))
}
