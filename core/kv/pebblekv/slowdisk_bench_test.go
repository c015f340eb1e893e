package pebblekv

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// slowFS delays syncs of the files that slow selects: by for a whole sync, ahead for a partial one.
type slowFS struct {
	vfs.FS
	slow      func(name string) bool
	by, ahead time.Duration
}

func (fs slowFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err != nil || !fs.slow(name) {
		return f, err
	}
	return slowFile{f, fs}, nil
}

type slowFile struct {
	vfs.File
	fs slowFS
}

func (f slowFile) Sync() error {
	time.Sleep(f.fs.by)
	return f.File.Sync()
}

func (f slowFile) SyncData() error { return f.Sync() }

func (f slowFile) SyncTo(n int64) (bool, error) {
	time.Sleep(f.fs.ahead)
	return f.File.SyncTo(n)
}

// BenchmarkSlowDisk reports the longest write of eight writers to a relaxed store on a slow disk. Each write is as
// large as a batch of 100 items. Run it with -benchtime 3000x.
func BenchmarkSlowDisk(b *testing.B) {
	for _, tc := range []struct {
		name      string
		slow      func(string) bool
		by, ahead time.Duration
	}{
		{"Quick", func(string) bool { return false }, 0, 0},
		{"Logs", func(name string) bool { return strings.HasSuffix(name, ".log") }, 400 * time.Millisecond,
			200 * time.Millisecond},
		{"Tables", func(name string) bool { return strings.HasSuffix(name, ".sst") }, 200 * time.Millisecond, 0},
	} {
		b.Run(tc.name, func(b *testing.B) {
			e := mustOpen(b, b.TempDir(), Options{Relaxed: true, FS: slowFS{vfs.Default, tc.slow, tc.by, tc.ahead}})
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range 8 {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						begin := time.Now()
						writeMany(b, e, uint64(i))
						took[i-1] = time.Since(begin)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
			b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "longest-ms")
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// writeMany writes 100 values of a kilobyte and 3,200 keys of index entries.
func writeMany(b *testing.B, e *Engine, n uint64) {
	var batch kv.Batch
	var key [56]byte
	for i := range uint64(3300) {
		binary.BigEndian.PutUint64(key[:], (n*3300+i)*0x9e3779b97f4a7c15)
		if i%33 == 0 {
			batch.Put(key[:], make([]byte, 1000))
		} else {
			batch.Put(key[:], key[:1])
		}
	}
	if _, err := e.Write(context.Background(), &batch, nil); err != nil {
		b.Error(err)
	}
}
