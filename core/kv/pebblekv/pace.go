package pebblekv

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// pace says when compactions run. Merging the runs of L0 into the tree costs as much as all else that a write does, and the more runs one
// merge takes, the less it costs each of them; but every run more is one more place where a query must look. So a merge that
// the tree asks for waits while writes come in, until
//   - they pause: then it runs beside whatever else there is to do, and the reads that come next find few runs; or
//   - reads have paid for it: what they spent on looking at the waiting runs is as much as the merge will cost. Waiting longer
//     or shorter could at best have halved the sum of the two; or
//   - there are maxRuns.
//
// It is Pebble's CompactionScheduler; its locks come after Pebble's, so nothing here calls Pebble with mu held.
type pace struct {
	written atomic.Int64 // bytes of batches so far; whoever applies one adds to it
	db      pebble.DBForCompaction
	look    atomic.Pointer[func() shape] // nil until the store is open

	poke chan struct{} // a compaction is waiting, or one has ended
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	running int
	closed  bool
}

// shape is what the decision needs to know of the tree.
type shape struct {
	runs    int   // sorted runs of L0: what a query looks at besides the levels below
	bytes   int64 // of L0 and of the level that it is merged into
	touches int64 // blocks that were asked of the cache so far
}

const (
	paceTick  = 50 * time.Millisecond
	paceQuiet = 100 * time.Millisecond
	// paceTrickle is what may be written in a tick that still counts as a pause: 1 MiB/s fills a memtable in half a minute.
	paceTrickle = 50 << 10
	// maxRuns bounds the waiting. Each run is one flushed memtable.
	maxRuns = 16
	// What a block's look-up costs a read, and a compressed byte a merge; both as BenchmarkGrowth has them.
	touchCost = 300 * time.Nanosecond
	byteCost  = 25 * time.Nanosecond
)

func newPace() *pace {
	return &pace{poke: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// Register implements pebble.CompactionScheduler.
func (p *pace) Register(_ int, db pebble.DBForCompaction) {
	p.db = db
	go p.run()
}

// Unregister implements pebble.CompactionScheduler: nothing is granted after it.
func (p *pace) Unregister() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	close(p.stop)
	<-p.done
}

// TrySchedule implements pebble.CompactionScheduler. Pebble calls it with its own locks held, where the tree can't be looked at: it
// remembers the compaction, and run asks for it.
func (p *pace) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	p.wake()
	return false, nil
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler: more may run at once now.
func (p *pace) UpdateGetAllowedWithoutPermission() { p.wake() }

// Started, MeasureCPU, CumulativeStats and Done implement pebble.CompactionGrantHandle.
func (p *pace) Started() {}

func (p *pace) MeasureCPU(pebble.CompactionGoroutineKind) {}

func (p *pace) CumulativeStats(pebble.CompactionGrantHandleStats) {}

func (p *pace) Done() {
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
	p.wake()
}

func (p *pace) wake() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// open tells p how to look at the tree, once the store is open.
func (p *pace) open(look func() shape) {
	p.look.Store(&look)
	p.wake()
}

// run grants waiting compactions when they are due. It sleeps when none is waiting.
func (p *pace) run() {
	defer close(p.done)
	t := time.NewTimer(0)
	defer t.Stop()
	var d due
	for {
		select {
		case <-p.stop:
			return
		case <-p.poke:
		case <-t.C:
		}
		for {
			waiting, _ := p.db.GetWaitingCompaction()
			if !waiting {
				d = due{}
				break
			}
			look := p.look.Load()
			if look == nil || !p.free() || !d.look(time.Now(), p.written.Load(), *look) || !p.grant() {
				t.Reset(paceTick)
				break
			}
			d.granted()
		}
	}
}

// free reports whether one more compaction may run.
func (p *pace) free() bool {
	allowed := p.db.GetAllowedWithoutPermission()
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && p.running < allowed
}

// grant has Pebble run the waiting compaction.
func (p *pace) grant() bool {
	p.mu.Lock()
	p.running++
	p.mu.Unlock()
	if p.db.Schedule(p) {
		return true
	}
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
	return false
}

// shapeOf reads it from the store's figures.
func shapeOf(db *pebble.DB) func() shape {
	return func() shape {
		m := db.Metrics()
		s := shape{runs: int(m.Levels[0].Sublevels), bytes: m.Levels[0].TablesSize, touches: m.BlockCache.Hits + m.BlockCache.Misses}
		for _, l := range m.Levels[1:] {
			if l.TablesSize > 0 {
				s.bytes += l.TablesSize
				break
			}
		}
		return s
	}
}

// due follows one waiting compaction. The zero value has seen nothing.
type due struct {
	at      time.Time // of the last look; zero before the first
	busy    time.Time // the last look that found more than a trickle written
	written int64
	touches int64
	paid    time.Duration
	now     bool
}

// look takes the next look, at time t, and reports whether the compaction should run. Looks that come in quick succession are one.
func (d *due) look(t time.Time, written int64, s func() shape) bool {
	if t.Sub(d.at) < paceTick {
		return d.now
	}
	seen := s()
	if d.at.IsZero() {
		d.busy, d.written, d.touches = t, written, seen.touches
	}
	if written-d.written > paceTrickle {
		d.busy = t
	}
	// Of the places where a query looks, runs are those that the merge would take away.
	d.paid += time.Duration(seen.touches-d.touches) * touchCost * time.Duration(seen.runs) / time.Duration(seen.runs+1)
	d.at, d.written, d.touches = t, written, seen.touches
	d.now = t.Sub(d.busy) >= paceQuiet || seen.runs >= maxRuns || d.paid >= time.Duration(seen.bytes)*byteCost
	return d.now
}

// granted begins a new account: what reads paid is spent.
func (d *due) granted() { d.paid = 0 }
