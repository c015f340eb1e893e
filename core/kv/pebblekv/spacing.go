package pebblekv

import (
	"sync/atomic"
	"time"
)

// spacing lets the log rest between two syncs, so that one sync makes more commits durable. A sync costs as much
// processor time for one commit as for ten, a tenth of an insert with eight writers.
//
// Without a rest, writers that send their next write when they have the reply to the last one form two groups. While
// one group's sync runs, the other group writes, and each waits for two syncs. A rest of half a sync gives the writers
// of the sync that has just ended time to come back, so that there is one group. Each of them waits for one sync and a
// half, on any disk. A commit that comes alone, as those of a single writer do, is synced at once.
//
// Example: a sync takes 2 ms and has made four commits durable. Two others were written meanwhile. The next sync begins
// 1 ms later, when the first four writers have written again, and is for six commits.
type spacing struct {
	commits atomic.Int64 // that were written since the last sync ended
	last    atomic.Int64 // duration of the last sync, in nanoseconds
	pause   atomic.Int64 // what follows the last sync, in nanoseconds
}

// wrote is called when a batch that will be synced was applied.
func (s *spacing) wrote() { s.commits.Add(1) }

// synced is called at the end of a sync of a log, with its duration. The shorter one of the last two counts: a single
// long sync isn't followed by a long rest.
func (s *spacing) synced(took time.Duration) {
	usual := min(s.last.Swap(int64(took)), int64(took))
	if s.commits.Swap(0) < 2 {
		usual = 0
	}
	s.pause.Store(usual / 2)
}

// rest returns how long the log rests at least between two syncs.
func (s *spacing) rest() time.Duration { return time.Duration(s.pause.Load()) }
