package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// restoringName is a file in a directory into which a backup is being restored. It is the first thing there and the
// last one that goes, and locked meanwhile. A directory that has it isn't a whole store.
const restoringName = "restoring"

// cutRestore is what is wrong with such a directory.
const cutRestore = "a backup was being restored here, and that was cut off: run orrery restore again"

// Restoring is a directory into which a backup is being restored. Open and Examine take it with Options.Restoring only,
// until Done.
type Restoring struct {
	fs   vfs.FS
	dir  string
	lock io.Closer
}

// Restore copies the store of the backup in from, whose manifest is m, to dir, which is made when absent and otherwise
// empty, or has what a restore has left that was cut off: that is removed. The caller changes the store, and calls Done
// or Leave.
func Restore(ctx context.Context, from string, m *backup.Manifest, dir string, o Options,
	progress func(done, total int64)) (*Restoring, error) {
	o = o.withDefaults()
	r := &Restoring{fs: o.FS, dir: dir}
	if err := r.begin(); err != nil {
		return nil, err
	}
	err := backup.Fetch(ctx, backup.Work{FS: o.FS, Progress: progress}, from, m, dir)
	if err == nil {
		err = r.renamed()
	}
	if err != nil {
		return nil, errors.Join(err, r.Leave())
	}
	return r, nil
}

// renamed gives a store that this version knows an identity of its own, because it goes its own way from here on. Its
// format stays what it is.
func (r *Restoring) renamed() error {
	l := &look{fs: r.fs, dir: r.dir, report: func(Problem) {}, parts: parts{identity: true}}
	if err := l.readIdentity(); err != nil && !files.IsMissing(err) {
		return err
	}
	l.identity.ID = ""
	return (&claimed{fs: r.fs, path: r.dir, found: l, restoring: true}).identify(false)
}

// begin takes the directory.
func (r *Restoring) begin() error {
	if _, err := r.fs.Stat(r.dir); files.IsMissing(err) {
		if err := files.MakeDir(r.fs, r.dir); err != nil {
			return err
		}
	}
	names, err := r.fs.List(r.dir)
	if err != nil {
		return err
	}
	begun := false
	for _, name := range names {
		begun = begun || name == restoringName
	}
	if len(names) > 0 && !begun {
		return fmt.Errorf("%s isn't empty", r.dir)
	}
	if r.lock, err = r.fs.Lock(r.fs.PathJoin(r.dir, restoringName)); err != nil {
		return fmt.Errorf("%s: another restore is at work there: %w", r.dir, err)
	}
	err = files.SyncDir(r.fs, r.dir)
	for _, name := range names {
		if name != restoringName && err == nil {
			err = r.fs.RemoveAll(r.fs.PathJoin(r.dir, name))
		}
	}
	if err != nil {
		return errors.Join(err, r.Leave())
	}
	return nil
}

// Done makes the directory a whole store. What was written to it is on disk.
func (r *Restoring) Done() error {
	err := files.SyncDir(r.fs, r.dir)
	if err == nil {
		err = r.fs.Remove(r.fs.PathJoin(r.dir, restoringName))
	}
	if err == nil {
		err = files.SyncDir(r.fs, r.dir)
	}
	return errors.Join(err, r.lock.Close())
}

// Leave gives the directory up as it is: no store, and to be restored into again.
func (r *Restoring) Leave() error { return r.lock.Close() }
