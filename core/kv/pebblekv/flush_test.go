package pebblekv

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

// A checkpoint after a flush has everything, and little of it in its log.
func TestFlushShortensTheLogOfACheckpoint(t *testing.T) {
	for name, flushed := range map[string]bool{"without": false, "with": true} {
		t.Run(name+" a flush", func(t *testing.T) {
			dir := t.TempDir()
			e := mustOpen(t, filepath.Join(dir, "from"), Options{})
			defer e.Close()
			fill(t, e, 0, 1000)
			if flushed {
				e.Flush(time.Minute)
			}
			to := filepath.Join(dir, "to")
			if err := e.Checkpoint(context.Background(), to); err != nil {
				t.Fatal(err)
			}
			p, err := partsOf(e.disk.fs, to)
			if err != nil {
				t.Fatal(err)
			}
			records := 0
			for _, f := range p.logs {
				if _, err := scanFile(e.disk.fs, filepath.Join(to, f.name), uint32(f.num), false,
					func(int64, []byte) error { records++; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if short := records < 10; short != flushed {
				t.Errorf("the log has %d records", records)
			}
			c := mustOpen(t, to, Options{})
			defer c.Close()
			if n := count(t, c); n != 1000 {
				t.Errorf("it has %d keys, want 1000", n)
			}
		})
	}
}
