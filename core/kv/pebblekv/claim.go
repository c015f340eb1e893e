package pebblekv

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// heirPrefix begins the names of logs that a relaxed store of an older version left behind when it was killed.
const heirPrefix = "heir-"

// claim locks a directory, which is made when absent, and reports whether a store may be made in it. The only file that it makes is
// the lock, and that not in a directory that holds something else.
func claim(dir string, fs vfs.FS) (lock *pebble.Lock, fresh bool, err error) {
	if fresh, err = vacant(dir, fs); err != nil {
		return nil, false, err
	}
	if fresh {
		if err := fs.MkdirAll(dir, 0o755); err != nil {
			return nil, false, fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
		}
	}
	lock, err = pebble.LockDirectory(dir, fs)
	var noFile *os.PathError // the lock's file can't be made or opened: nothing is known of other servers
	switch {
	case errors.As(err, &noFile):
		return nil, false, fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	case err != nil:
		return nil, false, fmt.Errorf("%w: %s: %v", ErrLocked, dir, err)
	}
	return lock, fresh, nil
}

// vacant reports whether dir has no store: it is absent or empty, or the making of one was cut off there. A directory that has neither
// that nor a store is an error.
func vacant(dir string, fs vfs.FS) (bool, error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	store, data := false, ""
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, heirPrefix):
			return false, fmt.Errorf("%w: %s is a log that an older version of the server left when it was killed: "+
				"start and stop that version once, so that its writes are kept", kv.ErrCorruption, fs.PathJoin(dir, name))
		case strings.HasPrefix(name, "marker.manifest."):
			store = true
		case !beginning(name):
			data = name
		}
	}
	if !store && data != "" {
		return false, fmt.Errorf("%w: %s has files, such as %s, and isn't a whole store: its marker.manifest file is missing",
			kv.ErrCorruption, dir, data)
	}
	return !store, nil
}

// beginning reports whether a file may be there before a new store has its first manifest.
func beginning(name string) bool {
	return name == "LOCK" || strings.HasPrefix(name, "marker.format-version.") || strings.HasPrefix(name, "MANIFEST-")
}
