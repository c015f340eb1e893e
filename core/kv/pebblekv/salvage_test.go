package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// openTablesFS counts the tables that are open at the same time.
type openTablesFS struct {
	vfs.FS
	mu         sync.Mutex
	open, most int
}

type openTableFile struct {
	vfs.File
	fs *openTablesFS
}

func (fs *openTablesFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.open++
	fs.most = max(fs.most, fs.open)
	return openTableFile{f, fs}, nil
}

func (fs *openTablesFS) Unwrap() vfs.FS { return fs.FS }

func (f openTableFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.open--
	return f.File.Close()
}

// A salvage opens at most as many tables as overlap at a key. It closes all of them, also when it is stopped.
func TestSalvageOpensFewTables(t *testing.T) {
	const tables, each = 30, 20
	fs := vfs.NewMem()
	e := mustOpen(t, "db", Options{FS: fs, MemTableMB: 1})
	merge := holdMerges(t, e)
	for i := range tables {
		fill(t, e, i*each, each)
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if n := e.Metrics().Tables; n != tables {
		t.Fatalf("%d tables", n)
	}
	fill(t, e, 7, 1) // newer versions of keys that a table has, in another run
	if err := e.DropRange(context.Background(), []byte("key 000100"), []byte("key 000200")); err != nil {
		t.Fatal(err)
	}
	fill(t, e, 150, 1)
	merge()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, stop := range []int{0, 50} {
		counted := &openTablesFS{FS: fs}
		s, err := OpenSalvage(context.Background(), "db", Options{FS: counted}, Watch{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var last []byte
		stopped := errors.New("enough")
		err = s.Each(func(key, val []byte) error {
			if bytes.Compare(last, key) >= 0 || !strings.HasPrefix(string(val), fmt.Sprintf("value %d ", len(got))) &&
				len(got) < 100 {
				t.Errorf("%q = %q behind %q", key, val, last)
			}
			last = append(last[:0], key...)
			if got = append(got, string(key)); len(got) == stop {
				return stopped
			}
			return nil
		})
		if stop > 0 && (!errors.Is(err, stopped) || len(got) != stop) || stop == 0 &&
			(err != nil || len(got) != tables*each-99) {
			t.Errorf("stopped at %d: %d keys, %v", stop, len(got), err)
		}
		if err := s.Close(); err != nil || len(s.Lost()) > 0 {
			t.Errorf("%v, lost %v", err, s.Lost())
		}
		if counted.most > 8 || counted.open != 0 {
			t.Errorf("stopped at %d: %d tables were open at once, %d still are", stop, counted.most, counted.open)
		}
	}
}

// The end of a closed log that was zeroed looks like the zeros that follow every log. The note of the close tells that
// writes are lost.
func TestLostEndOfClosedLog(t *testing.T) {
	dir := t.TempDir()
	e := mustOpen(t, dir, Options{})
	fill(t, e, 0, 100)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	overwrite(t, dir, "*.log", func(b []byte) []byte {
		end := len(bytes.TrimRight(b, "\x00"))
		clear(b[end/2 : end])
		return b
	})
	s, err := OpenSalvage(context.Background(), dir, Options{}, Watch{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || len(s.Lost()) != 1 {
		t.Errorf("%v, lost %v", err, s.Lost())
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("the store was opened")
	}
}
