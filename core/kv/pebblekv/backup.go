package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

var _ kv.Backuper = (*Engine)(nil)

// stageName is a directory in the store's directory. It holds a checkpoint until the checkpoint's files are in a
// backup. It is on the file system of the tables, so that they can be linked. Open removes what a crash has left in it.
const stageName = "backup.tmp"

// copying says which copy of the store is being made.
type copying struct {
	one sync.Mutex // one at a time

	mu  sync.Mutex
	dir string // Pebble writes a copy into it; "": there is no copy now
}

func (c *copying) in(dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dir = dir
}

// has reports whether a file or directory belongs to the copy. An error of such a file doesn't stop the store.
func (c *copying) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	below, ok := strings.CutPrefix(name, c.dir)
	return c.dir != "" && ok && (below == "" || os.IsPathSeparator(below[0]))
}

// Checkpoint implements kv.Engine. It makes a complete store in dir, of hard links if the file system has them.
func (e *Engine) Checkpoint(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	if !e.gate.enter() {
		return kv.ErrClosed
	}
	defer e.gate.leave()
	e.disk.copying.one.Lock()
	defer e.disk.copying.one.Unlock()
	err := e.checkpoint(dir)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: checkpoint directory exists: %s", kv.ErrContract, dir)
	}
	return translate(err)
}

