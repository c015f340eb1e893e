package pebblekv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// threeLogs returns what the end of a process leaves while the memtables of its first two logs wait for the disk.
// Between the last write to a log and the first to the next one between is called.
func threeLogs(t *testing.T, between func(e *Engine)) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewCrashableMem()
	disk := &heldFS{FS: mem, held: func(name string) bool { return strings.HasSuffix(name, ".sst") }}
	e, err := Open("db", Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for _, name := range []string{"a", "b"} {
			if err := put(e, fmt.Sprint(name, i), []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if i == 2 {
			break
		}
		between(e)
		if i == 0 {
			disk.busy.Lock()
		}
		if _, err := e.db.AsyncFlush(); err != nil {
			t.Fatal(err)
		}
	}
	left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	disk.busy.Unlock()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return left
}

// logsIn returns the names of the three logs.
func logsIn(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	p, err := partsOf(fs, "db")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range p.logs {
		names = append(names, f.name)
	}
	if len(names) != 3 {
		t.Fatal("not three logs:", names)
	}
	return names
}

// A log that is missing is known, whichever it is, although neither file numbers nor sequence numbers tell.
func TestLogBetweenOthersIsMissing(t *testing.T) {
	none := func(*Engine) {}
	logs := logsIn(t, threeLogs(t, none))
	for _, name := range logs[:2] {
		left := threeLogs(t, none)
		if err := left.Remove(left.PathJoin("db", name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open("db", Options{FS: left}); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("without %s of %v: %v", name, logs, err)
		}
	}
}

// A table that is ingested takes a sequence number that is in no log. Where a log ends there, none is missing.
func TestIngestBetweenLogs(t *testing.T) {
	n := 0
	left := threeLogs(t, func(e *Engine) {
		tables := e.Tables(context.Background())
		defer tables.Close()
		if err := tables.Add(fmt.Appendf(nil, "table %d", n), []byte("x")); err != nil {
			t.Fatal(err)
		}
		n++
		if err := tables.Ingest(nil); err != nil {
			t.Fatal(err)
		}
	})
	logsIn(t, left)
	e, err := Open("db", Options{FS: left})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := e.Get(context.Background(), nil, fmt.Append(nil, "b", i)); err != nil {
			t.Error(i, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
