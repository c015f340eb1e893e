package kv

import (
	"context"
	"time"
)

// Backuper is an Engine whose store can be copied while requests go on.
type Backuper interface {
	// Backup copies the store into a new directory in the directory to, an absolute path. The copy has every write that
	// had returned before the call, and no part of a batch. The errors are of type *Refusal; their sentences are for
	// the operator. If a call fails, the next one continues with the files that it has copied.
	Backup(ctx context.Context, to string, o BackupOptions) (Backup, error)
}

// BackupOptions are the name and the time of a backup.
type BackupOptions struct {
	Name     string // of the new directory, see core/kv/pebblekv/backup.Name
	Taken    time.Time
	Progress func(done, total int64) // bytes of the store's files; may be nil
}

// Backup is a copy of a store.
type Backup struct {
	Path   string `json:"path"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`       // of all files
	Copied int64  `json:"copiedBytes"` // in files that were written for this backup
	Linked int64  `json:"linkedBytes"` // hard links to the store's own tables
	Shared int64  `json:"sharedBytes"` // hard links to tables of the previous backup
}
