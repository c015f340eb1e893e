package pebblekv

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// ErrNoStore is Open's error for a directory without a store that is to be opened for reading.
var ErrNoStore = fmt.Errorf("%w: the directory holds no store", kv.ErrUnavailable)

// enter locks the directory of a store and sees that it is whole. In a directory that isn't ours, or isn't whole, nothing is written.
func enter(dir string, o *Options) (*pebble.Lock, error) {
	if o.ReadOnly {
		o.FS, o.Relaxed = readOnlyFS{o.FS}, false
	} else if err := prepareDir(dir, o); err != nil {
		return nil, err
	}
	if _, err := o.FS.Stat(dir); o.ReadOnly && isMissing(err) {
		return nil, ErrNoStore
	}
	lock, err := pebble.LockDirectory(dir, o.FS)
	if err != nil {
		return nil, lockError(dir, err)
	}
	l, err := wholeStore(dir, o)
	if err == nil && l.fresh && o.ReadOnly {
		err = ErrNoStore
	}
	if err == nil && !o.ReadOnly {
		err = adoptLogs(o.FS, dir, o.Logger)
	}
	if err == nil && !o.ReadOnly {
		err = removeNote(o.FS, dir)
	}
	if err != nil {
		_ = lock.Close()
		return nil, entering(err)
	}
	if !o.ReadOnly {
		writers.add(dir)
	}
	return lock, nil
}

// prepareDir makes the directory, or sees that it is whole before even a lock is made there.
func prepareDir(dir string, o *Options) error {
	_, err := o.FS.Stat(dir)
	if isMissing(err) {
		err = o.FS.MkdirAll(dir, 0o755)
	} else if err == nil {
		if _, err = o.FS.Stat(o.FS.PathJoin(dir, "LOCK")); isMissing(err) {
			_, err = wholeStore(dir, o)
		}
	}
	return entering(err)
}

// entering maps the errors of enter to the closed set.
func entering(err error) error {
	if err == nil || errors.Is(err, kv.ErrCorruption) || errors.Is(err, kv.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
}

// wholeStore fails with ErrNotWhole when the directory must not be opened, and logs what else it finds.
func wholeStore(dir string, o *Options) (*look, error) {
	var broken error
	l, err := inspect(o.FS, dir, func(p Problem) {
		switch {
		case p.Level == Note:
			o.Logger.Info("The store was not closed", "file", p.File, "found", p.What)
		case p.Level == Damage:
			o.Logger.Warn("The store is damaged", "file", p.File, "found", p.What)
		case broken == nil:
			broken = fmt.Errorf("%w: %s", ErrNotWhole, p)
		}
	})
	if broken != nil {
		return l, broken
	}
	return l, err
}

// leave notes that a store is closed and gives its directory back.
func leave(dir string, o *Options, lock *pebble.Lock, clean bool) error {
	if !o.ReadOnly {
		if clean {
			if err := writeNote(o.FS, dir); err != nil {
				o.Logger.Warn("It can't be noted that the store is closed", "error", err)
			}
		}
		writers.remove(dir)
	}
	return lock.Close()
}

var _ vfs.FS = readOnlyFS{}
