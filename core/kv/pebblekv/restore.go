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

// restoringName is a file in a directory into which a backup is being restored, or a store repaired. It is the first
// file that is made there, it is locked meanwhile, and it is removed last. A directory that has it isn't a whole store.
const restoringName = "restoring"

// cutRestore describes a directory in which it was left.
const cutRestore = "a restore or a repair into this directory was interrupted: run the same command again"

// Restoring is a directory into which a backup is being restored, or a store repaired. Until Done, Open and Examine
// accept it only with Options.Restoring.
type Restoring struct {
	fs   vfs.FS
	dir  string
	lock io.Closer
}

// Restore copies the store of the backup in from to dir; m is its manifest. dir must be absent, empty, or left by an
// interrupted restore, whose files are removed. Afterwards the caller may change the store. It calls Done or Leave.
func Restore(ctx context.Context, from string, m *backup.Manifest, dir string, o Options,
	progress func(done, total int64)) (*Restoring, error) {
	r, err := Begin(dir, o)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	err = backup.Fetch(ctx, backup.Work{FS: o.FS, Progress: progress}, from, m, dir)
	if err == nil {
		err = r.renamed()
	}
	if err != nil {
		return nil, errors.Join(err, r.Leave())
	}
	return r, nil
}

// Begin makes dir a directory in which a store is being made, without any files yet. It must be as for Restore. The
// caller opens it with Options.Restoring, closes it again, and calls Done or Leave.
func Begin(dir string, o Options) (*Restoring, error) {
	o = o.withDefaults()
	r := &Restoring{fs: o.FS, dir: dir}
	if err := r.begin(); err != nil {
		return nil, err
	}
	return r, nil
}

// renamed gives the restored store an identity of its own, because it is no longer the store of the backup. Its format
// stays the same.
func (r *Restoring) renamed() error {
	l := &look{fs: r.fs, dir: r.dir, report: func(Problem) {}, parts: parts{identity: true}}
	if err := l.readIdentity(); err != nil && !files.IsMissing(err) {
		return err
	}
	l.identity.ID = ""
	return (&claimed{fs: r.fs, path: r.dir, found: l, restoring: true}).identify(false)
}

// begin creates and locks the directory, and removes what an interrupted restore has left.
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
		return fmt.Errorf("%s: another restore or repair is at work there: %w", r.dir, err)
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

// Done makes the directory a whole store. Everything written to it must be durable.
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

// Leave ends the restore without completing it. The directory is no store, and can be restored into again.
func (r *Restoring) Leave() error { return r.lock.Close() }
