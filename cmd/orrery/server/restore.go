package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
	"github.com/orrerydb/orrery/core/move"
)

// Restored describes a store that was made from a backup.
type Restored struct {
	Backup     string    `json:"backup"`
	Taken      time.Time `json:"taken"`
	Data       string    `json:"data"`
	Bytes      int64     `json:"bytes"`
	Containers int       `json:"containers"`
	Items      int64     `json:"items"`
}

// Restore makes a store in a new data directory from a backup. from is the backup's directory, or a directory with
// several backups, of which the newest is used. The backup isn't changed. An interrupted restore can be started again;
// until it is complete, no command opens the directory as a store.
func Restore(ctx context.Context, from, data string, w move.Watch) (r Restored, err error) {
	dir, m, err := backup.Pick(backup.OS, from)
	if err != nil {
		return r, err
	}
	if home := backupsOf(from); pebblekv.Within(home, data) {
		return r, fmt.Errorf("%s is in %s, which is for backups alone: give another --data", data, home)
	}
	r = Restored{Backup: dir, Taken: m.Taken, Data: data, Bytes: m.Bytes()}
	if err := emptyBut(data, filepath.Base(StoreDir(data)), tlsName); err != nil {
		return r, err
	}
	o := readOnly()
	o.ReadOnly, o.Restoring = false, true
	w.Task("copying", true)
	at, err := pebblekv.Restore(ctx, dir, m, StoreDir(data), o, w.Set)
	if err != nil {
		return r, restoreError(err)
	}
	if err = raise(ctx, StoreDir(data), o); err == nil {
		w.Task("checking", false)
		err = r.check(ctx, w.Set)
	}
	if err != nil {
		return r, errors.Join(err, at.Leave())
	}
	return r, at.Done()
}

func restoreError(err error) error {
	return fmt.Errorf("the backup can't be restored: %w", err)
}

// emptyBut returns an error unless a directory doesn't exist or contains only the given names.
func emptyBut(dir string, may ...string) error {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, n := range names {
		if !slices.Contains(may, n.Name()) {
			return fmt.Errorf("%s isn't empty", dir)
		}
	}
	return nil
}

// raise opens a restored store and raises its LSNs and item numbers.
func raise(ctx context.Context, dir string, o pebblekv.Options) error {
	e, err := pebblekv.Open(dir, o)
	if err != nil {
		return restoreError(err)
	}
	return errors.Join(core.Raise(ctx, e), e.Close())
}

// check verifies the restored store.
func (r *Restored) check(ctx context.Context, progress func(done, total int64)) error {
	o := readOnly()
	o.Restoring = true
	e, err := pebblekv.Open(StoreDir(r.Data), o)
	if err != nil {
		return restoreError(err)
	}
	eng, err := core.Open(ctx, e, core.Options{ReadOnly: true})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	var problems []error
	err = eng.CheckWatched(ctx, core.CheckWatch{
		Problem:  func(what string) { problems = append(problems, fmt.Errorf("%s has a problem: %s", r.Data, what)) },
		Progress: progress,
	})
	for k, cerr := range eng.Stats(ctx, "") {
		err = errors.Join(err, cerr)
		r.Containers, r.Items = r.Containers+1, r.Items+k.Items
	}
	return errors.Join(errors.Join(problems...), err, eng.Close())
}

// BackupEntry is a backup in a directory of them.
type BackupEntry struct {
	Path  string    `json:"path"`
	Whole bool      `json:"whole"`
	Taken time.Time `json:"taken,omitzero"`
	Files int       `json:"files,omitempty"`
	Bytes int64     `json:"bytes,omitempty"`
	What  string    `json:"problem,omitempty"`
}

// ListBackups returns the backups in a directory, the oldest first.
func ListBackups(dir string) ([]BackupEntry, error) {
	all, err := backup.List(backup.OS, dir)
	out := make([]BackupEntry, 0, len(all))
	for _, e := range all {
		b := BackupEntry{Path: e.Path}
		switch {
		case e.Manifest != nil:
			b.Whole, b.Taken, b.Files, b.Bytes = true, e.Manifest.Taken, len(e.Manifest.Files), e.Manifest.Bytes()
		case errors.Is(e.Err, backup.ErrNoBackup):
			b.What = "not finished; the next backup goes on with it"
		default:
			b.What = e.Err.Error()
		}
		out = append(out, b)
	}
	return out, err
}

// backupsOf returns the directory of backups that has a backup, else the directory itself. A store that was made there
// would keep the server from making the next backup.
func backupsOf(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil && isBackup(real) {
		if real, err = filepath.Abs(real); err == nil {
			return backup.Home(backup.OS, real)
		}
	}
	return dir
}

// isBackup reports whether a directory is a backup.
func isBackup(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, backup.ManifestName))
	return err == nil
}
