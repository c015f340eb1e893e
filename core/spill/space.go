// Package spill keeps state that is too large for memory in temporary files: sorted runs, which are merged when they
// are read. It knows no query and no language. Its user says how an element is encoded and compared.
//
// Example: a sort holds rows until its share of the memory is used. It sorts them and calls Runs.Write, forgets them
// and goes on. At the end Runs.Merge gives the rows of all runs in order.
//
// Nothing in these files outlives the process. They are never synced. Where the system allows, a file loses its name
// as soon as it is created, so that a crash leaves nothing behind; elsewhere Open removes what it finds.
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

// Space is where temporary files are, and how many bytes they may have together. A nil Space takes no files: nothing
// is spilled. Safe for concurrent use.
type Space struct {
	dir     string
	o       Options
	used    atomic.Int64 // bytes of all files
	files   atomic.Int64
	written atomic.Int64 // bytes since the start
	unasked atomic.Int64 // bytes written since Options.Room was asked
}

// Options of a Space.
type Options struct {
	// Limit is how many bytes all files may have; 0 = as many as the disk takes.
	Limit int64
	// Room returns how many bytes may be written before the disk has no room for more important things. nil = the disk
	// itself refuses.
	Room func() int64
	// Wrap changes the files; for tests that need a disk that fails. nil = none.
	Wrap func(File) File
}

// File is what a Space needs of a file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// Names of files: in a directory of its own, and beside others in the system's directory for temporary files.
const (
	prefix  = "orrery-"
	suffix  = ".run"
	pattern = prefix + "*" + suffix
)

// roomStep is how many bytes are written before Options.Room is asked again.
const roomStep = 256 << 10

// Open returns a space in a directory of its own. It creates the directory, and removes files that a process before
// has left in it. No other process may use the directory.
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

// Used is the number of bytes that the files have now.
func (s *Space) Used() int64 {
	if s == nil {
		return 0
	}
	return s.used.Load()
}

// Files is the number of files that are open.
func (s *Space) Files() int64 {
	if s == nil {
		return 0
	}
	return s.files.Load()
}

// Written is the number of bytes that were written since the start.
func (s *Space) Written() int64 {
	if s == nil {
		return 0
	}
	return s.written.Load()
}

// Spare returns how many bytes may still be written; the least answer of the limit and the disk. It is negative where
// nothing may, and very large where nobody knows.
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

// take reserves n bytes, or says why there is no room for them.
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
		s.unasked.Store(roomStep) // the next one asks again
		s.used.Add(-n)
		return full(nil)
	}
	return nil
}

// full is the error of a disk without room.
func full(cause error) error {
	const text = "The server's disk has no room for the temporary files of a query."
	if cause == nil {
		return status.New(status.StoreFull, text)
	}
	return status.Wrap(status.StoreFull, cause, text)
}

// file is one temporary file, written from its beginning to its end and read anywhere.
type file struct {
	s    *Space
	f    File
	name string // "" when the file has none any more
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

// append writes b behind what is there.
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

// damaged is the error of a run that isn't what was written.
func damaged(format string, args ...any) error {
	return status.New(status.Corruption, "A temporary file of a query is damaged: %s.", fmt.Sprintf(format, args...))
}
