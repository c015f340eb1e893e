package pebblekv

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// ErrNoStore is Open's error when a store is to be opened for reading and the directory has none.
var ErrNoStore = fmt.Errorf("%w: the directory holds no store", kv.ErrUnavailable)

// claimed is the directory of a store that is open.
type claimed struct {
	fs       vfs.FS
	path     string
	log      *slog.Logger
	lock     *pebble.Lock
	found    *look
	files    []string // the files of storeFiles before the open
	fresh    bool     // there is no store yet
	readOnly bool

	restoring bool // see Options.Restoring
}

// claim locks a directory and checks that it holds a whole store or nothing. If it holds anything else, claim changes
// nothing; it only locks an existing lock file.
func claim(dir string, o *Options) (*claimed, error) {
	if o.ReadOnly {
		o.FS, o.Relaxed = readOnlyFS{o.FS}, false
	}
	c := &claimed{fs: o.FS, path: dir, log: o.Logger, readOnly: o.ReadOnly, restoring: o.Restoring}
	if err := c.begin(); err != nil {
		return nil, claiming(err)
	}
	var err error
	if c.lock, err = pebble.LockDirectory(dir, c.fs); err != nil {
		return nil, lockError(dir, err)
	}
	c.fresh, err = c.whole()
	if err == nil {
		err = c.older(o.anyFormat)
	}
	switch {
	case err != nil:
	case c.readOnly && c.fresh:
		err = ErrNoStore
	case !c.readOnly:
		if c.files, err = storeFiles(c.fs, dir); err != nil {
			break
		}
		if err = unmark(c.fs, dir); err == nil && c.fresh {
			err = c.found.clear(c.fs, dir)
		}
		if err == nil { // before anything of this format is written
			err = c.identify(c.fresh)
		}
	}
	if err != nil {
		_ = c.lock.Close()
		return nil, claiming(err)
	}
	if !c.readOnly {
		writers.add(dir)
	}
	return c, nil
}

// begin creates the directory. In an existing directory without a lock file it checks first that a lock may be created.
func (c *claimed) begin() error {
	_, err := c.fs.Stat(c.path)
	switch {
	case files.IsMissing(err) && c.readOnly:
		return ErrNoStore
	case files.IsMissing(err):
		return files.MakeDir(c.fs, c.path)
	case err != nil:
		return err
	}
	if _, err = c.fs.Stat(c.fs.PathJoin(c.path, "LOCK")); files.IsMissing(err) {
		_, err = c.whole()
	}
	return err
}

// claiming maps the errors of claim to those of package kv.
func claiming(err error) error {
	if err == nil || errors.Is(err, kv.ErrCorruption) || errors.Is(err, kv.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
}

// whole reports whether a new store has to be made. It fails with ErrNotWhole if the directory must not be opened. It
// logs its other findings.
func (c *claimed) whole() (fresh bool, err error) {
	var broken error
	l, err := inspect(c.fs, c.path, c.restoring, func(p Problem) {
		switch {
		case p.Level == Note:
			c.log.Info("The store was not closed", "file", p.File, "found", p.What)
		case p.Level == Damage:
			c.log.Warn("The store is damaged", "file", p.File, "found", p.What)
		case broken == nil:
			broken = fmt.Errorf("%w: %s", ErrNotWhole, p)
		}
	})
	if broken != nil {
		return false, broken
	}
	c.found = l
	return l.fresh, err
}

// leave unlocks the directory. If the store was closed cleanly it records that first.
func (c *claimed) leave(closed bool) error {
	if c.readOnly {
		return c.lock.Close()
	}
	if closed {
		_ = c.fs.Remove(c.fs.PathJoin(c.path, openedName))
		if err := writeNote(c.fs, c.path); err != nil {
			c.log.Warn("The store can't be marked as closed", "error", err)
		}
	}
	writers.remove(c.path)
	return c.lock.Close()
}
