// Package pebblekv is the durable engine: one Pebble store in one directory.
//
// A Write first waits for the earlier writes that write a key which it checks, or check a key which it writes. Then it
// checks its preconditions and applies the batch: the batch is visible and is being written to the log. Commit.Wait
// waits for durability, without any lock, so that concurrent writers share one fsync.
//
// Example: two writers apply their batches in turn and call Wait. One fsync of the log makes both durable.
package pebblekv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// ErrLocked is Open's error when another process, or this one, has the directory open.
var ErrLocked = errors.New("pebblekv: the directory is in use by another server")

var limits = kv.Limits{Key: 4 << 10, Value: 64 << 20, Batch: 128 << 20}

// closeGrace is how long Close waits for snapshots, iterators and calls that are still open; tests shorten it.
var closeGrace = 3 * time.Second

// Engine implements kv.Engine.
type Engine struct {
	db      *pebble.DB
	cache   *pebble.Cache
	dir     *claimed
	log     *slog.Logger
	gate    gate
	writing admission
	work    work
	closing closer
	pace    *pace
	syncing syncing
	values  *values   // nil: there is no cache of values
	relaxed *logTimer // nil: a commit waits for the log
	disk    *disk
	damages damages
	logs    logNames
	fs      vfs.FS // that Pebble uses
	options *pebble.Options
	tables  atomic.Uint64 // number of files that were begun: see newTables
}

var _ kv.Engine = (*Engine)(nil)

// Open opens the store in dir, and creates it when absent. It fails with ErrLocked when the directory is in use, and
// with kv.ErrCorruption when the store is damaged or the directory holds something else; then it changes nothing there.
// On a disk that is read-only, or too full to flush the logs, the store is opened for reading only (see Health).
func Open(dir string, o Options) (_ *Engine, err error) {
	o = o.withDefaults()
	o.anyFormat = o.ReadOnly || o.Upgrade || o.Restoring
	d := newDisk(dir, &o)
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	place, err := d.claim(&o)
	if err != nil {
		return nil, err
	}
	// Pebble subtracts the memory of memtables from the cache. So two full memtables are added to the cache: otherwise
	// a burst of writes would leave no room for blocks, and every read would be slower.
	blocks := o.CacheMB << 20
	var kept *values
	if o.Kept != nil {
		kept = newValues(blocks/4*3, o.Kept)
		blocks /= 4
	}
	memTable := d.space.memTable
	cache := o.Shared.use()
	if cache == nil {
		cache = pebble.NewCache(int64(blocks) + 2*memTable)
	}
	e := &Engine{cache: cache, dir: place, log: o.Logger, pace: newPace(int(memTable)), values: kept, disk: d}
	e.pace.held, e.pace.short, e.pace.tight = d.space.merge.left, d.short, d.tight
	o.FS = d.below(o.FS)
	po := tuned(o, cache, e.pace, &d.space)
	po.WALMinSyncInterval = d.spacing.rest
	po.Logger = quiet{o.Logger, &d.fail, new(everyMinute)}
	po.Lock, po.ErrorIfNotExists, po.ReadOnly = place.lock, !place.fresh, o.ReadOnly
	e.damages.listen(po.EventListener, o.Logger)
	e.gate.idle = make(chan struct{}, 1)
	e.work.listen(po.EventListener)
	e.pace.listen(po.EventListener)
	d.listen(po.EventListener)
	e.logs.listen(po.EventListener)
	po.EnsureDefaults()
	e.fs, e.options = po.FS, po
	if e.db, err = pebble.Open(dir, po); err != nil {
		cache.Unref()
		place.remark()
		return nil, errors.Join(translate(err), place.leave(false))
	}
	place.opened()
	if o.Relaxed {
		e.relaxed = newLogTimer(e.syncLog)
	}
	e.pace.still.Store(o.Reserve)
	d.start(e.db, e.pace.wake)
	e.pace.open(treeOf(e.db, o.Logger))
	return e, nil
}

// translate maps Pebble's errors of reads and maintenance to the closed set.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pebble.ErrNotFound):
		return kv.ErrNotFound
	case errors.Is(err, pebble.ErrClosed):
		return kv.ErrClosed
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: %s", kv.ErrCorruption, oneLine(err.Error()))
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
}

// Limits implements kv.Engine.
func (e *Engine) Limits() kv.Limits { return limits }

// Remote implements kv.Engine.
func (e *Engine) Remote() bool { return false }

// Shared implements kv.Engine: a directory belongs to one process.
func (e *Engine) Shared() bool { return false }

