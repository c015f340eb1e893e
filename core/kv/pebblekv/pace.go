package pebblekv

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// pace says when the tree is tidied up: when flushed memtables, the runs of L0, are merged into the levels below. A merge costs as much as all else
// that a write does, and the more runs one merge takes, the less it costs each of them; but every run more is one more
// place where a query must look. So a merge waits while writes come in, until
//   - they pause, and it isn't more than a handful of bytes that would be written anew for each new one, or the pause is a long one; or
//   - reads have paid for it: what they spent on looking at the waiting runs is as much as the merge will cost. Waiting longer
//     or shorter could at best have halved the sum of the two; or
//   - there are maxRuns; or
//   - a level below is too full: it would make every merge into it dearer. A pause is enough for it, and twice its size without one.
//
// In a longer pause it has the memtable flushed too: queries look at it as well, and a search there costs more than in a table.
//
// It is Pebble's CompactionScheduler; its locks come after Pebble's, so nothing here calls Pebble with mu held.
type pace struct {
	written atomic.Int64 // bytes of batches so far
	flushed atomic.Int64 // what written was when the last flush began
	asleep  atomic.Bool  // run looks at nothing until it is woken
	poke    chan struct{}
	stop    chan struct{}
	done    chan struct{}

	held  func() time.Duration // for how long no merge may begin
	tight func() bool          // the disk is full: what is deleted must go, whatever that costs

	db   pebble.DBForCompaction
	tree atomic.Pointer[tree] // nil until the store is open

	mu      sync.Mutex
	running int
	closed  bool
}

// tree is the store that is tidied up.
type tree struct {
	look  func() shape
	flush func()
}

// shape is what the decision needs to know of the tree.
type shape struct {
	runs    int     // sorted runs of L0
	above   int64   // bytes of L0
	below   int64   // bytes of the level that it is merged into
	touches int64   // blocks that were asked of the cache so far
	full    float64 // the fullest of the levels between L0 and the last, as a share of what it should hold
}

const (
	paceTick  = 50 * time.Millisecond // between looks while something waits
	paceDoze  = time.Second           // the same in a pause, when only reads or a longer pause can make a merge due
	paceQuiet = 100 * time.Millisecond
	// paceTrickle is what may be written in a tick that still counts as a pause: 1 MiB/s fills a memtable in a quarter of a minute.
	paceTrickle = 50 << 10
	// A merge that a short pause starts writes at most this many bytes for each that it takes out of L0; one that writes more
	// waits for a pause longPause times as long as itself.
	maxAnew   = 8
	longPause = 20
	// maxRuns bounds the waiting. Each run is one flushed memtable.
	maxRuns = 24
	// A level that is overfull times as large as it should be is emptied whatever is written, until it is what it should be.
	overfull = 2
	// What a look-up of a block in a run costs a read, with its share of opening the run, and a compressed byte a merge; as BenchmarkGrowth
	// has them.
	touchCost = 600 * time.Nanosecond
	byteCost  = 25 * time.Nanosecond
	// A memtable of flushBytes is flushed when nothing was written for flushQuiet.
	flushBytes = 4 << 20
	flushQuiet = time.Second
)

