package store

import (
	"math"
	"slices"
	"time"
)

// Within a slot commit times don't decrease, so a search by time can use bisection. But if a clock was a day ahead and
// is corrected, all commits of the following day would have one time in the future. So if the clock is far below the
// slot's last commit, an epoch begins: the time falls once, and the head records where. A search by time bisects in
// each epoch.
//
// Example: commits at 10:00 and 10:05 have LSN 1 and 2, then the clock is set back to 09:00. LSN 3 gets 09:00 and
// begins an epoch, and LSN 4 gets 09:40. The runs are [1, 3), up to 10:05, and [3, ..), up to 09:40. A search for 09:30
// looks in both and finds 1, 2 and 4.

// clockTolerance is the greatest difference, in ticks, by which the clock may be below the last commit without an
// epoch. Within it, items get the time of that commit. Time synchronisation steps a clock by less than a second, or
// slews it. A greater difference would be visible in _ts.
const clockTolerance = int64(5 * time.Second / 100)

// lastRun is the end of the last run.
const lastRun = math.MaxInt64

// Run is a range of LSNs in which commit times don't decrease.
type Run struct {
	End    int64 // the first LSN after the run
	Latest int64 // time of its last commit, in ticks
	Mixed  bool  // times may decrease within the run; then Latest is the greatest time
}

// Since reports whether the run may hold commits of this second or a later one.
func (r Run) Since(second int64) bool { return r.Latest/ticksPerSecond >= second }

// Runs returns the runs of the slot's LSNs, oldest first. The last one has no end.
func (h *Head) Runs() []Run {
	if len(h.Epochs) == 0 {
		return []Run{{End: lastRun, Latest: h.Ticks}}
	}
	out := make([]Run, 0, len(h.Epochs)+1)
	mixed, latest := false, int64(0)
	for _, e := range h.Epochs {
		if latest = max(latest, e.Ticks); e.LSN == 0 {
			mixed = true
			continue
		}
		out = append(out, Run{End: e.LSN, Latest: latest, Mixed: mixed})
		mixed, latest = false, 0
	}
	return append(out, Run{End: lastRun, Latest: max(latest, h.Ticks), Mixed: mixed})
}

// latest returns the time of the latest commit, in ticks.
func (h *Head) latest() int64 {
	n := h.Ticks
	for _, e := range h.Epochs {
		n = max(n, e.Ticks)
	}
	return n
}

// fell records that an epoch begins with a commit, and the time at which the one before it ended. If there are too many
// epochs, the oldest ones are joined into one without order of times. Epochs without items are dropped.
func (h *Head) fell(lsn, last int64) {
	h.Epochs = append(slices.Clip(h.Epochs), Epoch{lsn, last})
	for len(h.Epochs) > 0 {
		switch es := h.Epochs; {
		case es[0].LSN != 0 && es[0].LSN <= h.FeedFloor:
			h.Epochs = slices.Clone(es[1:])
		case es[0].LSN == 0 && len(es) > 1 && es[1].LSN <= h.FeedFloor:
			h.Epochs = slices.Clone(es[2:])
		case len(es) <= maxEpochs:
			return
		case es[0].LSN != 0:
			h.Epochs = append([]Epoch{{0, es[0].Ticks}}, es[1:]...)
		default:
			h.Epochs = append([]Epoch{{0, max(es[0].Ticks, es[1].Ticks)}}, es[2:]...)
		}
	}
}

// fellRest is the shortest time between two warnings about the clock. Where processes with different clocks write to a
// shared store in turn, each turn is one.
const fellRest = time.Minute

// clockFell logs one warning when the clock was set back. The other slots, whose last commits are older than that of
// the first slot, notice the same change.
func (c *Container) clockFell(sl *Slot, lsn, last int64) {
	met := c.fell.Load()
	if sl.head.LSN < met || !c.fell.CompareAndSwap(met, lsn) || c.st.lim.Logger == nil {
		return
	}
	if c.st.others {
		now, warned := int64(realTime.Elapsed()), c.warned.Load()
		if warned != 0 && now-warned < int64(fellRest) || !c.warned.CompareAndSwap(warned, now) {
			return
		}
	}
	at := func(ticks int64) string {
		return time.Unix(ticks/ticksPerSecond, ticks%ticksPerSecond*100).UTC().Format(time.RFC3339)
	}
	c.st.lim.Logger.Warn(
		"The clock is before the container's last write: items get the clock's time, and the order of writes stays",
		"container", c.Name(), "lastWrite", at(last), "clock", at(c.now()))
}
