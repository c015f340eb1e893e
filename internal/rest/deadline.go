package rest

import (
	"context"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/yield"
)

// deadline is a context with a deadline that starts a timer only when it is needed. context.WithDeadline starts a timer
// and registers itself with its parent, which costs 0.7 µs and four allocations for each request. But nearly all
// requests end without waiting. So the timer is started by the first call of Done, and Err compares the time.
//
//	Err before the deadline       -> nil, no timer
//	Done                          -> starts the timer
//	Err after the deadline        -> starts the timer, which has already fired: context.DeadlineExceeded
type deadline struct {
	context.Context // the request's
	at              time.Time
	clock           *clock.Clock
	place           yield.Place // of the request

	mu     sync.Mutex
	timed  context.Context // nil: Done was never called
	cancel context.CancelFunc
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) {
	if at, ok := d.Context.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

// Done implements context.Context. The first call starts the timer.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
	}
	return d.timed.Done()
}

// begun returns the context with the timer, nil if it isn't started.
func (d *deadline) begun() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.timed
}

// Err implements context.Context.
func (d *deadline) Err() error {
	if t := d.begun(); t != nil {
		return t.Err()
	}
	if err := d.Context.Err(); err != nil {
		return err
	}
	if d.clock.Now().Before(d.at) {
		return nil
	}
	<-d.Done() // the deadline has passed: from now on the timed context returns the error
	return d.begun().Err()
}

// Value implements context.Context. Once the timer runs, values come from the timed context. Package context uses them
// to attach contexts that are derived from this one to it, without a goroutine.
func (d *deadline) Value(key any) any {
	if yield.Asked(key) {
		return d.place
	}
	if t := d.begun(); t != nil {
		return t.Value(key)
	}
	return d.Context.Value(key)
}

// end stops the timer. A later call of Done sees the end of the request through the request's own context.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}
