package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// heldFS is a disk that is busy when it is told to be: syncs of the files that held picks wait.
type heldFS struct {
	vfs.FS
	held func(name string) bool
	busy sync.RWMutex // locked while the disk is busy
}

func (fs *heldFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return fs.hold(name, f, err)
}

func (fs *heldFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return fs.hold(name, f, err)
}

func (fs *heldFS) hold(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !fs.held(name) {
		return f, err
	}
	return &heldFile{f, fs}, nil
}

type heldFile struct {
	vfs.File
	fs *heldFS
}

func (f *heldFile) Sync() error {
	f.fs.busy.RLock()
	defer f.fs.busy.RUnlock()
	return f.File.Sync()
}

func (f *heldFile) SyncData() error { return f.Sync() }

// oneLog reports whether a file is a log, under its own name or another.
func oneLog(name string) bool {
	return isLog(name) || strings.Contains(name, heirPrefix)
}

func heirsIn(t testing.TB, fs vfs.FS) (heirs []string) {
	t.Helper()
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, ok := parseHeir(name); ok {
			heirs = append(heirs, name)
		}
	}
	return heirs
}

// writePair writes batch i: two keys with a kilobyte in all.
func writePair(t testing.TB, e *Engine, i int) {
	var b kv.Batch
	b.Put(fmt.Appendf(nil, "a%06d", i), make([]byte, 900))
	b.Put(fmt.Appendf(nil, "b%06d", i), []byte("1"))
	if _, err := e.Write(context.Background(), &b, nil); err != nil {
		t.Error(err)
	}
}

// pairs counts the batches of the store. They must be whole, and the first ones that were written.
func pairs(t testing.TB, e *Engine) int {
	t.Helper()
	it, err := e.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var n [2]int
	for ok := it.First(); ok; ok = it.Next() {
		half := it.Key()[0] - 'a'
		if want := fmt.Sprintf("%c%06d", 'a'+half, n[half]); string(it.Key()) != want {
			t.Fatalf("%s comes where %s should", it.Key(), want)
		}
		n[half]++
	}
	if err := it.Error(); err != nil || n[0] != n[1] {
		t.Fatalf("halves of batches: %d and %d, %v", n[0], n[1], err)
	}
	return n[0]
}

// waitsFor reports whether f returns only when the disk isn't busy any more.
func waitsFor(fs *heldFS, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	waits := true
	select {
	case <-done:
		waits = false
	case <-time.After(30 * time.Millisecond):
	}
	fs.busy.Unlock()
	<-done
	return waits
}

