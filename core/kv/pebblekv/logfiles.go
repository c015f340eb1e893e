package pebblekv

import (
	"math"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFiles is a file system that gives logs their room in steps. A sync of a file that has grown also has to write the
// file's new size and the place of its new blocks, which takes as long again as to write the data. So a log is
// lengthened by some zeros at a time, and most syncs find that the batches before them have only replaced zeros:
//
//	batch of 3,000 bytes  written at      0, zeros from  3,000 to 19,384   the sync writes the file's size
//	batch of 3,000 bytes  written at  3,000                                the sync writes data alone
//	..
//	batch of 3,000 bytes  written at 18,000, zeros from 21,000 to 42,000   the sync writes the file's size
//
// Zeros at the end of a log are read as its end, as they are after a crash. Pebble would reserve the room of a whole
// memtable for each log instead. That room has no zeros in it, so the place of what is written there has to be synced
// all the same; and a new store, which makes several logs for its first small memtables, would hold 90 MiB of disk.
type logFiles struct{ vfs.FS }

// walCategory is how Pebble calls a log that it makes. Copies of logs, for a backup, are of no category.
const walCategory = "pebble-wal"

// Create implements vfs.FS.
func (fs logFiles) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err != nil || c != walCategory {
		return f, err
	}
	return &logFile{File: f}, nil
}

// Unwrap implements vfs.FS.
func (fs logFiles) Unwrap() vfs.FS { return fs.FS }

// A log is lengthened by as much as it holds, within these limits: small logs hold few zeros, and large ones grow in
// steps that cost a write nothing that can be noticed.
const (
	minAhead = 16 << 10
	maxAhead = 1 << 20
)

var zeros [maxAhead]byte

// logFile is a log that is written from its beginning to its end.
type logFile struct {
	vfs.File
	written, size int64
}

// Write implements vfs.File. That there is no room for zeros is no error: a write that has none itself will tell.
func (f *logFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	if err != nil || f.written <= f.size {
		return n, err
	}
	ahead := min(max(f.written, minAhead), maxAhead)
	if _, err := f.File.WriteAt(zeros[:ahead], f.written); err != nil {
		f.size = math.MaxInt64
	} else {
		f.size = f.written + ahead
	}
	return n, nil
}

// Preallocate implements vfs.File.
func (*logFile) Preallocate(_, _ int64) error { return nil }
