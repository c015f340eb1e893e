package pebblekv

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/internal/race"
)

func smallStore(t *testing.T, fs vfs.FS, log *lines) *Engine {
	t.Helper()
	return mustOpen(t, "store", Options{FS: fs, Logger: log.logger(), Fatal: mustFail(t)})
}

// On a full disk new data is refused, while deletes, drops and reads continue. When there is space again, it is
// accepted.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := race.Fewer(64, 12) << 20
	fs, log := newSmallFS(int64(disk)), &lines{}
	e := smallStore(t, fs, log)
	defer e.Close()
	n := 0
	for e.Health().State != kv.Full { // a late merge frees space again
		more, err := fillUpWith(e, disk/(10<<10), func(i int) string { return keyName(n + i) })
		if n += more; !errors.Is(err, kv.ErrFull) {
			t.Fatalf("%d values, then %v", n, err)
		}
		eventually(t, "there is room for the next merge", func() bool {
			return e.disk.space.mayMerge(nextMerge(e.db.Metrics()))
		})
	}
	if least := disk / 2 / (10 << 10); n < least {
		t.Errorf("refused after %d values, at least %d should fit", n, least)
	}
	if h := e.Health(); h.State != kv.Full || !strings.Contains(h.Reason, "--min-free") {
		t.Errorf("health %+v", h)
	}
	if got := count(t, e); got != n {
		t.Errorf("%d of %d values are read", got, n)
	}
	for i := range 100 {
		if err := del(e, keyName(i)); err != nil {
			t.Fatalf("delete %d: %v", i, err)
		}
	}
	if err := e.DropRange(context.Background(), []byte(keyName(100)), []byte(keyName(200))); err != nil {
		t.Error("drop:", err)
	}
	if got := count(t, e); got != n-200 {
		t.Errorf("%d of %d values are left", got, n-200)
	}
	fs.mu.Lock()
	fs.total *= 4
	fs.mu.Unlock()
	eventually(t, "health is well again", is(e, kv.Well))
	if err := put(e, "k1", []byte("v")); err != nil {
		t.Error("with room again:", err)
	}
	if n := strings.Count(log.text(), "\n"); n > 2 {
		t.Errorf("%d lines of log:\n%s", n, log.text())
	}
}

// A delete on a full disk frees space without any further action.
func TestFullDiskDeleteMakesRoom(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]func(int) string{"in order": keyName, "scattered": scattered} {
		t.Run(name, func(t *testing.T) {
			disk := race.Fewer(64, 12) << 20
			e := smallStore(t, newSmallFS(int64(disk)), &lines{})
			defer e.Close()
			n, err := fillUpWith(e, disk/(10<<10), key)
			if !errors.Is(err, kv.ErrFull) {
				t.Fatal(err)
			}
			for i := range n {
				eventually(t, "a delete goes through", func() bool { // a merge may use the space for a moment
					err := del(e, key(i))
					if err != nil && !errors.Is(err, kv.ErrFull) {
						t.Fatalf("delete %d of %d: %v", i, n, err)
					}
					return err == nil
				})
			}
			eventually(t, "there is room for a value", func() bool { return put(e, "k", make([]byte, 10<<10)) == nil })
		})
	}
}

// Other programs use the remaining space: deletes are refused too. They continue when the space is free again.
func TestSecondFloor(t *testing.T) {
	fs := newSmallFS(256 << 20)
	e := smallStore(t, fs, &lines{})
	defer e.Close()
	if _, err := fillUp(e, 100); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ballast is there", fs.hasBallast)
	fs.take(int64(e.disk.space.minFree) / 2)
	eventually(t, "deletes are refused", func() bool { return errors.Is(del(e, "k"), kv.ErrFull) })
	if h := e.Health(); h.State != kv.ReadOnly || h.Reason == "" {
		t.Errorf("health %+v", h)
	}
	if got := count(t, e); got != 100 {
		t.Errorf("%d values are read", got)
	}
	fs.give()
	eventually(t, "health is well again", is(e, kv.Well))
	if err := del(e, keyName(0)); err != nil {
		t.Error(err)
	}
}

