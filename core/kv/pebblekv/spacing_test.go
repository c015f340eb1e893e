package pebblekv

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The log rests for half of a usual sync, if more than one commit was written since the last sync.
func TestRestBetweenSyncs(t *testing.T) {
	const ms = time.Millisecond
	var s spacing
	for i, x := range []struct {
		commits int
		took    time.Duration
		want    time.Duration
		why     string
	}{
		{5, 4 * ms, 0, "nothing is known of the disk before the second sync"},
		{5, 4 * ms, 2 * ms, "half a sync"},
		{1, 4 * ms, 0, "a single writer"},
		{0, 4 * ms, 0, "a sync of the log without a commit"},
		{2, 6 * ms, 2 * ms, "the shorter one of the last two"},
		{2, 500 * ms, 3 * ms, "a single long sync"},
		{2, 500 * ms, 250 * ms, "a slow disk"},
		{2, ms, ms / 2, "a disk that is fast again"},
	} {
		for range x.commits {
			s.wrote()
		}
		s.synced(x.took)
		if got := s.rest(); got != x.want {
			t.Errorf("%d: %s: a rest of %v, want %v", i, x.why, got, x.want)
		}
	}
}

// slowLogs is a file system whose syncs of logs take some time, and are counted.
type slowLogs struct {
	vfs.FS
	syncs atomic.Int32
}

const slowSync = 20 * time.Millisecond

func (fs *slowLogs) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return slowLog{f, fs}, nil
}

type slowLog struct {
	vfs.File
	fs *slowLogs
}

func (f slowLog) SyncData() error {
	f.fs.syncs.Add(1)
	time.Sleep(slowSync)
	return f.File.SyncData()
}

// Writers that write again when they have the reply share one sync. In two groups, each sync would be for half of them.
func TestWritersShareSyncs(t *testing.T) {
	const writers, rounds = 6, 8
	for attempt := 1; ; attempt++ { // on a busy machine some writers come late
		fs := &slowLogs{FS: vfs.NewMem()}
		e := mustOpen(t, "store", Options{FS: fs})
		before := fs.syncs.Load()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				time.Sleep(time.Duration(w%2) * slowSync / 2) // the half of them comes in the middle of a sync
				for i := range rounds {
					if err := put(e, fmt.Sprint(w, " ", i), []byte("v")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		syncs := fs.syncs.Load() - before
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if syncs <= rounds+4 {
			return
		}
		if attempt == 5 {
			t.Fatalf("%d syncs for %d writes of each of %d writers", syncs, rounds, writers)
		}
	}
}

// A single writer waits for its syncs only.
func TestSingleWriterIsSyncedAtOnce(t *testing.T) {
	fs := &slowLogs{FS: vfs.NewMem()}
	e := mustOpen(t, "store", Options{FS: fs})
	defer e.Close()
	for i := range 4 {
		if err := put(e, fmt.Sprint(i), []byte("v")); err != nil {
			t.Fatal(err)
		}
		if r := e.disk.spacing.rest(); r != 0 {
			t.Errorf("write %d: the log rests for %v", i, r)
		}
	}
}