// What needs a log by its name waits until it has it, and a sync of a log for the one before.
func TestLateLogIsWaitedFor(t *testing.T) {
	const first, second = "db/000001.log", "db/000002.log"
	for name, do := range map[string]func(logFS, vfs.File) error{
		"open": func(fs logFS, _ vfs.File) error {
			f, err := fs.Open(second)
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"link":   func(fs logFS, _ vfs.File) error { return fs.Link(second, "db/copy") },
		"remove": func(fs logFS, _ vfs.File) error { return fs.Remove(first) },
		"sync":   func(fs logFS, f vfs.File) error { return fs.late.durably(f.Sync) },
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			if err := mem.MkdirAll("db", 0o755); err != nil {
				t.Fatal(err)
			}
			syncRoot(t, mem)
			held := &heldFS{FS: mem, held: func(name string) bool { return name == first }}
			late, err := newLateLogs(held, "db", nil, func(err error) { t.Error(err) })
			if err != nil {
				t.Fatal(err)
			}
			fs := logFS{held, late}
			var f vfs.File
			held.busy.Lock()
			for _, name := range []string{first, second} {
				if f != nil {
					err = f.Close()
				}
				if err == nil {
					f, err = fs.Create(name, vfs.WriteCategoryUnspecified)
				}
				if err == nil {
					_, err = f.Write([]byte("a batch"))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !waitsFor(held, func() { err = do(fs, f) }) || err != nil {
				t.Errorf("done while the disk was busy, or %v", err)
			}
			after := mem.CrashClone(vfs.CrashCloneCfg{})
			if _, err := after.Stat(second); err != nil {
				t.Error(err)
			}
			if err := errors.Join(f.Close(), late.close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A disk that syncs nothing doesn't stop the writers of a relaxed store when a log is full.
func TestRelaxedLogsChangeWithoutTheDisk(t *testing.T) {
	mem := vfs.NewCrashableMem()
	fs := &heldFS{FS: mem, held: func(string) bool { return true }}
	e := mustOpen(t, "db", Options{FS: fs, Relaxed: true, MemTableMB: 1})
	fs.busy.Lock()
	const n = 2500 // the first memtables have 256 and 512 KiB
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			writePair(t, e, i)
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		fs.busy.Unlock()
		t.Fatal("writes wait for the disk")
	}
	if h := heirsIn(t, mem); len(h) < 2 {
		t.Errorf("logs that wait for their names: %q, want two or more", h)
	}

	// Only the process ends: what was written is there.
	killed := func() int {
		clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
		r := mustOpen(t, "db", Options{FS: clone})
		defer r.Close()
		if h := heirsIn(t, clone); len(h) > 0 {
			t.Errorf("left: %q", h)
		}
		return pairs(t, r)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		got := killed()
		if got > n-40 { // Pebble has the last 32 KiB
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d batches of %d after the end of the process", got, n)
		}
	}
	fs.busy.Unlock()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if h := heirsIn(t, mem); len(h) > 0 {
		t.Errorf("left by Close: %q", h)
	}
	r := mustOpen(t, "db", Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
	defer r.Close()
	if got := pairs(t, r); got != n {
		t.Errorf("%d batches of %d after Close and a crash of the machine", got, n)
	}
}

// A crash of the machine loses what was written last, not what was written a while ago: behind a pause, in a trickle, in a load.
func TestRelaxedLogIsNotFarBehind(t *testing.T) {
	for _, tc := range []struct {
		name  string
		every time.Duration // a write; 0: one in all
		batch int
	}{
		{"pause", 0, 1},
		{"trickle", lookDelay / 10, 1},
		{"load", lookDelay / 10, 20},
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
				if time.Since(begin) > 20*time.Second {
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

// What is done for a log whose writes nobody waits for, look by look.
func TestLateLogLooks(t *testing.T) {
	const many = trickle/lookMost + 1
	loads := func(n int, each int64) []int64 { return slices.Repeat([]int64{each}, n) }
	for _, tc := range []struct {
		name   string
		writes []int64 // bytes between looks
		want   string  // f: flushed, s: synced without Pebble; a dot a look
		ends   bool    // nothing looks any more
		during bool    // a write comes during the first flush
	}{
		{"one write", []int64{100, 0}, "..f", true, false},
		{"still writing", []int64{100, 100, 100}, "...", false, false},
		{"two with a pause", []int64{100, 0, 100, 0}, "..f..f", true, false},
		{"trickle", loads(2*lookMost, 100), strings.Repeat(strings.Repeat(".", lookMost)+"f", 2), false, false},
		{"just a trickle", append(loads(lookMost-1, many), trickle-1-many*(lookMost-1)), strings.Repeat(".", lookMost) + "f", false, false},
		{"write in a pause", []int64{100, 0, 0}, "..f.", false, true},
		{"pause after it", []int64{100, 0, 0, 0}, "..f..f", true, true},
		{"load", loads(2*lookMost, many), strings.Repeat(strings.Repeat(".", lookMost)+"s", 2), false, false},
		{"load and a pause", append(loads(lookMost, many), 0), strings.Repeat(".", lookMost) + "s.f", true, false},
		{"a pause begins the second anew", append([]int64{100, 0}, loads(lookMost, 100)...), "..f" + strings.Repeat(".", lookMost) + "f", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got strings.Builder
			var l *lateLogs
			flush := func() error {
				got.WriteByte('f')
				if tc.during {
					tc.during = false
					l.wrote(100)
				}
				return nil
			}
			l, err := newLateLogs(vfs.NewMem(), "", flush, func(err error) { t.Error(err) })
			if err != nil {
				t.Fatal(err)
			}
			l.timer = time.AfterFunc(time.Hour, func() {}) // the looks are the test's
			l.open = newLateFile(l, saidFile{to: &got}, "")
			for _, n := range tc.writes {
				if n > 0 {
					l.wrote(int(n))
				}
				got.WriteByte('.')
				l.look()
				l.settle()
			}
			if got.String() != tc.want || l.armed.Load() == tc.ends {
				t.Errorf("got  %s, will look again: %v\nwant %s", got.String(), l.armed.Load(), tc.want)
			}
			if err := l.close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// saidFile says that it is synced.
type saidFile struct {
	vfs.File
	to *strings.Builder
}

func (f saidFile) SyncData() error { return f.to.WriteByte('s') }

// Close waits for the log, longer than for users of the store, and a look at the log isn't one.
func TestRelaxedCloseWaitsForTheLog(t *testing.T) {
	defer func(d time.Duration) { closeGrace = d }(closeGrace)
	closeGrace = time.Millisecond
	for _, looking := range []bool{false, true} {
		fs := &heldFS{FS: vfs.NewMem(), held: oneLog}
		e := mustOpen(t, "db", Options{FS: fs, Relaxed: true})
		writePair(t, e, 0)
		fs.busy.Lock()
		for end := time.Now().Add(20 * time.Second); looking && e.logs.strict.Load() == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nothing looks")
			}
		}
		var err error
		if !waitsFor(fs, func() { err = e.Close() }) || err != nil {
			t.Errorf("looking %v: closed before the log was on disk, or %v", looking, err)
		}
	}
}

// Whatever a crash of the machine leaves of what was not synced, a relaxed store opens and has the first batches, whole.
func TestRelaxedStoreAfterACrash(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 4
	}
	adopted, givenUp := 0, 0
	for round := range rounds {
		rng := rand.New(rand.NewPCG(7, uint64(round)))
		mem := vfs.NewCrashableMem()
		fs := &heldFS{FS: mem, held: oneLog}
		e := mustOpen(t, "db", Options{FS: fs, Relaxed: true, MemTableMB: 1})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 8_000 {
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
		wg.Go(func() { // now busy, now not
			for {
				fs.busy.Lock()
				time.Sleep(20 * time.Millisecond)
				fs.busy.Unlock()
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		for range 8 {
			time.Sleep(time.Duration(rng.IntN(15)) * time.Millisecond)
			clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 95, 100}[rng.IntN(4)], RNG: rng})
			heirs := len(heirsIn(t, clone))
			var said strings.Builder
			r, err := Open("db", Options{FS: clone, Relaxed: rng.IntN(2) == 0, Logger: slog.New(slog.NewTextHandler(&said, nil))})
			if err != nil {
				t.Fatal(err)
			}
			pairs(t, r)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			lost := strings.Count(said.String(), "are given up")
			adopted, givenUp = adopted+heirs-lost, givenUp+lost
		}
		close(stop)
		wg.Wait()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d logs had to wait for their names and got them, %d were given up", adopted, givenUp)
	if adopted == 0 || givenUp == 0 {
		t.Error("the crashes came when no log waited for its name")
	}
}

// What must be on disk in a relaxed store too: tables before the logs that they stand for are removed, ranges that were dropped,
// checkpoints.
func TestRelaxedStoreSyncsWhatItPromises(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*Engine) error
		dir  string
		want int
	}{
		{"flush", func(e *Engine) error { return e.db.Flush() }, "db", 1000},
		{"drop", func(e *Engine) error { return e.DropRange(context.Background(), []byte("x"), []byte("y")) }, "db", 1000},
		{"drop all", func(e *Engine) error { return e.DropRange(context.Background(), []byte("a"), []byte("c")) }, "db", 0},
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

// A store whose log can't be synced doesn't go on as if it were.
func TestRelaxedLogThatFails(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("db", 0o755); err != nil {
		t.Fatal(err)
	}
	var failed []error
	flush := func() error { return os.ErrClosed }
	l, err := newLateLogs(mem, "db", flush, func(err error) { failed = append(failed, err) })
	if err != nil {
		t.Fatal(err)
	}
	l.timer = time.AfterFunc(time.Hour, func() {})
	l.later(func() error { return os.ErrInvalid })
	l.settle()
	l.look() // nothing was written: a pause
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if len(failed) != 2 || !errors.Is(failed[0], os.ErrInvalid) || !errors.Is(failed[1], os.ErrClosed) {
		t.Errorf("got %v", failed)
	}
}
