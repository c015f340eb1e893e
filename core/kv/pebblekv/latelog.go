package pebblekv

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// lateLogs deals with the logs of a relaxed store, where nobody waits for one to be on disk. When a memtable is full Pebble syncs and
// closes its log, makes the next one and syncs the directory, all with its commits locked; a busy disk takes half a second for that.
// Here this is done beside the writers, one thing after the other in Pebble's order.
//
// Invariant: a log has its name only when all before it are on disk, to their last byte. Pebble relies on it: it takes a log with a
// torn end for damage unless it is the last one. So a log is made under another name, that says what the one before it must hold, and
// gets its own when that is on disk. What a killed process leaves under such names adoptLogs looks at.
//
// Pebble keeps the last 32 KiB of a log to itself until somebody waits for a sync. So that what a crash may lose is a matter of time, look
// waits for one in every pause, and once a second in a trickle of writes. When many come in that could be where the log changes, so
// then the disk is told without Pebble, and all but the last 32 KiB is safe.
type lateLogs struct {
	fs     vfs.FS
	dir    vfs.File    // the store's
	fail   func(error) // a log isn't on disk and won't be
	strict atomic.Int32

	written atomic.Int64 // bytes of batches
	armed   atomic.Bool  // look will be called
	timer   *time.Timer
	flush   func() error // has Pebble sync its log

	looking sync.Mutex // these are look's
	rested  bool       // it does nothing more
	seen    int64      // written when it looked last
	synced  int64      // written when it last did something
	looks   int        // since then

	mu       sync.Mutex
	moved    sync.Cond // done has changed
	queue    []func() error
	running  bool
	added    uint64
	done     uint64
	open     *lateFile
	last     *ended // the log that was closed last
	expected bool   // the next sync of a directory is for the first log
	names    *lateDir
}

const (
	lookDelay = 50 * time.Millisecond // without a write: a pause
	lookMost  = 20                    // so many without a pause: a second
	trickle   = 1 << 20               // bytes in a second: less fills a memtable of 16 MiB in ten seconds at the soonest
)

// newLateLogs serves the store in dir; flush has Pebble sync its log.
func newLateLogs(fs vfs.FS, dir string, flush func() error, fail func(error)) (*lateLogs, error) {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	l := &lateLogs{fs: fs, dir: d, fail: fail, flush: flush}
	l.moved.L = &l.mu
	l.timer = time.AfterFunc(time.Hour, l.look)
	l.timer.Stop()
	return l, nil
}

// create makes a log. The first one of a process, which follows on no open log, is made as Pebble asks.
func (l *lateLogs) create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	l.mu.Lock()
	last := l.last
	l.expected = last == nil
	l.mu.Unlock()
	first := name
	if last != nil {
		first = l.fs.PathJoin(l.fs.PathDir(name), heir{log: logName(l.fs, name), after: *last}.String())
	}
	f, err := l.fs.Create(first, category)
	if err != nil {
		return nil, err
	}
	if last != nil {
		l.later(func() error {
			if err := l.fs.Rename(first, name); err != nil {
				return err
			}
			return l.dir.Sync()
		})
	}
	log := newLateFile(l, f, logName(l.fs, name))
	l.mu.Lock()
	l.open = log
	l.mu.Unlock()
	return log, nil
}

// later has f run behind all that was handed over before.
func (l *lateLogs) later(f func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(f)
}

// push is later with mu held.
func (l *lateLogs) push(f func() error) {
	l.queue = append(l.queue, f)
	l.added++
	if !l.running {
		l.running = true
		go l.run()
	}
}

// run ends when nothing is left.
func (l *lateLogs) run() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		f := l.queue[0]
		l.queue = l.queue[1:]
		l.mu.Unlock()
		if err := f(); err != nil {
			l.fail(err)
		}
		l.mu.Lock()
		l.done++
		l.moved.Broadcast()
	}
	l.running, l.queue = false, nil
}

// wrote counts a batch of n bytes that Pebble has applied.
func (l *lateLogs) wrote(n int) {
	l.written.Add(int64(n))
	if !l.armed.Load() && !l.armed.Swap(true) {
		l.timer.Reset(lookDelay)
	}
}

