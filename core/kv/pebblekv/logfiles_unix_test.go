//go:build unix

package pebblekv

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// TestSmallStoreHoldsLittleDisk: a log takes the disk space of its content, not that of a full memtable.
func TestSmallStoreHoldsLittleDisk(t *testing.T) {
	dir := t.TempDir()
	e := mustOpen(t, dir, Options{})
	for i := range 3000 {
		var b kv.Batch
		b.Put([]byte{byte(i >> 8), byte(i)}, make([]byte, 1000))
		if _, err := e.Write(context.Background(), &b, nil); err != nil {
			t.Fatal(err)
		}
	}
	var held int64
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) < 2 {
		t.Fatalf("%d logs, %v: the first memtables are small, so there must be several", len(logs), err)
	}
	for _, name := range logs {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			held += s.Blocks * 512
		}
	}
	if held > 32<<20 {
		t.Errorf("3 MB of values hold %d MiB of logs", held>>20)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