// Get implements kv.Engine. It doesn't look at the ctx: it waits for nothing but the disk.
func (e *Engine) Get(_ context.Context, dst, key []byte) ([]byte, error) {
	if !e.gate.enter() {
		return dst, kv.ErrClosed
	}
	defer e.gate.leave()
	return e.values.get(dst, key, latest, e.stored)
}

// stored appends the value of a key in the store to dst.
func (e *Engine) stored(dst, key []byte) ([]byte, error) {
	v, closer, err := e.db.Get(key)
	if err != nil {
		return dst, translate(err)
	}
	return appendValue(dst, v), translate(closer.Close())
}

// apply makes p and late visible. An error here comes from the log: it is unknown whether the batch was applied.
func (e *Engine) apply(p *prepared, late *kv.Batch) error {
	var err error
	if len(p.kept) > 0 {
		e.values.enter(p.kept)
		defer func() { e.values.leave(p.kept, p.b, late, err == nil) }()
	}
	defer e.disk.fail.recovered()
	e.pace.wrote(p.bytes + late.Size())
	if e.relaxed != nil {
		err = e.db.Apply(p.pb, pebble.NoSync)
		e.relaxed.wrote()
	} else {
		e.disk.spacing.wrote()
		err = e.db.ApplyNoSyncWait(p.pb, pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, err)
	}
	e.logs.wrote(e.db)
	return nil
}

// syncLog returns when everything written before is durable.
func (e *Engine) syncLog() error { return e.db.LogData(nil, pebble.Sync) }

// check tests the preconditions against the current state. The caller has entered admission with their keys.
func (e *Engine) check(pre []kv.Precondition) error {
	var p *pebble.Iterator
	defer func() {
		if p != nil {
			_ = p.Close()
		}
	}()
	for i := range pre {
		c := &pre[i]
		var ok bool
		var err error
		if c.Expect == kv.Absent {
			if p == nil {
				if p, err = e.db.NewIter(&probeOptions); err != nil {
					return translate(err)
				}
			}
			ok, err = probe(p, c.Key)
			ok, err = !ok, translate(err)
		} else {
			ok, err = e.holds(c)
		}
		if err != nil {
			return err
		}
		if !ok {
			return &kv.PreconditionError{Index: i}
		}
	}
	return nil
}

func (e *Engine) holds(c *kv.Precondition) (bool, error) {
	room := checkRooms.Get().(*[]byte)
	defer checkRooms.Put(room)
	v, err := e.values.get((*room)[:0], c.Key, latest, e.stored)
	if errors.Is(err, kv.ErrNotFound) {
		return c.Holds(nil, false), nil
	}
	if err != nil {
		return false, err
	}
	if cap(v) <= maxCheckRoom {
		*room = v
	}
	return c.Holds(v, true), nil
}

// checkRooms are buffers for the values of preconditions. These are mostly heads of slots, of at most one kilobyte.
var checkRooms = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// maxCheckRoom is the largest capacity of a buffer that is reused.
const maxCheckRoom = 64 << 10

// probeOptions make an iterator use the filters of the bottom level too, which DB.Get never does. A look-up of an
// absent key then costs several times less. A look-up of a present key costs a little more, so reads that expect a key
// use Get.
var probeOptions = pebble.IterOptions{UseL6Filters: true}

// probe reports whether key is present.
func probe(it *pebble.Iterator, key []byte) (bool, error) {
	if it.SeekPrefixGE(key) {
		return true, nil // with the default order the prefix is the whole key
	}
	return false, it.Error()
}

type relaxedCommit struct{}

func (relaxedCommit) Wait() error { return nil }

// Close implements kv.Engine. It waits a short time for open snapshots and iterators. If some stay open, it syncs the
// log, returns kv.ErrContract, and leaves the files open until the process ends.
func (e *Engine) Close() error {
	if !e.gate.shut() {
		return kv.ErrClosed
	}
	e.relaxed.stop()
	if !e.gate.wait(closeGrace) {
		if err := e.syncLog(); err != nil {
			return fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, err)
		}
		return fmt.Errorf("%w: closed with snapshots or iterators open", kv.ErrContract)
	}
	e.disk.rest()
	err := e.db.Close()
	e.disk.close()
	e.cache.Unref()
	return translate(cmp.Or(err, e.dir.leave(err == nil && !e.disk.discard.Load())))
}

// Directory returns the directory of the store.
func (e *Engine) Directory() string { return e.dir.path }

// Work lets a store that was opened with Options.Reserve merge.
func (e *Engine) Work() { e.pace.work() }

// Discard makes Close quick, for a store whose directory is removed then: Close doesn't wait for flushes, and leaves
// what is only in the log there.
func (e *Engine) Discard() { e.disk.discard.Store(true) }
