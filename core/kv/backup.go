package kv

import (
	"context"
	"time"
)

// Backuper is an Engine whose store can be copied while it is used.
type Backuper interface {
	// Backup copies the store into a new directory below to, which is absolute: everything whose Write had returned
	// before, and no part of a batch. Its errors are a *Refusal, whose sentence is for the operator. What an ended
	// call leaves is used by the next one.
	Backup(ctx context.Context, to string, o BackupOptions) (Backup, error)
}

// BackupOptions say what a backup is called.
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
	Copied int64  `json:"copiedBytes"` // of them: written for this backup
	Linked int64  `json:"linkedBytes"` // hard links to the store's own tables
	Shared int64  `json:"sharedBytes"` // hard links to tables of the backup before
}
