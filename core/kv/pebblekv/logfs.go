package pebblekv

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logChunk is how much disk a log asks for at a time, in bytes.
const logChunk = 4 << 20

const logSuffix = ".log"

func isLog(name string) bool { return strings.HasSuffix(name, logSuffix) }

// logFS makes logs grow in small steps. Pebble has a log allocate room for a whole memtable when it is made; a store begins
// with several logs, because its first memtables are small, so a few documents would hold 180 MiB of disk.
//
// In a relaxed store it leaves to late what Pebble does to logs with its commits locked.
type logFS struct {
	vfs.FS
	late *lateLogs // nil: logs are synced, closed and named when Pebble says so
}

// Create implements vfs.FS.
func (fs logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !isLog(name) {
		return fs.FS.Create(name, category)
	}
	if fs.late != nil {
		return fs.late.create(name, category)
	}
	f, err := fs.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return &logFile{File: f}, nil
}

// Open implements vfs.FS: a checkpoint reads logs.
func (fs logFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	fs.settle(name)
	return fs.FS.Open(name, o...)
}

// Link implements vfs.FS.
func (fs logFS) Link(oldname, newname string) error {
	fs.settle(oldname)
	return fs.FS.Link(oldname, newname)
}

// Remove implements vfs.FS.
func (fs logFS) Remove(name string) error {
	fs.settle(name)
	return fs.FS.Remove(name)
}

// settle waits until a log has its name, and so has the one behind it, when that was made before.
func (fs logFS) settle(name string) {
	if fs.late != nil && isLog(name) {
		fs.late.settle()
	}
}

// OpenDir implements vfs.FS.
func (fs logFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil || fs.late == nil {
		return f, err
	}
	return &lateDir{File: f, late: fs.late}, nil
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
		_ = f.File.Preallocate(f.allocated, logChunk) // the write itself says whether there is room
		f.allocated += logChunk
	}
	n, err := f.File.Write(p)
	f.end += int64(n)
	return n, err
}
