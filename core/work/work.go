// Package work runs background work: removal of expired items, index rebuilds, drops. It is the only place where the
// core starts a goroutine, so a fault in one container never ends the process.
//
// Example: a job over many containers is started with Go, and processes each container with Try. If one of these calls
// panics, the panic is logged with its stack and counted, the call returns an error, and the job continues with the
// next container.
package work

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

// Group is the background work of one engine. Safe for concurrent use.
type Group struct {
	log    *slog.Logger
	ctx    context.Context
	stop   context.CancelFunc
	panics atomic.Int64

	mu     sync.Mutex
	closed bool // guarded by mu, so that no work starts while Close waits
	wg     sync.WaitGroup
}

// New returns a group that logs to log; nil = slog's default.
func New(log *slog.Logger) *Group {
	if log == nil {
		log = slog.Default()
	}
	g := &Group{log: log}
	g.ctx, g.stop = context.WithCancel(context.Background())
	return g
}

// Context is canceled by Close.
func (g *Group) Context() context.Context { return g.ctx }

// Within returns a ctx that ends with ctx, and when Close is called.
func (g *Group) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ctx, cancel)
	return within, func() {
		stop()
		cancel()
	}
}

// Go runs f on a new goroutine. Close waits for it. It returns false, without running f, after Close. A panic of f is
// handled as in Try.
func (g *Group) Go(what string, f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(func() {
		_ = g.Try(what, func() error {
			f()
			return nil
		})
	})
	return true
}

// Try runs f. A panic of f is logged with its stack, counted, and returned as an Internal error. what names the work in
// the log.
func (g *Group) Try(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.panics.Add(1)
			g.log.Error("Background work panicked.", "work", what, "panic", p, "stack",
				string(debug.Stack()))
			err = status.New(status.Internal, "%s: %v", what, p)
		}
	}()
	return f()
}

// Panics returns the number of panics that were caught.
func (g *Group) Panics() int64 { return g.panics.Load() }

// Sleep waits for d. It returns false if the group is closed first.
func (g *Group) Sleep(d time.Duration) bool { return Sleep(g.ctx, d) }

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// AtLeast returns a ctx that ends with ctx, but not before d from now. It is for what must be done after a request, or
// other work, has ended.
func AtLeast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	least := time.AfterFunc(d, func() {
		stop := context.AfterFunc(ctx, cancel)
		context.AfterFunc(within, func() { stop() })
	})
	return within, func() {
		least.Stop()
		cancel()
	}
}

// Close cancels the group's context, waits for all running work and lets no new work start. It may be called more than
// once.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.stop()
	g.wg.Wait()
}
