package pebblekv

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// notedFS reports an error if a file is created while the note of the clean close would survive a power failure.
type notedFS struct {
	*vfs.MemFS
	t     *testing.T
	on    atomic.Bool
	asked atomic.Int32
}

func (fs *notedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if base := fs.PathBase(name); fs.on.Load() && base != "LOCK" {
		fs.asked.Add(1)
		left, err := fs.CrashClone(vfs.CrashCloneCfg{}).List("db") // what is synced
		if err != nil || slices.Contains(left, closedName) {
			fs.t.Errorf("%s is made while the note would survive a cut: %v %v", base, left, err)
		}
	}
	return fs.MemFS.Create(name, c)
}

// The note of the clean close is durably removed before an open for writing creates its first file. So a loss after a
// clean close is always detected, and no later write is taken for one.
func TestNoteGoesBeforeTheFirstWrite(t *testing.T) {
	fs := &notedFS{MemFS: vfs.NewCrashableMem(), t: t}
	for round := range 2 {
		fs.on.Store(round > 0)
		e, err := Open("db", Options{FS: fs, MemTableMB: 1, CacheMB: 1})
		if err != nil {
			t.Fatal(err)
		}
		fs.on.Store(false)
		fill(t, e, 100, 2)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if names, err := fs.CrashClone(vfs.CrashCloneCfg{}).List("db"); err != nil ||
			!slices.Contains(names, closedName) {
			t.Fatalf("closed, it has no note: %v %v", names, err)
		}
	}
	if fs.asked.Load() == 0 {
		t.Error("the open has made no file")
	}
}

// A restored store keeps the format of the backup, with its own identity, until it is upgraded.
func TestRestoredKeepsItsFormat(t *testing.T) {
	dir := t.TempDir()
	storeIn(t, dir)
	rewriteIdentity(t, dir, func(i *identityFile) { i.Format = kv.Format - 1 })
	identity := func(o Options) kv.Identity {
		e := mustOpen(t, dir, o)
		defer e.Close()
		return e.Identity()
	}
	before := identity(Options{ReadOnly: true})
	r := &Restoring{fs: vfs.Default, dir: dir}
	if err := r.renamed(); err != nil {
		t.Fatal(err)
	}
	got := identity(Options{Restoring: true})
	if got.Format != kv.Format-1 || got.ID == before.ID || got.ID == "" {
		t.Errorf("restored it is %+v, it was %+v", got, before)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrOlder) {
		t.Errorf("opened without being asked to upgrade it: %v", err)
	}
	if up := identity(Options{Upgrade: true}); up.Format != kv.Format || up.ID != got.ID {
		t.Errorf("upgraded it is %+v", up)
	}
	if e, err := Examine(context.Background(), dir, Options{}, Watch{}); err != nil {
		t.Error(err)
	} else if err := e.Close(); err != nil {
		t.Error(err)
	}
}
