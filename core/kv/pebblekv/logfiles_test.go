package pebblekv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestLogsGrowInSteps: of the writes to a log only a few change the size of its file, and what is behind the last one
// is zeros. Copies of logs have none.
func TestLogsGrowInSteps(t *testing.T) {
	const writes, each = 1000, 3000
	fs := logFiles{vfs.NewMem()}
	for _, c := range []struct {
		name     string
		category vfs.DiskWriteCategory
		steps    int // at most
		zeros    int64
	}{
		{"000001.log", walCategory, 20, maxAhead},
		{"copy/000001.log", vfs.WriteCategoryUnspecified, writes, 0},
	} {
		if err := fs.MkdirAll("copy", 0o755); err != nil {
			t.Fatal(err)
		}
		f := must(fs.Create(c.name, c.category))
		var want []byte
		var size int64
		steps := 0
		for i := range writes {
			p := bytes.Repeat([]byte{byte(i) | 1}, each)
			want = append(want, p...)
			if n, err := f.Write(p); n != each || err != nil {
				t.Fatal(n, err)
			}
			if now := must(f.Stat()).Size(); now != size {
				size = now
				steps++
			}
			if left := size - int64(len(want)); left < 0 || left > max(minAhead, int64(len(want))) || left > c.zeros {
				t.Fatalf("%s: %d bytes behind the %d written", c.name, left, len(want))
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if steps > c.steps {
			t.Errorf("%s: %d of %d writes changed the size of the file", c.name, steps, writes)
		}
		got := must(io.ReadAll(must(fs.Open(c.name))))
		if !bytes.HasPrefix(got, want) || len(bytes.Trim(got[len(want):], "\x00")) > 0 {
			t.Errorf("%s isn't what was written, and zeros", c.name)
		}
	}
}

// TestLogOfStoreGrowsInSteps: the log of a store is one that grows in steps.
func TestLogOfStoreGrowsInSteps(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, storeDir, Options{FS: fs})
	defer e.Close()
	var sizes []int64
	for i := range 3 {
		if err := put(e, fmt.Sprint(i), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		var size int64
		for _, name := range must(fs.List(storeDir)) {
			if strings.HasSuffix(name, logSuffix) {
				size += must(fs.Stat(fs.PathJoin(storeDir, name))).Size()
			}
		}
		sizes = append(sizes, size)
	}
	if sizes[0] < minAhead || sizes[1] != sizes[0] || sizes[2] != sizes[0] {
		t.Errorf("sizes of the log: %v", sizes)
	}
}

// noAhead is a file that takes no zeros.
type noAhead struct {
	vfs.File
	tried int
}

func (f *noAhead) WriteAt([]byte, int64) (int, error) {
	f.tried++
	return 0, errors.New("no room")
}

// TestLogWithoutRoomAhead: a log without room for zeros is written without them.
func TestLogWithoutRoomAhead(t *testing.T) {
	below := &noAhead{File: must(vfs.NewMem().Create("000001.log", walCategory))}
	f := &logFile{File: below}
	for range 100 {
		if n, err := f.Write(make([]byte, 1000)); n != 1000 || err != nil {
			t.Fatal(n, err)
		}
	}
	if size := must(f.Stat()).Size(); size != 100_000 || below.tried != 1 {
		t.Errorf("%d bytes, %d attempts", size, below.tried)
	}
}

// BenchmarkSyncedLog writes 12 KB, some inserts, and syncs them: to a log that grows in steps, and to one that grows
// with each write.
func BenchmarkSyncedLog(b *testing.B) {
	for _, c := range []struct {
		name     string
		category vfs.DiskWriteCategory
	}{{"steps", walCategory}, {"each", vfs.WriteCategoryUnspecified}} {
		b.Run(c.name, func(b *testing.B) {
			fs := logFiles{vfs.Default}
			f := must(fs.Create(fs.PathJoin(b.TempDir(), "000001.log"), c.category))
			p := bytes.Repeat([]byte{1}, 12_000)
			for b.Loop() {
				if _, err := f.Write(p); err != nil {
					b.Fatal(err)
				}
				if err := f.SyncData(); err != nil {
					b.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
