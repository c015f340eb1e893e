package pebblekv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// contents maps the names of a directory's files to their contents.
func contents(t *testing.T, fs vfs.FS, dir string) string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	slices.Sort(names)
	var all strings.Builder
	for _, name := range names {
		f, err := fs.Open(fs.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %x\n", name, data)
	}
	return all.String()
}

func addFile(t *testing.T, fs vfs.FS, name string) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = io.WriteString(f, "what was there before")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyAStoreOfOursIsOpened: a directory that holds anything but a whole store, or nothing, is refused and not
// changed.
func TestOnlyAStoreOfOursIsOpened(t *testing.T) {
	remove := func(prefix string) func(*testing.T, vfs.FS) {
		return func(t *testing.T, fs vfs.FS) {
			names, err := fs.List("db")
			if err != nil {
				t.Fatal(err)
			}
			gone := 0
			for _, name := range names {
				if strings.HasPrefix(name, prefix) {
					gone++
					if err := fs.Remove("db/" + name); err != nil {
						t.Fatal(err)
					}
				}
			}
			if gone == 0 {
				t.Fatalf("no file %s* in %q", prefix, names)
			}
		}
	}
	add := func(names ...string) func(*testing.T, vfs.FS) {
		return func(t *testing.T, fs vfs.FS) {
			for _, name := range names {
				addFile(t, fs, "db/"+name)
			}
		}
	}
	for _, tc := range []struct {
		name  string
		store bool // there is a store
		do    func(*testing.T, vfs.FS)
		want  string // part of the error; "" when the store opens
	}{
		{"absent", false, func(_ *testing.T, fs vfs.FS) { _ = fs.RemoveAll("db") }, ""},
		{"empty", false, add(), ""},
		{"a store that was about to be made", false, add("LOCK", "MANIFEST-000001"), ""},
		{"something else", false, add("letters.txt"), "letters.txt"},
		{"a table without a store", false, add("000007.sst"), "whole store"},
		{"a store", true, add(), ""},
		{"a store beside something else", true, add("letters.txt"), ""},
		{"no manifest marker", true, remove("marker.manifest."), "marker.manifest"},
		{"no manifest", true, remove("MANIFEST-"), ""}, // Pebble's own error, see below
		{"the log of a killed relaxed server", true, add("heir-000010-000009-17-00000000000000ff"),
			"start and stop that version once"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fs := vfs.NewMem()
			if tc.store {
				e := mustOpen(t, "db", Options{FS: fs})
				writePair(t, e, 0)
				if err := errors.Join(e.db.Flush(), e.Close()); err != nil {
					t.Fatal(err)
				}
			} else if err := fs.MkdirAll("db", 0o755); err != nil {
				t.Fatal(err)
			}
			tc.do(t, fs)
			before := contents(t, fs, "db")
			e, err := Open("db", Options{FS: fs})
			if tc.name == "no manifest" {
				if err == nil {
					t.Fatal("opened")
				}
				return
			}
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if n := pairs(t, e); tc.store != (n == 1) {
					t.Errorf("%d batches", n)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, kv.ErrCorruption) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one that says %q", err, tc.want)
			}
			if after := contents(t, fs, "db"); after != before {
				t.Errorf("before\n%safter\n%s", before, after)
			}
		})
	}
}

// lockless is a file system on which no lock can be created.
type lockless struct{ vfs.FS }

func (lockless) Lock(name string) (io.Closer, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EROFS}
}

// If the lock's file can't be created, the error doesn't blame another server.
func TestNoLockFile(t *testing.T) {
	fs := vfs.NewMem()
	if err := mustOpen(t, "db", Options{FS: fs}).Close(); err != nil {
		t.Fatal(err)
	}
	e, err := Open("db", Options{FS: lockless{fs}})
	if errors.Is(err, ErrLocked) {
		t.Errorf("error is %v", err)
	}
	if err == nil {
		err = e.Close()
	} else if errors.Is(err, kv.ErrUnavailable) {
		err = nil
	}
	if err != nil {
		t.Error(err)
	}
}
