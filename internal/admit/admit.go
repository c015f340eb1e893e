// Package admit bounds how many requests a door works on and how many wait for it. Past the bounds a request is refused at once, so
// that those which are let in are answered in time.
package admit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

// Options are the bounds of a Gate.
type Options struct {
	Running int           // requests that are worked on at once
	Waiting int           // requests that wait for that
	Wait    time.Duration // how long one waits at most
}

// Gate lets requests in. A nil Gate lets in all. Safe for concurrent use.
type Gate struct {
	o       Options
	room    chan struct{}
	waiting atomic.Int64
	refused atomic.Int64
}

// New returns a gate with these bounds.
func New(o Options) *Gate {
	return &Gate{o: o, room: make(chan struct{}, o.Running)}
}

// Enter lets a request in, or refuses it with status.TooManyRequests and a time to wait; ctx's error when that ends first. Who was let
// in calls Leave.
func (g *Gate) Enter(ctx context.Context) error {
	if g == nil {
		return nil
	}
	select {
	case g.room <- struct{}{}:
		return nil
	default:
	}
	return g.wait(ctx)
}

func (g *Gate) wait(ctx context.Context) error {
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > int64(g.o.Waiting) {
		return g.refuse()
	}
	t := time.NewTimer(g.o.Wait)
	defer t.Stop()
	select {
	case g.room <- struct{}{}:
		return nil
	case <-t.C:
		return g.refuse()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Gate) refuse() error {
	g.refused.Add(1)
	e := status.New(status.TooManyRequests, "The server has more requests than it can answer in time. Send this one again later.")
	e.Sub, e.RetryAfter = status.SubThrottled, g.o.Wait
	return e
}

// Leave makes room for another request.
func (g *Gate) Leave() {
	if g != nil {
		<-g.room
	}
}

// Running is how many requests are let in now.
func (g *Gate) Running() int {
	if g == nil {
		return 0
	}
	return len(g.room)
}

// Refused is how many requests were refused.
func (g *Gate) Refused() int64 {
	if g == nil {
		return 0
	}
	return g.refused.Load()
}
