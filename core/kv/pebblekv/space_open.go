package pebblekv

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// newDisk looks at the disk below dir before anything is opened. It starts to watch: an open that hangs ends the process, too.
func newDisk(dir string, o *Options) *disk {
	d := &disk{dir: dir, fs: o.FS, log: o.Logger, stop: make(chan struct{}), closed: make(chan struct{})}
	d.fail.end = o.Fatal
	d.stall.init(o.Stall)
	d.space.poke = make(chan struct{}, 1)
	d.space.memTable = int64(o.MemTableMB) << 20
	d.space.ballast.path = o.FS.PathJoin(dir, ballastName)
	go d.watch()
	place := d.stall.begin(lookAtSpace, dir)
	u, err := o.FS.GetDiskUsage(dir)
	d.stall.end(place)
	if err == nil && u.TotalBytes > 0 {
		d.space.size(u, o.MinFree, d.space.memTable)
		d.space.ballast.size = min(d.space.minFree/4, d.space.memTable)
	}
	return d
}

// openRoom is what an open needs beside the logs that it flushes and the manifest that it copies.
const openRoom = 1 << 20

// fit decides how the store can be opened. On a full disk that doesn't take the flush of what is in the logs it is for reading only: Pebble
// would try that flush for ever. A store that isn't there yet can't be made then.
func (d *disk) fit() error {
	s := &d.space
	s.ballast.find(d.fs)
	if !s.known {
		return nil
	}
	needs, exists, err := d.needs()
	if err != nil {
		return translate(err)
	}
	if s.free.Load() < needs && s.ballast.drop(d.fs) {
		if u, err := d.fs.GetDiskUsage(d.dir); err == nil {
			s.free.Store(int64(u.AvailBytes))
		}
	}
	if s.free.Load() >= needs {
		d.refit()
		return nil
	}
	s.atOpen = fmt.Sprintf("%s are free of %s, and %s are needed to open the store for writing.", size(s.free.Load()), size(s.total), size(needs))
	if !exists {
		return fmt.Errorf("%w: the disk is full: %s", kv.ErrFull, s.atOpen)
	}
	d.readsOnly(&kv.Refusal{Kind: kv.ErrFull,
		Sentence: "The server's disk was full when it started: all writes are refused until it is started again with more room, reads go on."})
	return nil
}

// needs returns how many bytes an open may write, and whether there is a store.
func (d *disk) needs() (n int64, exists bool, err error) {
	names, err := d.fs.List(d.dir)
	if err != nil {
		return 0, false, err
	}
	n = openRoom
	for _, name := range names {
		log, manifest := strings.HasSuffix(name, logSuffix), strings.HasPrefix(name, "MANIFEST-")
		if !log && !manifest {
			continue
		}
		exists = exists || manifest
		i, err := d.fs.Stat(d.fs.PathJoin(d.dir, name))
		if err == nil {
			n += i.Size()
		}
	}
	return n, exists, nil
}

// readsOnly has the store opened for reading only.
func (d *disk) readsOnly(why *kv.Refusal) {
	d.readOnly = why
	d.refused.Or(refuseReadOnly)
	d.log.Error(why.Sentence + " " + d.space.atOpen)
}

// lock takes the directory for this process. On a read-only file system nobody can write, and none is needed.
func (d *disk) lock() (*pebble.Lock, error) {
	l, err := pebble.LockDirectory(d.dir, d.fs)
	if errors.Is(err, syscall.EROFS) {
		d.readsOnly(errReadOnlyDisk)
		return nil, nil
	}
	return l, err
}

// start begins to follow the free space of an open store. While there is too little of it tidy is called at every look.
func (d *disk) start(db *pebble.DB, tidy func()) {
	d.running.Store(d.readOnly == nil)
	if d.space.known && d.readOnly == nil {
		d.minding.Go(func() { d.mind(db.Metrics, tidy) })
	}
}

// rest ends the look at the free space, and the pauses of work that Pebble's Close waits for.
func (d *disk) rest() {
	d.running.Store(false)
	close(d.stop)
	d.minding.Wait()
}

// close ends the watching, when the store is closed: a Close that hangs ends the process, too.
func (d *disk) close() { close(d.closed) }

// unlocked is a file system where locks are taken for granted.
type unlocked struct{ vfs.FS }

// Lock implements vfs.FS.
func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }
