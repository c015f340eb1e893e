package pebblekv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/orrerydb/orrery/internal/race"
)

// Each key whose value was cached before a range with it was dropped is covered. No other key is, as long as there are
// few ranges.
func TestDropped(t *testing.T) {
	for _, tc := range []struct {
		name  string
		drops int
		width int
		exact bool // no other key may be covered
	}{
		{"none", 0, 1, true},
		{"a few", 20, 3, true},
		{"side by side", 400, 1000, true}, // ranges that touch are merged to few
		{"more than are remembered", 4 * maxDropped, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const keys = 4000
			key := func(i int) []byte { return fmt.Appendf(nil, "%05d", i) }
			r := rand.New(rand.NewPCG(1, 2))
			var d dropped
			var at [keys]uint64 // the tick of the last range with the key
			for tick := uint64(1); tick <= uint64(tc.drops); tick++ {
				lo := r.IntN(keys)
				hi := min(lo+1+r.IntN(tc.width), keys)
				d.add(key(lo), key(hi), tick)
				for i := lo; i < hi; i++ {
					at[i] = tick
				}
			}
			if n := d.ranges.Load(); n != nil && len(*n) > maxDropped {
				t.Errorf("%d ranges", len(*n))
			}
			given := 0
			for i := range keys {
				for tick := uint64(0); tick < uint64(tc.drops+2); tick += uint64(race.Fewer(1, 11)) {
					useless := d.covers(key(i), tick)
					if tick < at[i] && !useless {
						t.Fatalf("key %d of tick %d was dropped at %d and is used", i, tick, at[i])
					}
					if at[i] == 0 && useless {
						given++
					}
				}
			}
			if tc.exact != (given == 0) {
				t.Errorf("%d of keys that were never dropped are given up", given)
			}
		})
	}
}

// A database of thousands of containers that were created one after the other is dropped, in any order: one range is
// remembered.
func TestDroppedNeighboursAreOne(t *testing.T) {
	var d dropped
	for tick, i := range rand.New(rand.NewPCG(1, 2)).Perm(maxDropped) {
		d.add(fmt.Appendf(nil, "%04d", i), fmt.Appendf(nil, "%04d", i+1), uint64(tick+1))
	}
	if n := len(*d.ranges.Load()); n != 1 || d.floor.Load() != 0 {
		t.Errorf("%d ranges, floor %d", n, d.floor.Load())
	}
}

// Concurrent drops may be added in another order than that of their ticks.
func TestDroppedOutOfOrder(t *testing.T) {
	key := func(i int) []byte { return fmt.Appendf(nil, "%05d", i) }
	var apart, meeting dropped
	apart.add(key(5), key(6), 6)
	apart.add(key(1), key(2), 5)
	meeting.add(key(1), key(3), 6)
	meeting.add(key(2), key(6), 5)
	if !apart.covers(key(5), 5) || !meeting.covers(key(2), 5) {
		t.Error("what was known before the later drop is used")
	}
	var many dropped
	for i := range maxDropped + 2 {
		many.add(key(2*i), key(2*i+1), uint64(maxDropped+2-i))
	}
	for i := range maxDropped + 2 {
		if tick := uint64(maxDropped + 1 - i); !many.covers(key(2*i), tick) {
			t.Fatalf("key %d of tick %d is used", 2*i, tick)
		}
	}
}
