package journal

import (
	"sync/atomic"
	"time"
)

// Clock gives times that only rise: the seconds since 1970 in the upper half, and a counter within the second in the
// lower one. All servers of an engine share one. Safe for concurrent use.
//
// Example: the wall clock says 100. Two writes get (100, 1) and (100, 2). The wall clock is set back to 99: the next
// write gets (100, 3).
type Clock struct{ now atomic.Uint64 }

// Wall returns the first time of a second of the wall clock.
func Wall(now time.Time) uint64 { return uint64(uint32(now.Unix()))<<32 | 1 }

// Last returns the greatest time that was ever given.
func (c *Clock) Last() uint64 { return c.now.Load() }

// Tick returns the time. With next it is one that was never given before.
func (c *Clock) Tick(now time.Time, next bool) uint64 {
	if next {
		return c.Take(now, 1)
	}
	wall := Wall(now)
	for {
		old := c.now.Load()
		if old >= wall || c.now.CompareAndSwap(old, wall) {
			return max(old, wall)
		}
	}
}

// Take returns the first of n times in a row that were never given before.
func (c *Clock) Take(now time.Time, n int) uint64 {
	wall := Wall(now)
	for {
		old := c.now.Load()
		first := max(old+1, wall)
		if c.now.CompareAndSwap(old, first+uint64(n)-1) {
			return first
		}
	}
}

// Advance moves the clock to a later time.
func (c *Clock) Advance(t uint64) {
	for {
		old := c.now.Load()
		if t <= old || c.now.CompareAndSwap(old, t) {
			return
		}
	}
}
