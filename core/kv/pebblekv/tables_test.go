package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/internal/race"
)

// Wherever the power fails while sorted tables are written and ingested, the store opens again. Each Ingest was applied
// as a whole or not at all, and with it everything that was written before it, also in a relaxed store. Nothing is left
// of the files of tables that weren't ingested.
func TestCutsInTables(t *testing.T) {
	race.Alone(t)
	rnd := rand.New(rand.NewPCG(11, 12))
	from, _ := cutStores(t, rnd)
	for _, relaxed := range []bool{false, true} {
		t.Run(fmt.Sprintf("relaxed %v", relaxed), func(t *testing.T) {
			fs := &cutFS{MemFS: from.CrashClone(vfs.CrashCloneCfg{}), rnd: rnd}
			e, err := Open("db", Options{FS: fs, MemTableMB: 1, CacheMB: 1, Relaxed: relaxed})
			if err != nil {
				t.Fatal(err)
			}
			const rounds = 3
			done := make([]int, 0, rounds) // number of cuts at the end of each Ingest
			for r := range rounds {
				note := fmt.Sprint("note ", r)
				if err := put(e, note, []byte("x")); err != nil {
					t.Fatal(err)
				}
				tables := e.Tables(context.Background())
				for i := range 500 {
					if err := tables.Add(tableKey(r, i), make([]byte, 100)); err != nil {
						t.Fatal(err)
					}
				}
				if err := tables.Ingest([]kv.Precondition{{Key: []byte(note), Expect: kv.Present}}); err != nil {
					t.Fatal(err)
				}
				done = append(done, len(fs.cuts))
				if err := tables.Add(tableKey(r, 500), []byte("never ingested")); err != nil {
					t.Fatal(err)
				}
				if r < rounds-1 {
					tables.Close()
				}
			}
			fs.cut("the end of", "the process")
			for i, c := range fs.cuts {
				afterTables(t, c, i, done)
			}
			if t.Logf("%d cuts", len(fs.cuts)); len(fs.cuts) < 60 {
				t.Error("too few to say something")
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func tableKey(round, i int) []byte { return fmt.Appendf(nil, "table %d %06d", round, i) }

// afterTables opens what cut i has left. done has the number of cuts at the end of each Ingest.
func afterTables(t *testing.T, c cutCopy, i int, done []int) {
	t.Helper()
	e, err := Open("db", Options{FS: c.fs, MemTableMB: 1, CacheMB: 1})
	if err != nil {
		t.Errorf("cut before %s, %d %%: %v\n%s", c.before, c.percent, err, c.fs)
		return
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	has := func(key []byte) bool {
		_, err := e.Get(context.Background(), nil, key)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			t.Error(err)
		}
		return err == nil
	}
	for r, cuts := range done {
		n := 0
		for k := range 501 {
			if has(tableKey(r, k)) {
				n++
			}
		}
		switch {
		case n != 0 && n != 500, n == 0 && i >= cuts:
			t.Errorf("cut %d before %s, %d %%: %d of 500 keys", i, c.before, c.percent, n)
		case n > 0 && !has(fmt.Appendf(nil, "note %d", r)):
			t.Errorf("cut %d before %s, %d %%: keys without what was written before", i, c.before, c.percent)
		}
	}
	if list, _ := c.fs.List("db/" + tablesName); len(list) > 0 {
		t.Errorf("cut %d before %s: %v is left", i, c.before, list)
	}
}

// Tables that are being written on a disk that gets full are refused like a write, and leave nothing.
func TestTablesOnAFullDisk(t *testing.T) {
	e := mustOpen(t, "db", Options{FS: vfs.NewMem(), MemTableMB: 1})
	defer func() { _ = e.Close() }()
	tables := e.Tables(context.Background())
	if err := tables.Add(tableKey(0, 0), []byte("x")); err != nil {
		t.Fatal(err)
	}
	e.disk.refused.Or(refuseData)
	if err := tables.Add(tableKey(0, 1), []byte("x")); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Add: %v", err)
	}
	if err := tables.Ingest(nil); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Ingest: %v", err)
	}
	tables.Close()
	e.disk.refused.And(^uint32(refuseData))
	if list, err := e.fs.List("db/" + tablesName); len(list) > 0 || err != nil {
		t.Errorf("%v is left, %v", list, err)
	}
}

// What reads a store's files sees ingested keys as it sees others: a copy of the store, a look for damage, a salvage.
// What was written to the keys since is newer, deletions and dropped ranges too.
func TestFilesWithIngestedTables(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, "db", Options{FS: fs, MemTableMB: 1})
	fill(t, e, 0, 300)
	tables := e.Tables(context.Background())
	for i := range 300 {
		if err := tables.Add(tableKey(0, i), []byte("ingested")); err != nil {
			t.Fatal(err)
		}
	}
	if err := tables.Ingest(nil); err != nil {
		t.Fatal(err)
	}
	tables.Close()
	want := map[string]string{}
	for i := range 300 {
		want[string(tableKey(0, i))] = "ingested"
	}
	for i := range 30 {
		changed, gone := string(tableKey(0, 3*i)), string(tableKey(0, 3*i+1))
		if err := errors.Join(put(e, changed, []byte("changed")), del(e, gone)); err != nil {
			t.Fatal(err)
		}
		want[changed] = "changed"
		delete(want, gone)
	}
	if err := e.DropRange(context.Background(), tableKey(0, 200), tableKey(0, 300)); err != nil {
		t.Fatal(err)
	}
	for i := 200; i < 300; i++ {
		delete(want, string(tableKey(0, i)))
	}
	if err := e.Checkpoint(context.Background(), "copy"); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"db", "copy"} {
		examined, err := Examine(context.Background(), dir, Options{FS: fs}, Watch{Report: func(p Problem) {
			if p.Level != Note {
				t.Error(dir, p)
			}
		}})
		if err != nil || examined == nil {
			t.Fatal(dir, err)
		}
		if err := examined.Close(); err != nil {
			t.Error(err)
		}
		s, err := OpenSalvage(context.Background(), dir, Options{FS: fs}, Watch{})
		if err != nil {
			t.Fatal(dir, err)
		}
		got := map[string]string{}
		if err := s.Each(func(key, val []byte) error {
			if bytes.HasPrefix(key, []byte("table")) {
				got[string(key)] = string(val)
			}
			return nil
		}); err != nil || len(s.Lost()) > 0 {
			t.Error(dir, err, s.Lost())
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: a salvage has %d keys, want %d", dir, len(got), len(want))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		e := mustOpen(t, dir, Options{FS: fs})
		for k, v := range want {
			if b, err := e.Get(context.Background(), nil, []byte(k)); err != nil || string(b) != v {
				t.Errorf("%s: %s is %q, %v", dir, k, b, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
