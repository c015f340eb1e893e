package pebblekv

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// slimLogs is a file system on which a log takes the room that it needs. Pebble has each log reserve that of a whole
// memtable when it is made. A new store makes several logs for its first small memtables, so a few documents would hold
// 90 MiB of disk.
type slimLogs struct{ vfs.FS }

// Create implements vfs.FS.
func (fs slimLogs) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return slimLog{f}, nil
}

// Unwrap implements vfs.FS.
func (fs slimLogs) Unwrap() vfs.FS { return fs.FS }

type slimLog struct{ vfs.File }

// Preallocate implements vfs.File.
func (slimLog) Preallocate(_, _ int64) error { return nil }
