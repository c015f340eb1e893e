package pebblekv

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// diskFS is the file system that Pebble sees. It tells disk how much is written, how long operations on logs and
// directories take, and which operations fail.
type diskFS struct {
	vfs.FS
	d *disk
}

// below returns the file system for Pebble: this one, with the ballast below it.
func (d *disk) below(fs vfs.FS) vfs.FS {
	if d.readOnly != nil {
		return fs
	}
	return diskFS{vfs.OnDiskFull(fs, d.lighten), d}
}

// lighten is called when the file system is full. The failed operation is then tried once more.
func (d *disk) lighten() {
	d.space.ballast.drop(d.fs)
	d.full()
}

// purpose is what a file is for.
type purpose uint8

const (
	forElse purpose = iota
	forLog
	forFlush
	forMerge
	forTables // see newTables
)

// tablesCategory is the category of files with the purpose forTables.
const tablesCategory vfs.DiskWriteCategory = "orrery-tables"

const logSuffix = ".log"

// purposeOf finds the purpose by a file's name and Pebble's category.
func purposeOf(name string, category vfs.DiskWriteCategory) purpose {
	switch {
	case strings.HasSuffix(name, logSuffix):
		return forLog
	case category == "pebble-memtable-flush":
		return forFlush
	case category == "pebble-compaction", category == "pebble-blob-file-rewrite":
		return forMerge
	case category == tablesCategory:
		return forTables
	}
	return forElse
}

// errNoMerge is the error of merges that would use the space kept for flushes.
var errNoMerge = fmt.Errorf("pebblekv: the remaining space is kept for flushes: %w", syscall.ENOSPC)

// errClosing ends the merges of a store that is being closed, for which Pebble's Close would wait. Nothing is lost: the
// merged tables replace their sources only when all of them are complete.
var errClosing = errors.New("pebblekv: the store is being closed")

// abandons reports whether work ends because the store is being closed: merges, and flushes if nobody opens it again.
func (d *disk) abandons(p purpose) bool {
	return (p == forMerge || p == forFlush && d.discard.Load()) && d.closing()
}

// Create implements vfs.FS.
func (fs diskFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f := &diskFile{d: fs.d, name: name, purpose: purposeOf(name, category)}
	if f.purpose == forLog && fs.d.copying.has(name) {
		f.purpose = forElse
	}
	switch {
	case fs.d.abandons(f.purpose):
		return nil, errClosing
	case f.purpose == forMerge && !fs.d.mayMerge(0):
		fs.d.space.merge.failed()
		return nil, errNoMerge
	case f.purpose == forFlush && !fs.d.space.flush.wait(fs.d.stop):
		return nil, errClosing
	}
	err := f.do("the creation of ", func() (err error) {
		f.File, err = fs.FS.Create(name, category)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// OpenDir implements vfs.FS: a directory is opened to be synced, which new logs and manifests need.
func (fs diskFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	d := &diskFile{File: f, d: fs.d, name: name, purpose: forLog}
	if fs.d.copying.has(name) {
		d.purpose = forElse
	}
	return d, nil
}

// errNoLink makes Pebble copy a file instead of linking it. Some file systems without hard links return errors at which
// Pebble would give up.
var errNoLink = errors.New("pebblekv: no hard link")

// Link implements vfs.FS.
func (fs diskFS) Link(from, to string) error {
	err := fs.FS.Link(from, to)
	if err != nil && fs.d.copying.has(to) {
		return fmt.Errorf("%w: %v", errNoLink, err)
	}
	return err
}

// Unwrap implements vfs.FS.
func (fs diskFS) Unwrap() vfs.FS { return fs.FS }

// diskFile is a file that is written, or a directory.
type diskFile struct {
	vfs.File
	d       *disk
	name    string
	purpose purpose
	bad     bool // an operation has failed
}

// do runs an operation, measures it for a log, and acts on its error.
func (f *diskFile) do(what string, op func() error) error {
	if f.purpose == forLog {
		defer f.d.stall.end(f.d.stall.begin(what, f.name))
	}
	err := op()
	if err != nil {
		f.failed(what, err)
	}
	return err
}

// failed acts on an error. An error of a log is final: nobody knows which writes were lost, and Pebble panics at the
// next write. Tables are written again.
func (f *diskFile) failed(what string, err error) {
	d := f.d
	f.bad = true
	if vfs.IsNoSpaceError(err) {
		d.full()
	}
	switch {
	case f.purpose == forLog && d.running.Load():
		d.fail.now("%s%s failed: %w", what, f.name, err)
	case f.purpose == forFlush && !d.running.Load() && !d.closing():
		d.fail.now("the store can't be opened: %s%s failed: %w", what, f.name, err) // Pebble would try for ever
	case f.purpose == forFlush:
		d.space.flush.failed()
		d.refused.Or(refuseFlushes)
		d.space.again()
	case f.purpose == forMerge:
		d.space.merge.failed()
	}
}

// Write implements vfs.File.
func (f *diskFile) Write(p []byte) (n int, err error) {
	if f.d.abandons(f.purpose) {
		return 0, errClosing
	}
	if f.purpose == forMerge && !f.d.mayMerge(int64(len(p))) {
		f.d.space.merge.failed()
		return 0, errNoMerge
	}
	if f.purpose == forFlush || f.purpose == forMerge || f.purpose == forTables {
		f.d.giveWay()
	}
	err = f.do("a write to ", func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	f.d.used(n)
	return n, err
}

// WriteAt implements vfs.File. Only zeros are written this way, ahead of a log, so an error loses nothing.
func (f *diskFile) WriteAt(p []byte, at int64) (n int, err error) {
	if f.purpose == forLog {
		defer f.d.stall.end(f.d.stall.begin("a write to ", f.name))
	}
	return f.File.WriteAt(p, at)
}

// Sync implements vfs.File.
func (f *diskFile) Sync() error {
	return f.do("a sync of ", func() error { return f.d.sync(f.File, false) })
}

// SyncData implements vfs.File.
func (f *diskFile) SyncData() error {
	begun := time.Now()
	err := f.do("a sync of ", func() error { return f.d.sync(f.File, true) })
	if f.purpose == forLog {
		f.d.spacing.synced(time.Since(begun))
	}
	return err
}

// SyncTo implements vfs.File.
func (f *diskFile) SyncTo(n int64) (full bool, err error) {
	err = f.do("a sync of ", func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, err
}

// Close implements vfs.File. Pebble closes a table that it has written and synced, and also one that failed.
func (f *diskFile) Close() error {
	err := f.do("the close of ", f.File.Close)
	if f.purpose == forFlush && !f.bad {
		f.d.space.flush.over()
		f.d.refused.And(^uint32(refuseFlushes))
	}
	return err
}
