package pebblekv

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
)

// maxDropped is how many ranges are remembered.
const maxDropped = 256

// dropped remembers ranges that were dropped, and when, so that values of keys in them are of no use while all others
// stay. Ranges that meet become one, as those of containers that were made one after the other do.
type dropped struct {
	mu     sync.Mutex // of those who add
	last   atomic.Uint64
	floor  atomic.Uint64
	ranges atomic.Pointer[[]droppedRange] // apart from each other, in the order of keys
}

// droppedRange is [lo, hi); what was known of its keys before tick is of no use.
type droppedRange struct {
	lo, hi []byte
	tick   uint64
}

func compareBegin(r droppedRange, key []byte) int { return bytes.Compare(r.lo, key) }

// add remembers a range that was dropped at tick. Ticks may come out of order: of drops that ran side by side.
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
	if len(next) > maxDropped { // the oldest one is forgotten: then all that is as old is of no use
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
	d.last.Store(max(d.last.Load(), tick)) // behind the rest: who sees it sees them
}

// covers reports whether what was known of a key at tick is of no use.
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