func newPace() *pace {
	return &pace{held: func() time.Duration { return 0 }, tight: func() bool { return false }, poke: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// wrote counts a batch of n bytes.
func (p *pace) wrote(n int) {
	if p.written.Add(int64(n))-p.flushed.Load() >= flushBytes && p.asleep.Load() {
		p.wake()
	}
}

// listen has the store report its flushes.
func (p *pace) listen(l *pebble.EventListener) {
	begun := l.FlushBegin
	l.FlushBegin = func(i pebble.FlushInfo) {
		p.flushed.Store(p.written.Load())
		begun(i)
	}
}

// open hands p the tree, once there is one.
func (p *pace) open(t *tree) {
	p.tree.Store(t)
	p.wake()
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

// Started implements pebble.CompactionGrantHandle.
func (p *pace) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (p *pace) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (p *pace) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle: a compaction has ended.
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

// run looks after the tree until Unregister.
func (p *pace) run() {
	defer close(p.done)
	t := time.NewTimer(0)
	defer t.Stop()
	var w writes
	var a account
	for {
		select {
		case <-p.stop:
			return
		case <-p.poke:
		case <-t.C:
		}
		p.asleep.Store(false)
		tree := p.tree.Load()
		if tree == nil {
			continue // open wakes
		}
		w.look(time.Now(), p.written.Load())
		again := min(p.flush(tree, &w), p.merge(tree, &w, &a))
		if again < never {
			t.Reset(again)
			continue
		}
		w = writes{}
		p.asleep.Store(true)
		if p.unflushed() >= flushBytes {
			p.wake() // a batch came in between, and saw nobody asleep
		}
	}
}

// never is no time to look again.
const never = time.Duration(1<<63 - 1)

// unflushed is about what the memtable holds.
func (p *pace) unflushed() int64 { return p.written.Load() - p.flushed.Load() }

// flush has the memtable flushed when it is worth it, and returns when to look again.
func (p *pace) flush(t *tree, w *writes) time.Duration {
	least := int64(flushBytes)
	if p.tight() {
		least = 1
	}
	switch {
	case p.unflushed() < least:
		return never
	case w.pause() < flushQuiet:
		return flushQuiet / 4
	}
	p.flushed.Store(p.written.Load())
	t.flush()
	return never
}

// merge grants waiting compactions when they are due, and returns when to look again.
func (p *pace) merge(t *tree, w *writes, a *account) time.Duration {
	for {
		if waiting, _ := p.db.GetWaitingCompaction(); !waiting {
			*a = account{}
			return never
		}
		if !p.free() {
			return never // one that ends wakes
		}
		if d := p.held(); d > 0 {
			return d
		}
		s := t.look()
		a.look(s)
		if !a.due(s, w.pause()) && !p.tight() {
			if w.pause() >= paceQuiet {
				return paceDoze
			}
			return paceTick
		}
		if !p.grant() {
			return paceTick
		}
		a.paid = 0
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

// writes follows how much is written. The zero value has seen nothing.
type writes struct {
	at      time.Time // of the last look; zero before the first
	busy    time.Time // the last look that found more than a trickle
	written int64
}

func (w *writes) look(t time.Time, written int64) {
	since := t.Sub(w.at)
	switch {
	case w.at.IsZero():
		w.busy = t
	case since < paceTick/2:
		return // too little to tell a rate
	case float64(written-w.written) > paceTrickle*float64(since)/float64(paceTick):
		w.busy = t
	}
	w.at, w.written = t, written
}

// pause is for how long there has been no more than a trickle.
func (w *writes) pause() time.Duration { return w.at.Sub(w.busy) }

// account is of what reads pay for the waiting runs. The zero value has seen nothing.
type account struct {
	begun   bool
	touches int64
	paid    time.Duration
	drain   bool // since a level was overfull
}

func (a *account) look(s shape) {
	if a.begun {
		// Of the places where a query looks, runs are those that a merge would take away.
		a.paid += time.Duration(s.touches-a.touches) * touchCost * time.Duration(s.runs) / time.Duration(s.runs+1)
	}
	a.begun, a.touches = true, s.touches
	a.drain = s.full >= overfull || a.drain && s.full >= 1
}

// due reports whether a merge should run after a pause of so long.
func (a *account) due(s shape, pause time.Duration) bool {
	price := time.Duration(s.above+s.below) * byteCost
	return s.runs >= maxRuns || a.drain || a.paid >= price || pause >= longPause*price ||
		pause >= paceQuiet && (s.full >= 1 || s.above*maxAnew >= s.below)
}

// treeOf is the tree of an open store.
func treeOf(db *pebble.DB, log *slog.Logger) *tree {
	return &tree{
		flush: func() {
			if _, err := db.AsyncFlush(); err != nil {
				log.Error("The memtable can't be flushed", "error", err)
			}
		},
		look: func() shape {
			m := db.Metrics()
			s := shape{runs: int(m.Levels[0].Sublevels), above: m.Levels[0].TablesSize, touches: m.BlockCache.Hits + m.BlockCache.Misses}
			for i, l := range m.Levels[1:] {
				if s.below == 0 {
					s.below = l.TablesSize
				}
				if i+2 < len(m.Levels) {
					s.full = max(s.full, l.FillFactor)
				}
			}
			return s
		},
	}
}
