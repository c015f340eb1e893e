package pebblekv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/internal/race"
)

// cutFS copies the file system below it before each operation that changes something: the copy is what a power failure
// at that moment leaves.
type cutFS struct {
	*vfs.MemFS
	rnd *rand.Rand

	mu   sync.Mutex
	cuts []cutCopy
}

// cutCopy is what a power failure leaves.
type cutCopy struct {
	fs      *vfs.MemFS
	percent int
	before  string // the operation before which the power failed
}

func (fs *cutFS) cut(op, name string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, percent := range []int{0, 1 + fs.rnd.IntN(99), 100} {
		c := cutCopy{before: op + " " + name, percent: percent}
		there := names(fs.MemFS)
		c.fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: fs.rnd})
		for name := range names(fs.MemFS) {
			there[name] = true
		}
		for name := range names(c.fs) { // removed while the directory isn't synced: MemFS keeps them all
			if !there[name] && !strings.HasPrefix(name, "marker.") && fs.rnd.IntN(100) < percent {
				_ = c.fs.Remove("db/" + name)
			}
		}
		fs.cuts = append(fs.cuts, c)
	}
}

func names(fs vfs.FS) map[string]bool {
	all := map[string]bool{}
	list, _ := fs.List("db")
	for _, n := range list {
		all[n] = true
	}
	return all
}

func (fs *cutFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	fs.cut("create", name)
	return fs.file(name)(fs.MemFS.Create(name, c))
}

func (fs *cutFS) Remove(name string) error {
	fs.cut("remove", name)
	return fs.MemFS.Remove(name)
}

func (fs *cutFS) Link(from, to string) error {
	fs.cut("link", to)
	return fs.MemFS.Link(from, to)
}

func (fs *cutFS) Rename(from, to string) error {
	fs.cut("rename", to)
	return fs.MemFS.Rename(from, to)
}

func (fs *cutFS) OpenDir(name string) (vfs.File, error) { return fs.file(name)(fs.MemFS.OpenDir(name)) }

func (fs *cutFS) file(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err != nil {
			return nil, err
		}
		return &cutFile{f, fs, name}, nil
	}
}

type cutFile struct {
	vfs.File
	fs   *cutFS
	name string
}

func (f *cutFile) Sync() error {
	f.fs.cut("sync", f.name)
	return f.File.Sync()
}

func (f *cutFile) SyncData() error {
	f.fs.cut("sync", f.name)
	return f.File.SyncData()
}

// Wherever the power fails while a store is created, opened, written to and closed, it can be opened again with all of
// its earlier content. That also holds if the power fails again during that open.
func TestCutsInOpenAndClose(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 8))
	tables, torn := cutStores(t, rnd)
	for _, c := range []struct {
		name string
		from *vfs.MemFS
		keys int
	}{
		{"none", vfs.NewCrashableMem(), 0},
		{"a store with tables and a log", tables, 400},
		{"a log that a crash has cut", torn, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := cutsOf(t, c.from, rnd, c.keys)
			again := 0
			for i, cut := range first {
				if i%12 != 0 {
					reopened(t, cut, c.keys)
					continue
				}
				for _, second := range cutsOf(t, cut.fs, rnd, c.keys) {
					again++
					second.before = cut.before + ", then " + second.before
					reopened(t, second, c.keys)
				}
			}
			t.Logf("%d cuts, and %d after another", len(first), again)
			if len(first) < 60 || again < 300 {
				t.Error("too few to say something")
			}
		})
	}
}

// cutStores makes stores of 400 keys: one that was closed, and one whose log ends with an incomplete record.
func cutStores(t *testing.T, rnd *rand.Rand) (closed, torn *vfs.MemFS) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, "db", Options{FS: fs, MemTableMB: 1})
	fill(t, e, 0, 300)
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	fill(t, e, 300, 100)
	torn = fs.CrashClone(vfs.CrashCloneCfg{})
	tear(t, torn, rnd)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return fs.CrashClone(vfs.CrashCloneCfg{}), torn
}

// tear appends the beginning of a record to the newest log: its header announces more bytes than follow.
func tear(t *testing.T, fs *vfs.MemFS, rnd *rand.Rand) {
	t.Helper()
	p, err := partsOf(fs, "db")
	if err != nil {
		t.Fatal(err)
	}
	newest := p.logs[len(p.logs)-1]
	f, err := fs.OpenReadWrite("db/"+newest.name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, syncedHeader+100)
	for i := range b {
		b[i] = byte(rnd.IntN(255)) + 1
	}
	binary.LittleEndian.PutUint16(b[4:], 1000)
	b[6] = 9 // a complete header of the kind with the synced offset
	binary.LittleEndian.PutUint32(b[7:], uint32(newest.num))
	if _, err := f.WriteAt(b, info.Size()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// cutsOf opens the store, writes to it, closes it, and returns the copies of all power failures.
func cutsOf(t *testing.T, from *vfs.MemFS, rnd *rand.Rand, keys int) []cutCopy {
	t.Helper()
	fs := &cutFS{MemFS: from.CrashClone(vfs.CrashCloneCfg{}), rnd: rnd}
	e, err := Open("db", Options{FS: fs, MemTableMB: 1, CacheMB: 1})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, e, keys, 2)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return fs.cuts
}

// reopened opens the copy of a power failure and finds its first keys.
func reopened(t *testing.T, c cutCopy, keys int) {
	t.Helper()
	e, err := Open("db", Options{FS: c.fs, MemTableMB: 1, CacheMB: 1})
	if err != nil {
		t.Errorf("cut before %s, %d %% of what wasn't synced: %v\n%s", c.before, c.percent, err, c.fs)
		return
	}
	for i := 0; i < keys; i += 17 {
		if _, err := e.Get(context.Background(), nil, fmt.Appendf(nil, "key %06d", i)); err != nil {
			t.Errorf("cut before %s, %d %%: key %d: %v", c.before, c.percent, i, err)
			break
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
