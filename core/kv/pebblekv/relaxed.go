package pebblekv

import (
	"sync"
	"sync/atomic"
	"time"
)

// logDelay is the longest time until a write to a relaxed store is synced.
const logDelay = 200 * time.Millisecond

// logTimer syncs the log of a relaxed store logDelay after the first write since the last sync. So a crash loses the
// writes of that time and of the duration of a sync. While nothing is written, no timer runs.
//
// Example: writes come at 0 and 4 ms. The first one starts the timer. One sync after logDelay covers both.
type logTimer struct {
	sync  func() error
	armed atomic.Bool // a sync is due, and will include what is written now
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
	l.armed.Store(false) // before the sync, so that it includes every write that found armed set
	if !l.stopped {
		_ = l.sync() // a log that fails ends the process, see Options.Fatal
	}
}

// stop waits for a running sync and prevents further ones. The caller then closes the store. l may be nil.
func (l *logTimer) stop() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.timer.Stop()
}