// Other programs use every byte while writers run. The process continues, nothing acknowledged is lost, and the writes
// continue by themselves.
func TestNoRoomAtAll(t *testing.T) {
	fs, log := newSmallFS(256<<20), &lines{}
	e := smallStore(t, fs, log)
	stop, kept := make(chan struct{}), sync.Map{}
	var wg sync.WaitGroup
	var after atomic.Int64
	given := make(chan struct{})
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := keyName(w*100000 + i)
				err := put(e, key, []byte(strings.Repeat(key, 100)))
				switch {
				case err == nil:
					kept.Store(key, true)
					select {
					case <-given:
						after.Add(1)
					default:
					}
				case !errors.Is(err, kv.ErrFull):
					t.Error(err)
					return
				default:
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	for range 3 {
		eventually(t, "the ballast is there", fs.hasBallast)
		fs.take(0)
		eventually(t, "writes are refused", func() bool { return errors.Is(put(e, "k", []byte("v")), kv.ErrFull) })
		time.Sleep(50 * time.Millisecond)
		fs.give()
		eventually(t, "health is well again", is(e, kv.Well))
	}
	close(given)
	eventually(t, "writes go on", func() bool { return after.Load() > 100 })
	close(stop)
	wg.Wait()
	eventually(t, "the ballast is there again", fs.hasBallast)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = smallStore(t, fs, log)
	defer e.Close()
	kept.Range(func(k, _ any) bool {
		if _, err := e.Get(context.Background(), nil, []byte(k.(string))); err != nil {
			t.Errorf("%s: %v", k, err)
		}
		return true
	})
	if n := strings.Count(log.text(), "\n"); n > 4 {
		t.Errorf("%d lines of log:\n%s", n, log.text())
	}
}

// A store whose logs can't be flushed at the open is read-only. An open with more space works as usual.
func TestFullAtOpen(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	for _, relaxed := range []bool{false, true} {
		fs, log := newSmallFS(256<<20), &lines{}
		o := Options{FS: fs, Logger: log.logger(), Fatal: mustFail(t), Relaxed: relaxed}
		e := mustOpen(t, "store", o)
		if _, err := fillUp(e, 100); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		_ = fs.Remove("store/ballast")
		fs.take(100 << 10)
		before, _ := fs.List("store")
		slices.Sort(before)
		e = mustOpen(t, "store", o)
		if h := e.Health(); h.State != kv.ReadOnly || !strings.Contains(h.Reason, " are free, and ") {
			t.Errorf("health %+v", h)
		}
		if got := count(t, e); got != 100 {
			t.Errorf("%d values are read", got)
		}
		if err := put(e, "k", []byte("v")); !errors.Is(err, kv.ErrFull) {
			t.Errorf("a write: %v", err)
		}
		if err := del(e, "k"); !errors.Is(err, kv.ErrFull) {
			t.Errorf("a delete: %v", err)
		}
		if err := e.DropRange(context.Background(), []byte("a"), []byte("b")); !errors.Is(err, kv.ErrFull) {
			t.Errorf("a drop: %v", err)
		}
		select {
		case <-e.Room():
			t.Error("there is room")
		case <-time.After(2 * spaceTick):
		}
		fs.give()
		eventually(t, "there is room", func() bool {
			select {
			case <-e.Room():
				return true
			default:
				return false
			}
		})
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		after, _ := fs.List("store")
		if slices.Sort(after); !slices.Equal(after, before) {
			t.Errorf("files before %v, after %v", before, after)
		}
		e = mustOpen(t, "store", o)
		if err := put(e, "k", []byte("v")); err != nil || e.Room() != nil {
			t.Error(err, e.Room())
		}
		if got := count(t, e); got != 101 {
			t.Errorf("%d values are read", got)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An open can use the space of the ballast.
func TestBallastServesOpen(t *testing.T) {
	fs := newSmallFS(1 << 30)
	e := smallStore(t, fs, &lines{})
	eventually(t, "the ballast is there", fs.hasBallast)
	if _, err := fillUp(e, 100); err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
	fs.take(0)
	e = smallStore(t, fs, &lines{})
	defer e.Close()
	if got := count(t, e); got != 100 || e.disk.readOnly != nil {
		t.Errorf("%d values are read, %v", got, e.Health())
	}
	if err := del(e, "k"); !errors.Is(err, kv.ErrFull) {
		t.Errorf("a delete: %v", err)
	}
	fs.give()
	eventually(t, "health is well again", is(e, kv.Well))
}

// A store can't be made on a full disk.
func TestNewStoreOnFullDisk(t *testing.T) {
	fs := newSmallFS(64 << 20)
	fs.take(10 << 10)
	if e, err := Open("store", Options{FS: fs, Fatal: mustFail(t)}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("%v, %v", e, err)
	}
}

// erofs fails everything that a read-only file system refuses.
type erofs struct{ vfs.FS }

func (erofs) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, syscall.EROFS }
func (erofs) Lock(string) (io.Closer, error)                         { return nil, syscall.EROFS }
func (erofs) Remove(string) error                                    { return syscall.EROFS }
func (erofs) MkdirAll(string, os.FileMode) error                     { return syscall.EROFS }
func (erofs) Rename(string, string) error                            { return syscall.EROFS }
func (erofs) Link(string, string) error                              { return syscall.EROFS }
func (erofs) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, syscall.EROFS
}

func TestReadOnlyFileSystem(t *testing.T) {
	fs := vfs.NewMem()
	o := Options{FS: fs, Fatal: mustFail(t)}
	e := mustOpen(t, "store", o)
	if _, err := fillUp(e, 10); err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
	o.FS = erofs{fs}
	e = mustOpen(t, "store", o)
	defer e.Close()
	if h := e.Health(); h.State != kv.ReadOnly || !strings.Contains(h.Reason, "read-only") {
		t.Errorf("health %+v", h)
	}
	if got := count(t, e); got != 10 {
		t.Errorf("%d values are read", got)
	}
	if err := put(e, "k", []byte("v")); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("a write: %v", err)
	}
	if _, err := Open("none", o); !errors.Is(err, kv.ErrUnavailable) ||
		!strings.Contains(err.Error(), "the file system is read-only") {
		t.Errorf("a store that isn't there: %v", err)
	}
}

// Merges leave the last space to logs and flushes: a merge that would use it fails, waits, and runs when there is
// space.
func TestMergesLeaveRoomForFlushes(t *testing.T) {
	fs, log := newSmallFS(64<<20), &lines{}
	e := smallStore(t, fs, log)
	defer e.Close()
	merge := holdMerges(t, e)
	for range 2 { // runs with the same keys
		if _, err := fillUp(e, 500); err != nil {
			t.Fatal(err)
		}
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "nothing waits for its flush", func() bool {
		e.disk.space.again()
		return e.disk.space.flushing.Load() == e.disk.space.memTable
	})
	merge()
	eventually(t, "a merge has failed, the next one waits", func() bool {
		fs.take(e.disk.space.flushing.Load() + e.disk.space.minFree/4 - 1) // again, as obsolete files are deleted
		e.disk.space.again()
		return e.pace.held() > 0
	})
	if free := e.disk.space.free.Load(); free < e.disk.space.flushing.Load() {
		t.Errorf("%d bytes are left, flushes need %d", free, e.disk.space.flushing.Load())
	}
	eventually(t, "it was told", func() bool { return log.count("the remaining space is kept") > 0 })
	if n := log.count("the remaining space is kept"); n > 1 {
		t.Errorf("%d lines of log:\n%s", n, log.text())
	}
	fs.give()
	eventually(t, "merges may run", func() bool { return e.pace.held() == 0 })
	if err := e.db.Compact(context.Background(), []byte("k"), []byte("l"), false); err != nil {
		t.Errorf("a merge when there is room again: %v", err)
	}
	if n := e.db.Metrics().Levels[0].TablesCount; n != 0 {
		t.Errorf("%d tables have not been merged", n)
	}
}

// faultyFS fails operations on files that match.
type faultyFS struct {
	vfs.FS
	fails atomic.Pointer[func(op, name string) error]
	hits  atomic.Int64
}

func (fs *faultyFS) set(f func(op, name string) error) { fs.fails.Store(&f) }

func (fs *faultyFS) look(op, name string) error {
	if f := fs.fails.Load(); f != nil {
		if err := (*f)(op, filepath.Base(name)); err != nil {
			fs.hits.Add(1)
			return err
		}
	}
	return nil
}

func (fs *faultyFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.look("create", name); err != nil {
		return nil, err
	}
	f, err := fs.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, fs, name}, nil
}

