package pebblekv

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/orrerydb/orrery/internal/race"
)

// slowTables makes each write to a table take a while.
type slowTables struct {
	vfs.FS
	slow   atomic.Bool
	writes atomic.Int64
}

func (fs *slowTables) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if p := purposeOf(name, c); err == nil && (p == forMerge || p == forFlush) {
		f = &slowTable{f, fs}
	}
	return f, err
}

type slowTable struct {
	vfs.File
	fs *slowTables
}

func (f *slowTable) Write(p []byte) (int, error) {
	if f.fs.slow.Load() {
		f.fs.writes.Add(1)
		time.Sleep(20 * time.Millisecond)
	}
	return f.File.Write(p)
}

// Close waits for no merge, and that of a store which nobody opens again for no flush either. The store is whole when
// it is opened again: a merge replaces nothing before it is complete, and what wasn't flushed is in the log.
func TestCloseEndsMergesAndDiscardFlushes(t *testing.T) {
	items := race.Fewer(1000, 300) // a merge or a flush of 1000 writes more than a thousand blocks, in half a minute
	for _, c := range []struct {
		name string
		work func(e *Engine)
		set  func(e *Engine)
	}{
		{"merge", func(e *Engine) { _ = e.db.Compact(context.Background(), []byte("a"), []byte("z"), false) },
			func(*Engine) {}},
		{"flush", func(e *Engine) { _, _ = e.db.AsyncFlush() }, (*Engine).Discard},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs, log := &slowTables{FS: vfs.NewMem()}, &lines{}
			o := Options{FS: fs, Logger: log.logger(), Fatal: mustFail(t)}
			e := mustOpen(t, "store", o)
			for range 2 {
				if _, err := fillUp(e, items); err != nil {
					t.Fatal(err)
				}
				if c.name == "merge" {
					if err := e.db.Flush(); err != nil {
						t.Fatal(err)
					}
				}
			}
			fs.slow.Store(true)
			go c.work(e)
			eventually(t, "tables are written", func() bool { return fs.writes.Load() > 2 })
			c.set(e)
			began := time.Now()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			took, writes := time.Since(began), fs.writes.Load()
			t.Logf("closed after %v and %d writes", took, writes)
			if writes > 20 {
				t.Errorf("%d blocks were written", writes)
			}
			if n := log.count("Background work of the store failed"); n > 0 {
				t.Errorf("the log tells of it: %s", log.text())
			}
			fs.slow.Store(false)
			e = mustOpen(t, "store", o)
			defer e.Close()
			if got := count(t, e); got != items {
				t.Errorf("%d of %d values are there", got, items)
			}
		})
	}
}
