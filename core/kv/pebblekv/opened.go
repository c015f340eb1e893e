package pebblekv

import (
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// openedName is an empty file in a store that is open for writing. It exists from the end of an open to the beginning
// of a close. While Pebble opens a store, it writes to the manifest that all logs are in tables, and then makes a log.
// So after a crash during an open a store may have no log, and nothing is missing. After a later crash it has one: if
// this file exists but no log does, the last writes are lost. The file isn't synced: without it, some later damage
// stays undetected.
const openedName = "opened"

// markOpened records that the store's log exists.
func markOpened(fs vfs.FS, dir string) error {
	f, err := fs.Create(fs.PathJoin(dir, openedName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return f.Close()
}

// opened removes what a crash has left in the directory of a store that is open now, and marks the store as open and
// complete.
func (c *claimed) opened() {
	if c.readOnly {
		return
	}
	for _, remains := range []string{stageName, tablesName} {
		if err := c.fs.RemoveAll(c.fs.PathJoin(c.path, remains)); err != nil {
			c.log.Warn("Temporary files can't be removed", "directory", remains, "error", err)
		}
	}
	if err := markOpened(c.fs, c.path); err != nil {
		c.log.Warn("The store can't be marked as open", "error", err)
	}
	if err := c.identify(false); err != nil {
		c.log.Warn("The store can't be marked as complete", "error", err)
	}
}

// unmark removes the files of markOpened and writeNote. It returns before anything else is written.
func unmark(fs vfs.FS, dir string) error {
	removed := false
	for _, name := range []string{closedName, openedName} {
		err := fs.Remove(fs.PathJoin(dir, name))
		if err != nil && !files.IsMissing(err) {
			return err
		}
		removed = removed || err == nil
	}
	if !removed {
		return nil
	}
	return files.SyncDir(fs, dir)
}

// storeFiles lists the manifests, logs and tables of a directory. If Pebble's open writes anything, the list changes.
func storeFiles(fs vfs.FS, dir string) ([]string, error) {
	names, err := fs.List(dir)
	names = slices.DeleteFunc(names, func(n string) bool {
		return n == "LOCK" || n == ballastName || n == closedName || n == openedName || n == identityName ||
			n == stageName || n == tablesName
	})
	slices.Sort(names)
	return names, err
}

// remark makes openedName again after an open that failed before it wrote anything.
func (c *claimed) remark() {
	if c.readOnly || !c.found.opened {
		return
	}
	if now, err := storeFiles(c.fs, c.path); err != nil || !slices.Equal(now, c.files) {
		return
	}
	if err := markOpened(c.fs, c.path); err != nil {
		c.log.Warn("The store can't be marked as open again", "error", err)
	}
}

// begun reports whether the files are those of a store whose creation was interrupted by a crash: nothing was ever
// written to it.
func (l *look) begun() (bool, error) {
	if len(l.tables) > 0 || len(l.foreign) > 0 || l.parts.note || l.parts.identity && !l.making || l.opened || l.old ||
		len(l.options) > 0 {
		return false, nil
	}
	for _, f := range l.logs {
		if empty, err := l.holds(f, uint32(f.num), 0); err != nil || !empty {
			return false, err
		}
	}
	for _, f := range l.manifests {
		if empty, err := l.holds(f, 0, 1); err != nil || !empty {
			return false, err
		}
	}
	return true, nil
}

// holds reports whether a log or manifest has at most n records, none that names a log, and no damage.
func (l *look) holds(f numbered, num uint32, n int) (bool, error) {
	records := 0
	end, err := scanFile(l.fs, l.path(f.name), num, false, func(_ int64, rec []byte) error {
		if records++; num == 0 {
			if log, _, _ := logOfEdit(rec); log > 0 {
				records = n + 1
			}
		}
		return nil
	})
	return records <= n && end.how != endDamaged, err
}

// clear removes the files of a store whose creation was interrupted. Pebble can't continue from all of these states.
func (p *parts) clear(fs vfs.FS, dir string) error {
	names := p.markers
	for _, l := range [][]numbered{p.manifests, p.logs} {
		for _, f := range l {
			names = append(names, f.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
			return err
		}
	}
	return files.SyncDir(fs, dir)
}

// namesFirst is a file system that makes the name of a manifest durable before the marker that names it. Pebble syncs
// both names together. After a power failure only the marker might exist, and no manifest.
//
// Example: Pebble creates MANIFEST-2 and the marker that names it, and syncs the directory. If a power failure keeps
// only the marker, it names a missing file. With namesFirst the directory is synced between the two.
type namesFirst struct{ vfs.FS }

// Create implements vfs.FS.
func (fs namesFirst) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(fs.PathBase(name), manifestMarker) {
		if err := files.SyncDir(fs.FS, fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return fs.FS.Create(name, c)
}

// Unwrap implements vfs.FS.
func (fs namesFirst) Unwrap() vfs.FS { return fs.FS }

const manifestMarker = "marker.manifest."
