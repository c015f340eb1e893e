package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A store that was killed while it was open has a log; if that is missing, the store is refused. A store that was
// killed during an open may have no log.
func TestMissingLogOfAKilledStore(t *testing.T) {
	dir := t.TempDir()
	e := mustOpen(t, dir, Options{MemTableMB: 1})
	fill(t, e, 0, 100)
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	killed := copyDir(t, dir)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	removeAll(t, killed, "*.log")
	if _, err := Open(killed, Options{}); err == nil || !strings.Contains(err.Error(), "the log is missing") {
		t.Errorf("while it was open: %v", err)
	}
	removeAll(t, killed, openedName)
	e = mustOpen(t, killed, Options{})
	if _, err := e.Get(context.Background(), nil, []byte("key 000099")); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(killed, openedName)); !os.IsNotExist(err) {
		t.Errorf("a closed store is marked as one that is open: %v", err)
	}
}

// A crash may cut a record of the manifest anywhere, and may keep its end without its beginning: the record is in two
// blocks, which the disk writes in any order. A later record shows that it had been synced.
func TestTornRecordOfTwoBlocks(t *testing.T) {
	fs := vfs.NewMem()
	f, err := fs.Create("m", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	w := record.NewWriter(f)
	for _, n := range []int{recordBlock - 1000, 5000, 300} {
		if _, err := w.WriteRecord(bytes.Repeat([]byte{7}, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	whole := fileBytes(t, fs, "m")
	begin := recordBlock - 1000 + chunkHeader
	last := len(whole) - 300 - chunkHeader
	for _, c := range []struct {
		name string
		upTo int
		want endKind
	}{
		{"the last one", last, endTorn},
		{"one before another", len(whole), endDamaged},
	} {
		b := bytes.Clone(whole[:c.upTo])
		clear(b[begin : begin+900])
		g, err := fs.Create("cut", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Write(b); err != nil {
			t.Fatal(err)
		}
		end, err := scanFile(fs, "cut", 0, false, func(int64, []byte) error { return nil })
		if err != nil || end.how != c.want || end.at != int64(begin) {
			t.Errorf("%s: %+v, %v; want %d at %d", c.name, end, err, c.want, begin)
		}
	}
}
