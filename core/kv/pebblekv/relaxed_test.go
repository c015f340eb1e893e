package pebblekv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/internal/race"
)

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// One sync covers everything that is written within logDelay. Without writes there is no sync.
func TestLogTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begin := time.Now()
		l := newLogTimer(func() error {
			at = append(at, time.Since(begin))
			time.Sleep(logDelay / 2) // the disk takes time
			return nil
		})
		for range 4 {
			l.wrote()
			time.Sleep(logDelay * 2 / 5)
		}
		time.Sleep(time.Hour) // the fourth write came during the first sync
		l.wrote()
		time.Sleep(time.Hour)
		l.wrote()
		l.stop()
		l.wrote()
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []time.Duration{logDelay, logDelay*6/5 + logDelay, logDelay*8/5 + time.Hour + logDelay}
		if fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("syncs at %v, want %v", at, want)
		}
	})
}

// A power failure loses the last writes and no earlier ones: after a pause, in a trickle, and under load.
func TestRelaxedLogIsNotFarBehind(t *testing.T) {
	for _, tc := range []struct {
		name  string
		every time.Duration // between writes; 0: all writes at once
		batch int
	}{
		{"pause", 0, 1},
		{"trickle", logDelay / 10, 1},
		{"load", logDelay / 10, 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			e := mustOpen(t, "db", Options{FS: mem, Relaxed: true})
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := 0; ; {
					for range tc.batch {
						writePair(t, e, i)
						i++
					}
					if tc.every == 0 {
						return
					}
					select {
					case <-stop:
						return
					case <-time.After(tc.every):
					}
				}
			})
			for begin, got := time.Now(), 0; got == 0; time.Sleep(20 * time.Millisecond) {
				r := mustOpen(t, "db", Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
				got = pairs(t, r)
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if time.Since(begin) > time.Minute {
					t.Fatal("nothing is on disk")
				}
			}
			close(stop)
			wg.Wait()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Close waits for the sync of the log, longer than for users of the store, and also if a sync is already running.
func TestRelaxedCloseWaitsForTheLog(t *testing.T) {
	defer func(d time.Duration) { closeGrace = d }(closeGrace)
	closeGrace = time.Millisecond
	for _, syncing := range []bool{false, true} {
		fs := &heldFS{FS: vfs.NewMem(), held: isLog}
		e := mustOpen(t, "db", Options{FS: fs, Relaxed: true})
		writePair(t, e, 0)
		fs.busy.Lock()
		for end := time.Now().Add(time.Minute); syncing && e.relaxed.armed.Load(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nothing is synced")
			}
		}
		var err error
		if !waitsFor(fs, func() { err = e.Close() }) || err != nil {
			t.Errorf("syncing %v: closed before the log was on disk, or %v", syncing, err)
		}
	}
}

// Whatever a power failure leaves of the unsynced writes, a relaxed store opens and has the first batches, completely.
func TestRelaxedStoreAfterACrash(t *testing.T) {
	rounds := race.Fewer(6, 2)
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(7, uint64(round)))
		mem := vfs.NewCrashableMem()
		e := mustOpen(t, "db", Options{FS: mem, Relaxed: true, MemTableMB: 1})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 0; ; i++ {
				if i == 4000 { // enough to be read again after each crash
					<-stop
				}
				select {
				case <-stop:
					return
				default:
					writePair(t, e, i)
					if i%64 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			}
		})
		for range 8 {
			time.Sleep(time.Duration(rng.IntN(15)) * time.Millisecond)
			clone := mem.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: []int{0, 50, 95, 100}[rng.IntN(4)], RNG: rng})
			r, err := Open("db", Options{FS: clone, Relaxed: rng.IntN(2) == 0})
			if err != nil {
				t.Fatal(err)
			}
			pairs(t, r)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		wg.Wait()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A relaxed store too syncs tables before it removes the logs with their writes, and syncs dropped ranges and
// checkpoints.
func TestRelaxedStoreSyncsWhatItPromises(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*Engine) error
		dir  string
		want int
	}{
		{"flush", func(e *Engine) error { return e.db.Flush() }, "db", 1000},
		{"drop", func(e *Engine) error { return e.DropRange(context.Background(), []byte("x"), []byte("y")) },
			"db", 1000},
		{"drop all", func(e *Engine) error {
			return e.DropRange(context.Background(), []byte("a"), []byte("c"))
		}, "db", 0},
		{"checkpoint", func(e *Engine) error { return e.Checkpoint(context.Background(), "copy") }, "copy", 1000},
	} {
		for _, fresh := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/fresh %v", tc.name, fresh), func(t *testing.T) {
				fs := vfs.NewCrashableMem()
				if !fresh {
					e := mustOpen(t, "db", Options{FS: fs, Relaxed: true})
					writePair(t, e, 0)
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
				}
				e := mustOpen(t, "db", Options{FS: fs, Relaxed: true, MemTableMB: 1})
				for i := range 1000 {
					writePair(t, e, i)
				}
				if err := tc.do(e); err != nil {
					t.Fatal(err)
				}
				r := mustOpen(t, tc.dir, Options{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
				defer r.Close()
				if got := pairs(t, r); got != tc.want {
					t.Errorf("%d batches, want %d", got, tc.want)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
