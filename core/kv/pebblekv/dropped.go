package pebblekv

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
)

// maxDropped is how many ranges are remembered.
const maxDropped = 256

// dropped remembers deleted key ranges and when they were deleted. Cached values of keys in them are invalid; all
// others stay valid. Ranges that touch or overlap are merged, such as those of containers that were created one after
// the other.
//
// Example: [a, c) is dropped at tick 5 and [c, f) at tick 8. One range [a, f) with tick 8 remains. A value of key b
// that was cached at tick 7 is then invalid too: that costs one read and is never wrong.
type dropped struct {
	mu     sync.Mutex // held by add
	last   atomic.Uint64
	floor  atomic.Uint64
	ranges atomic.Pointer[[]droppedRange] // apart from each other, in the order of keys
}

// droppedRange is [lo, hi). What was cached for its keys before tick is invalid.
type droppedRange struct {
	lo, hi []byte
	tick   uint64
}

func compareBegin(r droppedRange, key []byte) int { return bytes.Compare(r.lo, key) }

// add remembers a range that was dropped at tick. Ticks may come out of order, because drops run concurrently.
func (d *dropped) add(lo, hi []byte, tick uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	merged := droppedRange{bytes.Clone(lo), bytes.Clone(hi), tick}
	var next []droppedRange
	if old := d.ranges.Load(); old != nil {
		for _, r := range *old {
			if bytes.Compare(r.hi, merged.lo) < 0 || bytes.Compare(merged.hi, r.lo) < 0 {
				next = append(next, r)
				continue
			}
			merged.lo = slices.MinFunc([][]byte{r.lo, merged.lo}, bytes.Compare)
			merged.hi = slices.MaxFunc([][]byte{r.hi, merged.hi}, bytes.Compare)
			merged.tick = max(merged.tick, r.tick)
		}
	}
	i, _ := slices.BinarySearchFunc(next, merged.lo, compareBegin)
	next = slices.Insert(next, i, merged)
	if len(next) > maxDropped { // the oldest one is removed; from now on everything older than it counts as invalid
		oldest := 0
		for i := range next {
			if next[i].tick < next[oldest].tick {
				oldest = i
			}
		}
		d.floor.Store(max(d.floor.Load(), next[oldest].tick))
		next = slices.Delete(next, oldest, oldest+1)
	}
	d.ranges.Store(&next)
	d.last.Store(max(d.last.Load(), tick)) // set last: a reader that sees it also sees the ranges
}

// covers reports whether a value of key that was cached at tick is invalid.
func (d *dropped) covers(key []byte, tick uint64) bool {
	if tick >= d.last.Load() {
		return false
	}
	if tick < d.floor.Load() {
		return true
	}
	ranges := *d.ranges.Load()
	i, found := slices.BinarySearchFunc(ranges, key, compareBegin)
	if !found {
		i-- // the last one that begins before key
	}
	return i >= 0 && bytes.Compare(key, ranges[i].hi) < 0 && tick < ranges[i].tick
}