func (fs *faultyFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return &faultyFile{f, fs, name}, err
}

type faultyFile struct {
	vfs.File
	fs   *faultyFS
	name string
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.fs.look("write", f.name); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *faultyFile) Sync() error {
	if err := f.fs.look("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) SyncData() error {
	if err := f.fs.look("sync", f.name); err != nil {
		return err
	}
	return f.File.SyncData()
}

// failing makes one operation on files with a suffix or prefix fail.
func failing(op, part string, err error) func(string, string) error {
	return func(o, name string) error {
		if o == op && (strings.HasSuffix(name, part) || strings.HasPrefix(name, part)) {
			return err
		}
		return nil
	}
}

// Flushes that fail for another reason are tried again, but not a hundred times a second. Until one succeeds, writes
// are refused before they would hang.
func TestFlushFails(t *testing.T) {
	fs, log := &faultyFS{FS: vfs.NewMem()}, &lines{}
	e := mustOpen(t, "store", Options{FS: fs, Logger: log.logger(), Fatal: mustFail(t), MemTableMB: 1})
	defer e.Close()
	fs.set(failing("write", ".sst", syscall.EIO))
	n, err := fillUp(e, 10000)
	if !errors.Is(err, kv.ErrUnavailable) {
		t.Fatalf("%d values, then %v", n, err)
	}
	if h := e.Health(); h.State != kv.ReadOnly || h.Reason == "" {
		t.Errorf("health %+v", h)
	}
	if got := count(t, e); got != n {
		t.Errorf("%d of %d values are read", got, n)
	}
	time.Sleep(time.Second)
	if n := fs.hits.Load(); n > 6 {
		t.Errorf("%d tries in a second", n)
	}
	if n := strings.Count(log.text(), "\n"); n > 3 {
		t.Errorf("%d lines of log:\n%s", n, log.text())
	}
	fs.set(func(string, string) error { return nil })
	eventually(t, "health is well again", is(e, kv.Well))
	if err := put(e, "k", []byte("v")); err != nil {
		t.Error(err)
	}
}

func TestSpaceFitsTheDisk(t *testing.T) {
	for _, c := range []struct{ total, given, minFree, memTable, base int64 }{
		{8 << 20, 0, 8 << 20 / 100 * 5, 256 << 10, 512 << 10},
		{64 << 20, 0, 64 << 20 / 100 * 5, 1 << 20, 4 << 20},
		{512 << 20, 0, 512 << 20 / 100 * 5, 8 << 20, 32 << 20},
		{1 << 30, 0, 1 << 30 / 100 * 5, 16 << 20, 64 << 20},
		{5 << 30, 0, 256 << 20, 16 << 20, 256 << 20},
		{1 << 40, 0, 256 << 20, 16 << 20, 256 << 20},
		{1 << 40, 2 << 30, 2 << 30, 16 << 20, 256 << 20},
		{64 << 20, 16 << 20, 16 << 20, 1 << 20, 4 << 20},
	} {
		var s space
		s.size(vfs.DiskUsage{TotalBytes: uint64(c.total)}, c.given, DefaultMemTableMB<<20)
		if s.minFree != c.minFree || s.memTable != c.memTable || s.base != c.base {
			t.Errorf("a disk of %d with --min-free %d: %d are kept, a memtable has %d, the base level %d; want %d, "+
				"%d and %d",
				c.total, c.given, s.minFree, s.memTable, s.base, c.minFree, c.memTable, c.base)
		}
	}
}

// nextMerge finds the largest of the possible merges: L0 into the base level, or a table into the level below.
func TestNextMerge(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels map[int]pebble.LevelMetrics
		want   int64
	}{
		{"nothing is flushed", nil, 0},
		{"L0 alone", map[int]pebble.LevelMetrics{0: tables(3, 30)}, 30},
		{"L0 and the base level", map[int]pebble.LevelMetrics{0: tables(3, 30), 6: tables(10, 100)}, 130},
		{"L0 has been merged", map[int]pebble.LevelMetrics{5: tables(2, 20), 6: tables(10, 60)}, 80},
		{"a table of L5 has ten below it",
			map[int]pebble.LevelMetrics{0: tables(1, 10), 5: tables(2, 20), 6: tables(10, 200)}, 220},
		{"the last levels count", map[int]pebble.LevelMetrics{4: tables(4, 8), 5: tables(8, 80), 6: tables(80, 800)},
			220},
	} {
		var m pebble.Metrics
		for i, l := range c.levels {
			m.Levels[i] = l
		}
		if got := nextMerge(&m); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func tables(n, size int64) pebble.LevelMetrics {
	return pebble.LevelMetrics{TablesCount: n, TablesSize: size}
}

// The refusals depend on the free space. They end only with a little more space than the limit.
func TestFloors(t *testing.T) {
	var s space
	s.minFree = 80
	s.flushing.Store(15)
	s.merging.Store(5)
	for _, c := range []struct {
		free         int64
		before, want uint32
	}{
		{100, 0, 0}, {99, 0, refuseData}, {55, 0, refuseData}, {54, 0, refuseAll},
		{100, refuseData, refuseData}, {109, refuseData, refuseData}, {110, refuseData, 0},
		{64, refuseAll, refuseAll}, {65, refuseAll, refuseData}, {110, refuseAll, 0},
	} {
		if s.free.Store(c.free); s.refuses(c.before) != c.want {
			t.Errorf("%d free, before %b: %b, want %b", c.free, c.before, s.refuses(c.before), c.want)
		}
	}
}

func TestOneLineAMinute(t *testing.T) {
	var e everyMinute
	for i := range 5 {
		if e.may() != (i == 0) {
			t.Errorf("message %d", i)
		}
	}
	e.last = e.last.Add(-time.Minute)
	if left, ok := e.pass(); left != 4 || !ok {
		t.Errorf("a minute later: %d, %v", left, ok)
	}
}