// Flush writes what is only in the log to tables, and returns when that is done, or after some time. A checkpoint that
// is made then has a short log, so that it is opened in a few milliseconds. It has everything in any case.
func (e *Engine) Flush(longest time.Duration) {
	if !e.gate.enter() {
		return
	}
	defer e.gate.leave()
	defer e.disk.fail.recovered()
	done, err := e.db.AsyncFlush()
	if err != nil { // a store that is open for reading only
		return
	}
	t := time.NewTimer(longest) // while the disk is full, flushes are repeated without end
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// checkpoint does the work of Checkpoint. The caller holds copying.one. The log is synced first, because a relaxed
// store may have acknowledged writes that are not in the log's file yet.
func (e *Engine) checkpoint(dir string) error {
	if err := e.syncedLog(); err != nil {
		return err
	}
	e.disk.copying.in(dir)
	defer e.disk.copying.in("")
	if err := e.linked(dir); err != nil {
		return err
	}
	return e.copyIdentity(dir)
}

// syncedLog is syncLog for callers other than writers. If the log fails, it ends the process.
func (e *Engine) syncedLog() error {
	defer e.disk.fail.recovered()
	return e.syncLog()
}

// linked makes a checkpoint with Pebble.
func (e *Engine) linked(dir string) (err error) {
	defer func() { // Pebble panics if it can't sync the new directory; the store itself is not affected
		if r := recover(); r != nil {
			err = fmt.Errorf("the checkpoint failed: %v", r)
		}
	}()
	return e.db.Checkpoint(dir)
}

// errBackupRuns is for a second backup.
var errBackupRuns = &kv.Refusal{Kind: kv.ErrUnavailable, Sentence: "A backup is being made already."}

// Backup implements kv.Backuper. First Pebble makes a checkpoint in the store's directory. Then the files of the
// checkpoint are linked or copied into the backup while requests go on.
func (e *Engine) Backup(ctx context.Context, to string, o kv.BackupOptions) (b kv.Backup, err error) {
	if !e.gate.enter() {
		return b, kv.ErrClosed
	}
	defer e.gate.leave()
	if e.disk.readOnly != nil {
		return b, e.disk.readOnly
	}
	if !e.disk.copying.one.TryLock() {
		return b, errBackupRuns
	}
	defer e.disk.copying.one.Unlock()
	if b, err = e.backup(ctx, to, o); err != nil {
		return b, backupRefusal(err)
	}
	return b, nil
}

// backupRefusal turns an error into a sentence that says why there is no backup.
func backupRefusal(err error) error {
	var r *kv.Refusal
	switch {
	case errors.As(err, &r):
		return r
	case vfs.IsNoSpaceError(err):
		return fullForBackup("The backup could not be written, the disk is full: %v", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refusedBackup("The backup was cancelled. The next one continues with the files that it has copied.")
	}
	return refusedBackup("The backup could not be made: %v", err)
}

func (e *Engine) backup(ctx context.Context, to string, o kv.BackupOptions) (b kv.Backup, err error) {
	fs, dir := e.disk.fs, e.dir.path
	if err := outside(fs, dir, to); err != nil {
		return b, err
	}
	if err := files.MakeDir(fs, to); err != nil {
		return b, err
	}
	stage := fs.PathJoin(dir, stageName)
	if err := fs.RemoveAll(stage); err != nil {
		return b, err
	}
	if err := e.roomToStage(); err != nil {
		return b, err
	}
	defer func() {
		if rerr := fs.RemoveAll(stage); rerr != nil {
			e.log.Warn("The remains of a backup can't be removed", "error", rerr)
		}
	}()
	if err := e.checkpoint(stage); err != nil {
		return b, err
	}
	if err := trimLogs(fs, stage); err != nil {
		return b, err
	}
	return backup.Take(ctx, backup.Job{
		Work: backup.Work{FS: fs, Pause: halfTheTime(), Progress: o.Progress},
		From: stage, Of: dir, To: to, Name: o.Name, Store: e.Identity().ID, Taken: o.Taken,
		Fits: func(n int64) error { return e.roomFor(n, to) },
	})
}

// copyIdentity copies the store's identity into a checkpoint.
func (e *Engine) copyIdentity(dir string) error {
	fs := e.disk.fs
	b, err := files.Read(fs, fs.PathJoin(e.dir.path, identityName))
	if files.IsMissing(err) && e.Identity().ID == "" { // a reader of a store that is older than identities
		return nil
	}
	if err != nil {
		return err
	}
	return files.Replace(fs, fs.PathJoin(dir, identityName), tempEnd, b)
}

// longestRest is the longest pause of a backup between two steps.
const longestRest = time.Second

// halfTheTime returns a pause that lasts as long as the work since the last pause. So half of the time is left to
// requests.
func halfTheTime() func(context.Context) error {
	begun := time.Now()
	return func(ctx context.Context) error {
		t := time.NewTimer(min(time.Since(begun), longestRest))
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		begun = time.Now()
		return nil
	}
}

// outside checks that the directory to is absolute, and that neither it nor the store's directory contains the other.
func outside(fs vfs.FS, store, to string) error {
	if vfs.Root(fs) != vfs.Default {
		return nil // in memory, for tests
	}
	if !filepath.IsAbs(to) {
		return refusedBackup("The directory %s is not absolute.", to)
	}
	a, b := realPath(filepath.Dir(absolute(store))), realPath(to)
	if within(a, b) || within(b, a) {
		return refusedBackup("Neither the directory of backups %s nor the data directory %s may contain the other.",
			to, a)
	}
	return nil
}

func refusedBackup(format string, args ...any) error {
	return &kv.Refusal{Kind: kv.ErrUnavailable, Sentence: fmt.Sprintf(format, args...)}
}

func fullForBackup(format string, args ...any) error {
	return &kv.Refusal{Kind: kv.ErrFull, Sentence: fmt.Sprintf(format, args...)}
}

// Within reports whether a path is a directory or in it, also by symbolic links.
func Within(dir, path string) bool { return within(realPath(absolute(dir)), realPath(absolute(path))) }

// within reports whether b is a or in a.
func within(a, b string) bool {
	rel, err := filepath.Rel(a, b)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// realPath resolves the symbolic links in the part of a path that exists.
func realPath(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(realPath(parent), filepath.Base(path))
}

// trimLogs truncates the logs of a checkpoint after the last complete record. They were copied while the store wrote to
// them. The removed bytes hold no acknowledged write.
func trimLogs(fs vfs.FS, dir string) error {
	p, err := partsOf(fs, dir)
	if err != nil {
		return err
	}
	for _, l := range p.logs {
		path := fs.PathJoin(dir, l.name)
		end, err := scanFile(fs, path, uint32(l.num), false, func(int64, []byte) error { return nil })
		if err != nil {
			return err
		}
		if end.how == endOpen || end.how == endClosed {
			continue
		}
		if err := keepFirst(fs, path, end.at); err != nil {
			return err
		}
	}
	return nil
}

// keepFirst truncates a file to its first n bytes.
func keepFirst(fs vfs.FS, path string, n int64) error {
	from, err := fs.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	b := make([]byte, n)
	if _, err := from.ReadAt(b, 0); err != nil {
		return err
	}
	to, err := fs.Create(path+tempEnd, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = to.Write(b)
	if err = errors.Join(err, to.Close()); err == nil {
		err = fs.Rename(path+tempEnd, path)
	}
	return err
}

// roomToStage checks that a checkpoint leaves enough space for the store. The logs are copied; without hard links the
// tables are copied too.
func (e *Engine) roomToStage() error {
	m := e.db.Metrics()
	n := int64(m.WAL.Size) + openRoom
	if !e.canLink() {
		n += int64(m.Total().TablesSize)
	}
	if !e.disk.mayMerge(n) {
		return fullForBackup("The store's disk has too little room for a backup, which needs %s there while it is "+
			"made. %s",
			size(n), e.disk.space.figures())
	}
	return nil
}

// canLink tries to make a hard link in the store's directory.
func (e *Engine) canLink() bool {
	fs := e.disk.fs
	name := fs.PathJoin(e.dir.path, stageName+tempEnd)
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return false
	}
	defer func() { _ = fs.Remove(name) }()
	if f.Close() != nil {
		return false
	}
	link := fs.PathJoin(e.dir.path, stageName+".link"+tempEnd)
	_ = fs.Remove(link)
	err = fs.Link(name, link)
	_ = fs.Remove(link)
	return err == nil
}

// roomFor checks that n bytes can be written to a directory. If that is on the store's disk, the space that the store
// needs stays free.
func (e *Engine) roomFor(n int64, to string) error {
	fs := e.disk.fs
	u, err := fs.GetDiskUsage(to)
	if err != nil {
		return nil // not all file systems report it
	}
	free := int64(u.AvailBytes)
	if a, err := fs.Stat(to); err == nil {
		if b, err := fs.Stat(e.dir.path); err == nil && a.DeviceID() == b.DeviceID() && e.disk.space.known {
			free -= e.disk.space.flushing.Load() + e.disk.space.minFree/2
		}
	}
	if n <= free {
		return nil
	}
	return fullForBackup("The backup needs %s in %s, and there is room for %s.", size(n), to, size(free))
}
