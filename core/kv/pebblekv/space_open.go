package pebblekv

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// newDisk prepares the state of the disk before anything is opened. It starts to watch for stalled operations, so an
// open that hangs ends the process too.
func newDisk(dir string, o *Options) *disk {
	d := &disk{dir: dir, fs: o.FS, log: o.Logger, stop: make(chan struct{}), closed: make(chan struct{})}
	d.single.init(o.FS)
	d.fail.end = o.Fatal
	d.stall.init(o.Stall)
	d.space.poke = make(chan struct{}, 1)
	d.space.memTable, d.space.base = int64(o.MemTableMB)<<20, largestBase
	d.space.ballast.path = o.FS.PathJoin(dir, ballastName)
	go d.watch()
	return d
}

// claim locks the directory, and decides whether the store can be opened for writing. It can't if the disk has too
// little space to flush the logs: Pebble would try that flush forever.
func (d *disk) claim(o *Options) (*claimed, error) {
	if o.ReadOnly {
		d.readOnly = errOpenedReadOnly
		d.refused.Or(refuseReadOnly)
		return claim(d.dir, o)
	}
	needs, err := d.fit(o.MinFree)
	if err != nil {
		return nil, translate(err)
	}
	if needs > d.space.free.Load()+d.space.ballast.held() && d.space.known {
		c, err := d.reading(o, errFullAtOpen)
		if errors.Is(err, ErrNoStore) {
			err = fmt.Errorf("%w: the disk is full: %s", kv.ErrFull, d.space.atOpen)
		}
		return c, err
	}
	c, err := claim(d.dir, o)
	if errors.Is(err, syscall.EROFS) {
		c, err := d.reading(o, errReadOnlyDisk)
		if errors.Is(err, ErrNoStore) {
			err = fmt.Errorf("%w: %s: no store can be made: %w", kv.ErrUnavailable, d.dir, errReadOnlyFS)
		}
		return c, err
	}
	if err == nil && d.space.known {
		if needs > d.space.free.Load() && d.space.ballast.drop(d.fs) {
			d.size(o.MinFree)
		}
		d.refit()
	}
	return c, err
}

// reading locks the directory for reading only.
func (d *disk) reading(o *Options, why *kv.Refusal) (*claimed, error) {
	o.ReadOnly = true
	if why != errFullAtOpen {
		d.space.atOpen = ""
	}
	c, err := claim(d.dir, o)
	if err == nil {
		d.readOnly = why
		if why == errFullAtOpen {
			d.room = make(chan struct{})
		}
		d.refused.Or(refuseReadOnly)
		d.log.Error(d.health().Reason)
	}
	return c, err
}

// openRoom is the space that an open needs in addition to flushed logs and the copy of the manifest.
const openRoom = 1 << 20

// fit sets the limits for the disk, and returns how many bytes an open for writing may need.
func (d *disk) fit(minFree int64) (needs int64, err error) {
	d.space.ballast.find(d.fs)
	d.size(minFree)
	if needs, err = d.needs(); err == nil {
		d.space.enough = needs + d.space.minFree/2
		d.space.atOpen = fmt.Sprintf("%s of %s are free, and %s are needed to open the store for writing.",
			size(d.space.free.Load()), size(d.space.total), size(needs))
	}
	return needs, err
}

// size asks the file system for the size of the disk and the free space. Not every file system reports them.
func (d *disk) size(minFree int64) {
	place := d.stall.begin(lookAtSpace, d.dir)
	defer d.stall.end(place)
	for dir := d.dir; ; {
		u, err := d.fs.GetDiskUsage(dir)
		if err == nil && u.TotalBytes > 0 {
			d.space.size(u, minFree, d.space.memTable)
			return
		}
		parent := d.fs.PathDir(dir) // the directory doesn't exist yet
		if parent == dir {
			return
		}
		dir = parent
	}
}

// needs returns how many bytes an open may write: it flushes the logs and copies the manifest.
func (d *disk) needs() (int64, error) {
	p, err := partsOf(d.fs, d.dir)
	if err != nil && !files.IsMissing(err) {
		return 0, err
	}
	n := int64(openRoom)
	for _, f := range append(p.logs, p.manifests...) {
		if i, err := d.fs.Stat(d.fs.PathJoin(d.dir, f.name)); err == nil {
			n += i.Size()
		}
	}
	return n, nil
}

// start begins to watch the free space of an open store. While too little is free, it calls tidy at every measurement.
func (d *disk) start(db *pebble.DB, tidy func()) {
	d.running.Store(d.readOnly == nil)
	switch {
	case d.room != nil:
		d.minding.Go(d.awaitRoom)
	case d.space.known && d.readOnly == nil:
		d.minding.Go(func() { d.mind(db.Metrics, tidy) })
	}
}

// awaitRoom closes room when enough space is free. It returns without that when rest is called.
func (d *disk) awaitRoom() {
	t := time.NewTicker(spaceTick)
	defer t.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-t.C:
		}
		place := d.stall.begin(lookAtSpace, d.dir)
		u, err := d.fs.GetDiskUsage(d.dir)
		d.stall.end(place)
		if err == nil && int64(u.AvailBytes)+d.space.ballast.held() >= d.space.enough {
			close(d.room)
			return
		}
	}
}

// rest stops watching the free space. It also ends the pauses of work for which Pebble's Close waits.
func (d *disk) rest() {
	d.running.Store(false)
	close(d.stop)
	d.minding.Wait()
}

// close stops watching operations, after the store is closed: a Close that hangs ends the process too.
func (d *disk) close() { close(d.closed) }
