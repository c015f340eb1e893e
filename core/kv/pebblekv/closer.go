package pebblekv

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// work counts the flushes and compactions of the store. While one runs, closing a snapshot or an iterator may take
// long: closing the oldest snapshot waits until the manifest is written and synced, and the last reader of a version
// frees its memtables and tables. It took up to 0.7 s, and any request could meet it.
type work struct {
	events  atomic.Uint64 // begins and ends
	running atomic.Int64
}

func (w *work) begin() {
	w.running.Add(1)
	w.events.Add(1)
}

func (w *work) end() {
	w.running.Add(-1)
	w.events.Add(1)
}

// since reports whether work is running, or began or ended since events had the value from.
func (w *work) since(from uint64) bool { return w.running.Load() > 0 || w.events.Load() != from }

// listen counts Pebble's events.
func (w *work) listen(l *pebble.EventListener) {
	l.FlushBegin = func(pebble.FlushInfo) { w.begin() }
	l.FlushEnd = func(pebble.FlushInfo) { w.end() }
	l.CompactionBegin = func(pebble.CompactionInfo) { w.begin() }
	l.CompactionEnd = func(pebble.CompactionInfo) { w.end() }
}

// used is an iterator or a snapshot that its user no longer needs. It counts as a user at the gate until it is closed.
type used struct {
	e    *Engine
	it   *pebble.Iterator
	snap *pebble.Snapshot
}

func (u used) close() (err error) {
	if u.it != nil {
		err = u.it.Close()
	}
	if u.snap != nil {
		if cerr := u.snap.Close(); err == nil {
			err = cerr
		}
	}
	u.e.gate.leave()
	return translate(err)
}

// closer closes iterators and snapshots in the background, so that no request waits for it.
type closer struct {
	mu      sync.Mutex
	waiting []used
	running bool
}

func (c *closer) add(u used) {
	c.mu.Lock()
	c.waiting = append(c.waiting, u)
	start := !c.running
	c.running = true
	c.mu.Unlock()
	if start {
		go c.run()
	}
}

func (c *closer) run() {
	var batch []used
	for {
		clear(batch)
		c.mu.Lock()
		batch, c.waiting = c.waiting, batch[:0]
		c.running = len(batch) > 0
		c.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, u := range batch {
			_ = u.close() // its reads have already returned their errors
		}
	}
}
