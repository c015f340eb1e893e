// Package jobs runs background work. The work is paced, may be repeated without harm, and stops with the engine.
package jobs

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/work"
)

// Reaper removes expired items, and what has expired in the logs of all versions. Items are invisible from the second
// in which they expire. Reaping only frees their space.
//
// It goes over the containers that are in use and have a time to live or a log, one slot after the other, in steps of a
// bounded number of deletes. After each step it rests as long as the step took. So it uses at most half of one core,
// and less when the disk or other requests make its steps slow. Some rounds go over all containers, including those
// that are not in use. Such a round opens a few of these at a time, and rests much longer than it works. An error or
// panic ends a container's turn. Its next turns are skipped for a number of rounds, which doubles with each failure.
//
// Example: the steps of a container take 4 ms each. The reaper works 4 ms, rests 4 ms, and so on until nothing is due.
// The next round begins 5 s after the last.
type Reaper struct {
	g   *work.Group
	clk *clock.Clock
	of  Containers

	mu   sync.Mutex // held during a round
	late map[*store.Container]delay

	rounds, removed atomic.Int64
}

// delay says how many rounds a container is skipped now, and how many after the next failure.
type delay struct{ left, next int }

// Pace of the reaper.
const (
	reapRest  = time.Millisecond // shortest pause between steps
	reapLong  = time.Second      // longest pause
	reapRound = 5 * time.Second  // between rounds
	reapDelay = 64               // largest number of rounds that a container is skipped
	reapAll   = 720              // a round over all containers comes once in so many rounds: an hour
	reapFew   = 64               // containers between rests of a round over all
	reapShare = 19               // such a round rests so many times as long as it has worked
)

// Containers gives the containers for background work.
type Containers struct {
	Used func() []*store.Container         // those that are open and in use
	All  func() iter.Seq[*store.Container] // those with items that may expire; each is open during its use
}

// StartReaper starts a reaper over containers. The reaper ends with the group.
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

// Round goes over all containers once and returns the number of items that it removed.
func (r *Reaper) Round(ctx context.Context) (n int) { return r.round(ctx, r.of.All()) }

// Done returns the number of rounds, and of the items that they removed.
func (r *Reaper) Done() (rounds, removed int64) { return r.rounds.Load(), r.removed.Load() }

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
	r.rounds.Add(1)
	defer func() { r.removed.Add(int64(n)) }()
	late := make(map[*store.Container]delay, len(r.late))
	for c := range containers {
		if c.Def().DefaultTTL == nil && !c.Logged() && !c.Declared() {
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

// reap removes the expired items of one container.
func (r *Reaper) reap(ctx context.Context, c *store.Container) (n int, err error) {
	if err := c.ClearDeclared(ctx); err != nil {
		return 0, err
	}
	for _, slot := range c.Slots().All() {
		if c.Logged() {
			if _, err := c.TrimLog(ctx, slot); err != nil {
				return n, err
			}
		}
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
