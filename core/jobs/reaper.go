// Package jobs is background work: paced, resumable by doing it again, and stopped with the engine.
package jobs

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/work"
)

// Reaper removes expired items. They are invisible from the second they expire; reaping only frees their space.
//
// It goes round the containers that are in use and have a time to live, a slot at a time, in steps of a bounded number
// of deletes. After each step it rests as long as the step took, so it takes half of one core at most, and less when
// the disk or the other requests make steps slow. Some rounds are over all containers, also those that nobody uses; of
// those it looks at a few at a time, and rests much longer than it works. An error or a fault ends a container's turn;
// its next turns are put off, twice as long each time.
type Reaper struct {
	g   *work.Group
	clk *clock.Clock
	of  Containers

	mu   sync.Mutex // one round at a time
	late map[*store.Container]delay
}

// delay is how many rounds a container has to sit out, and how many after the next failure.
type delay struct{ left, next int }

// Pace of the reaper.
const (
	reapRest  = time.Millisecond // least pause between steps
	reapLong  = time.Second      // longest
	reapRound = 5 * time.Second  // between rounds
	reapDelay = 64               // most rounds that a container sits out
	reapAll   = 720              // rounds from one over all containers to the next: an hour
	reapFew   = 64               // containers between rests of a round over all
	reapShare = 19               // times as long as it has worked it rests in such a round
)

// Containers are the containers that background work goes over.
type Containers struct {
	Used func() []*store.Container         // that are open and in use
	All  func() iter.Seq[*store.Container] // that may have items which expire, each open while it is looked at
}

// StartReaper starts a reaper over containers. It ends with the group.
func StartReaper(g *work.Group, clk *clock.Clock, of Containers) *Reaper {
	r := &Reaper{g: g, clk: clk, of: of, late: map[*store.Container]delay{}}
	g.Go("removal of expired items", func() {
		for n := 0; g.Sleep(reapRound); n++ {
			_ = g.Try("removal of expired items", func() error {
				if n%reapAll == 0 {
					r.round(g.Context(), r.slowly(g.Context()))
				} else {
					r.round(g.Context(), slices.Values(of.Used()))
				}
				return nil
			})
		}
	})
	return r
}

// Round goes over all containers once and returns how many items it removed.
func (r *Reaper) Round(ctx context.Context) (n int) { return r.round(ctx, r.of.All()) }

// slowly gives all containers, with rests.
func (r *Reaper) slowly(ctx context.Context) iter.Seq[*store.Container] {
	return func(yield func(*store.Container) bool) {
		seen, begun := 0, r.clk.Now()
		for c := range r.of.All() {
			if !yield(c) {
				return
			}
			if seen++; seen%reapFew == 0 {
				if !work.Sleep(ctx, min(max(0, reapShare*r.clk.Now().Sub(begun)), reapLong)) {
					return
				}
				begun = r.clk.Now()
			}
		}
	}
}

func (r *Reaper) round(ctx context.Context, containers iter.Seq[*store.Container]) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := make(map[*store.Container]delay, len(r.late))
	for c := range containers {
		if c.Def().DefaultTTL == nil {
			continue
		}
		d := r.late[c]
		if d.left > 0 {
			d.left--
			late[c] = d
			continue
		}
		err := r.g.Try("removal of expired items of container "+c.Name(), func() error {
			k, err := r.reap(ctx, c)
			n += k
			return err
		})
		if ctx.Err() != nil {
			return n
		}
		if err != nil {
			late[c] = delay{left: d.next, next: min(2*d.next+1, reapDelay)}
		}
	}
	r.late = late
	return n
}

// reap removes what has expired in one container.
func (r *Reaper) reap(ctx context.Context, c *store.Container) (n int, err error) {
	for _, slot := range c.Slots().All() {
		for more := true; more && ctx.Err() == nil; {
			begun := r.clk.Now()
			var k int
			k, more, err = c.Reap(ctx, slot)
			if n += k; err != nil {
				return n, err
			}
			if k > 0 || more {
				work.Sleep(ctx, min(max(r.clk.Now().Sub(begun), reapRest), reapLong))
			}
		}
	}
	return n, nil
}