// look has what was written reach the disk; it comes again until a pause.
func (l *lateLogs) look() {
	l.looking.Lock()
	defer l.looking.Unlock()
	if l.rested {
		return
	}
	n := l.written.Load()
	pause := n == l.seen
	l.seen = n
	if l.looks++; pause || l.looks == lookMost {
		if pause || n-l.synced < trickle {
			if err := l.flush(); err != nil {
				l.fail(err)
			}
		} else {
			l.syncOpen()
		}
		l.synced, l.looks = n, 0
	}
	if pause {
		l.armed.Store(false)
		if l.written.Load() == n || l.armed.Swap(true) { // a write during flush has left the timer alone
			return
		}
	}
	l.timer.Reset(lookDelay)
}

// syncOpen has the disk write what the file system has of the log.
func (l *lateLogs) syncOpen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.open; f != nil {
		l.push(f.File.SyncData)
	}
}

// settle waits for all that was handed over before.
func (l *lateLogs) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for goal := l.added; l.done < goal; {
		l.moved.Wait()
	}
}

// durably calls f, in which a sync of the log returns when it is on disk.
func (l *lateLogs) durably(f func() error) error {
	if l == nil {
		return f()
	}
	l.strict.Add(1)
	defer l.strict.Add(-1)
	return f()
}

// rest waits for a look that is under way, and has no other one come: Pebble is about to be closed.
func (l *lateLogs) rest() {
	if l == nil {
		return
	}
	l.looking.Lock()
	defer l.looking.Unlock()
	l.rested = true
}

// close is for when Pebble has closed the last log.
func (l *lateLogs) close() error {
	if l == nil {
		return nil
	}
	l.settle()
	return l.dir.Close()
}

// lateFile is a log of a relaxed store.
type lateFile struct {
	vfs.File
	late   *lateLogs
	name   string
	end    int64
	sum    *xxhash.Digest // of what was written
	behind atomic.Int64   // up to here the disk should write; 0: nobody has asked since it was told
}

func newLateFile(l *lateLogs, f vfs.File, name string) *lateFile {
	return &lateFile{File: f, late: l, name: name, sum: xxhash.New()}
}

// Preallocate implements vfs.File. Room that is asked for beforehand makes syncs cheaper, which nobody waits for; asking has taken
// a busy disk half a second.
func (f *lateFile) Preallocate(_, _ int64) error { return nil }

// Write implements vfs.File.
func (f *lateFile) Write(p []byte) (int, error) {
	_, _ = f.sum.Write(p) // before the file system has it, which may change p
	n, err := f.File.Write(p)
	f.end += int64(n)
	return n, err
}

// SyncTo implements vfs.File: the writer of the log doesn't wait for the disk.
func (f *lateFile) SyncTo(n int64) (bool, error) {
	if f.behind.Swap(n) == 0 {
		f.late.later(func() error {
			_, err := f.File.SyncTo(f.behind.Swap(0))
			return err
		})
	}
	return false, nil
}

// SyncData implements vfs.File.
func (f *lateFile) SyncData() error {
	if f.late.strict.Load() == 0 {
		return nil
	}
	f.late.settle()
	return f.File.SyncData()
}

// Sync implements vfs.File.
func (f *lateFile) Sync() error { return f.SyncData() }

// Close implements vfs.File.
func (f *lateFile) Close() error {
	l := f.late
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.last = nil, &ended{f.name, f.end, f.sum.Sum64()}
	l.push(func() error { return errors.Join(f.File.SyncData(), f.File.Close()) })
	return nil
}

// lateDir is an open directory. Pebble has one of its own for the names of logs, which it syncs whenever it has made a log and never
// else: the names then come later.
type lateDir struct {
	vfs.File
	late *lateLogs
}

// Sync implements vfs.File. Pebble makes the first log while it opens the store, where nothing else is under way: whichever
// directory it syncs next is the one for logs.
func (d *lateDir) Sync() error {
	l := d.late
	l.mu.Lock()
	skip := l.names == d
	if l.expected {
		l.expected, l.names = false, d
	}
	l.mu.Unlock()
	if skip {
		return nil
	}
	return d.File.Sync()
}
