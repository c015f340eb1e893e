package store

import (
	"math"
	"slices"
	"time"
)

// Within a slot times don't fall, so that a search by time can halve. A clock that was ahead by a day and was put right
// would leave a day of commits at one moment, in the future. So where the clock stands far below the slot's last commit
// an epoch begins: the time falls once, the head says where, and who searches by time does so in each epoch.

// clockTolerance is how far, in ticks, the clock may stand below the last commit without the time falling: items move
// up to that commit then. Time synchronisation steps a clock by less than a second, and slews it where it can. A
// greater difference is one that somebody would see in _ts.
const clockTolerance = int64(5 * time.Second / 100)

// lastRun is the end of the last run.
const lastRun = math.MaxInt64

// Run is a range of LSNs in which commit times don't fall.
type Run struct {
	End    int64 // the first LSN behind it
	Latest int64 // time of its last commit, in ticks
	Mixed  bool  // times may fall within it after all: Latest is the latest
}

// Since reports whether the run may hold commits of a second or later ones.
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

// fell notes that an epoch begins with a commit, and at which time the one before it ended. The oldest epochs become
// one whose order isn't known when there are too many, and go when they have no items.
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

// clockFell warns once of a fall of the clock: the other slots, whose last commits are older than the one that met it
// first, meet the same.
func (c *Container) clockFell(sl *Slot, lsn, last int64) {
	met := c.fell.Load()
	if sl.head.LSN < met || !c.fell.CompareAndSwap(met, lsn) || c.st.lim.Logger == nil {
		return
	}
	at := func(ticks int64) string {
		return time.Unix(ticks/ticksPerSecond, ticks%ticksPerSecond*100).UTC().Format(time.RFC3339)
	}
	c.st.lim.Logger.Warn("The clock stands before the container's last write: items get its time, in the order of "+
		"their writes",
		"container", c.Name(), "lastWrite", at(last), "clock", at(c.now()))
}
