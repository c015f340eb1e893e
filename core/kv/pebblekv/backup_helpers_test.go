package pebblekv

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
)

// hookFS calls hook before each operation that changes something. The operation fails with the hook's error.
type hookFS struct {
	vfs.FS
	hook func(op, name string) error
	disk func(name string) string // files on different disks can't be linked; nil: all are on one
}

func (fs *hookFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.hook("create", name); err != nil {
		return nil, err
	}
	f, err := fs.FS.Create(name, c)
	return fs.file(name, f, err)
}

func (fs *hookFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return fs.file(name, f, err)
}

func (fs *hookFS) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &hookFile{f, fs, name}, nil
}

func (fs *hookFS) Link(from, to string) error {
	if err := fs.hook("link", to); err != nil {
		return err
	}
	if fs.disk != nil && fs.disk(from) != fs.disk(to) {
		return syscall.EXDEV
	}
	return fs.FS.Link(from, to)
}

func (fs *hookFS) Remove(name string) error {
	if err := fs.hook("remove", name); err != nil {
		return err
	}
	return fs.FS.Remove(name)
}

func (fs *hookFS) RemoveAll(name string) error {
	if err := fs.hook("remove all of", name); err != nil {
		return err
	}
	return fs.FS.RemoveAll(name)
}

func (fs *hookFS) Rename(from, to string) error {
	if err := fs.hook("rename", to); err != nil {
		return err
	}
	return fs.FS.Rename(from, to)
}

type hookFile struct {
	vfs.File
	fs   *hookFS
	name string
}

func (f *hookFile) Write(p []byte) (int, error) {
	if err := f.fs.hook("write", f.name); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *hookFile) Sync() error {
	if err := f.fs.hook("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *hookFile) SyncData() error {
	if err := f.fs.hook("sync", f.name); err != nil {
		return err
	}
	return f.File.SyncData()
}

// The directories of these tests, in memory.
const (
	storeDir = "db"
	toDir    = "backups"
)

// ofBackup reports whether a file belongs to a complete or unfinished backup: the store doesn't need it.
func ofBackup(name string) bool {
	return strings.HasPrefix(name, toDir) || strings.HasPrefix(name, storeDir+"/"+stageName)
}

// twoDisks puts the store and the backups on different disks.
func twoDisks(name string) string {
	disk, _, _ := strings.Cut(name, "/")
	return disk
}

func nothing(string, string) error { return nil }

// noLinks fails all hard links.
func noLinks(op, _ string) error {
	if op == "link" {
		return syscall.EPERM
	}
	return nil
}

var backups struct {
	sync.Mutex
	n int
}

// backUp makes a backup, one second after the previous one.
func backUp(ctx context.Context, e *Engine, progress func(done, total int64)) (kv.Backup, error) {
	backups.Lock()
	backups.n++
	n := backups.n
	backups.Unlock()
	o := kv.BackupOptions{Taken: time.Unix(1700000000+int64(n), 0), Progress: progress}
	var random [4]byte
	binary.BigEndian.PutUint32(random[:], uint32(n))
	o.Name = backup.Name(o.Taken, random)
	return e.Backup(ctx, toDir, o)
}

func mustBackUp(t testing.TB, e *Engine) kv.Backup {
	t.Helper()
	b, err := backUp(context.Background(), e, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// restored restores the newest backup into a directory and opens it.
func restored(t testing.TB, fs vfs.FS, dir string) *Engine {
	t.Helper()
	if err := restore(fs, dir); err != nil {
		t.Fatal(err)
	}
	return mustOpen(t, dir, Options{FS: fs})
}

// raisedKey is a key that a restore writes to the store before it is complete.
const raisedKey = "raised"

func restore(fs vfs.FS, dir string) error {
	from, m, err := backup.Pick(fs, toDir)
	if err != nil {
		return err
	}
	r, err := Restore(context.Background(), from, m, dir, Options{FS: fs}, nil)
	if err != nil {
		return err
	}
	e, err := Open(dir, Options{FS: fs, Restoring: true, CacheMB: 1})
	if err != nil {
		return errors.Join(err, r.Leave())
	}
	if err := errors.Join(put(e, raisedKey, []byte("1")), e.Close()); err != nil {
		return errors.Join(err, r.Leave())
	}
	return r.Done()
}

// wantWhole verifies the newest backup: each file, and as a store without problems.
func wantWhole(t testing.TB, fs vfs.FS) {
	t.Helper()
	dir, m, err := backup.Pick(fs, toDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := backup.Verify(context.Background(), backup.Work{FS: fs}, dir, m, func(file, what string) {
		t.Errorf("%s: %s: %s", dir, file, what)
	}); err != nil {
		t.Error(err)
	}
	e, err := Examine(context.Background(), fs.PathJoin(dir, backup.StoreName), Options{FS: fs},
		Watch{Report: func(p Problem) {
			t.Errorf("%s: %s", dir, p)
		}})
	if err != nil || e == nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// only lists the directory of backups without its lock.
func only(t testing.TB, fs vfs.FS) (out []string) {
	t.Helper()
	names, err := fs.List(toDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if n != "LOCK" {
			out = append(out, n)
		}
	}
	return out
}

// power is cut again and again.
type power struct {
	fs  *vfs.MemFS
	rnd *rand.Rand

	mu   sync.Mutex
	cuts []cutCopy
}

func (p *power) cut(op, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, percent := range []int{0, p.rnd.IntN(101), p.rnd.IntN(101), 100} {
		clone := p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: p.rnd})
		p.cuts = append(p.cuts, cutCopy{clone, percent, op + " " + name})
	}
}
