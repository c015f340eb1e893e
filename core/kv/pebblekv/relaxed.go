package pebblekv

import (
	"sync"
	"sync/atomic"
	"time"
)

// logDelay is how long what was written to a relaxed store waits for the disk.
const logDelay = 200 * time.Millisecond

// logTimer syncs the log of a relaxed store logDelay after the first write since the sync before. So a crash loses what
// was written within that time, and as long as the disk took for a sync. A store that nobody writes to has no timer
// running.
type logTimer struct {
	sync  func() error
	armed atomic.Bool // a sync is due: what is written now will be in it
	timer *time.Timer

	mu      sync.Mutex // held during a sync
	stopped bool
}

func newLogTimer(sync func() error) *logTimer {
	l := &logTimer{sync: sync}
	l.timer = time.AfterFunc(time.Hour, l.run)
	l.timer.Stop()
	return l
}

// wrote is called when a batch was applied.
func (l *logTimer) wrote() {
	if !l.armed.Load() && !l.armed.Swap(true) {
		l.timer.Reset(logDelay)
	}
}

func (l *logTimer) run() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed.Store(false) // before the sync, so that no later write is left out
	if !l.stopped {
		_ = l.sync() // a log that fails ends the process, see Options.Logger
	}
}

// stop waits for a sync that is under way; there is none after it. The store is about to be closed. l may be nil.
func (l *logTimer) stop() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.timer.Stop()
}
