package pebblekv

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logChunk is how much disk a log asks for at a time, in bytes.
const logChunk = 4 << 20

// logFS makes logs grow in small steps. Pebble has a log allocate room for a whole memtable when it is made; a store begins
// with several logs, because its first memtables are small, so a few documents would hold 180 MiB of disk.
type logFS struct{ vfs.FS }

// Create implements vfs.FS.
func (fs logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &logFile{File: f}, nil
}

// Unwrap implements vfs.FS.
func (fs logFS) Unwrap() vfs.FS { return fs.FS }

// logFile is a log that is written from its begin to its end, by one goroutine.
type logFile struct {
	vfs.File
	end, allocated int64
}

// Preallocate implements vfs.File: Write does it.
func (f *logFile) Preallocate(_, _ int64) error { return nil }

// Write implements vfs.File.
func (f *logFile) Write(p []byte) (int, error) {
	for f.end+int64(len(p)) > f.allocated {
		if err := f.File.Preallocate(f.allocated, logChunk); err != nil {
			return 0, err
		}
		f.allocated += logChunk
	}
	n, err := f.File.Write(p)
	f.end += int64(n)
	return n, err
}
