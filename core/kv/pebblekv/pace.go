package pebblekv

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// pace keeps the store from falling behind its writers, by what it is behind with: full memtables that wait for their
// flush, runs (flushed memtables that lie unmerged in L0, in each of which a query must look), and bytes that levels
// must still merge.
//
//   - Merges cost as much as all else of a write, and less a byte the more one takes in. So while writes come in they
//     wait until there are mergeRuns; in a pause they run (see shape.due).
//   - Writers that are faster than flushes and merges are slowed down before a limit stops all of them (see steps).
//     Each byte then has a price in time, which rises with what is behind, so writers and disk meet somewhere, whatever
//     the disk can do.
//   - A pause has the memtable flushed: a search in it costs more than in a table.
//
// It is Pebble's CompactionScheduler. Pebble calls it with its own locks held, so nothing here calls Pebble with mu
// held.
type pace struct {
	written atomic.Int64 // bytes of batches so far
	flushed atomic.Int64 // what written was when the last flush began
	asleep  atomic.Bool  // run looks at nothing until it is woken
	poke    chan struct{}
	stop    chan struct{}
	done    chan struct{}

	memtable int64        // bytes of one
	full     atomic.Int64 // bytes of memtables that wait for their flush or are in it
	behind   atomic.Int64 // steps of the tree
	next     atomic.Int64 // when the next batch may go, in ns since start

	held func() time.Duration // for how long no merge may begin
	// the disk will soon be full: cheap merges wait for no pause, what lies in L0 keeps room from data
	short func() bool
	tight func() bool // the disk is full: what is deleted must go, whatever that costs

	db   pebble.DBForCompaction
	tree atomic.Pointer[tree] // nil until the store is open

	mu      sync.Mutex
	running int
	closed  bool
	reclaim time.Time // until when a pause is enough for any merge
	logged  int64     // what written was when the last log was made
	weight  float64   // bytes in memtables for each that was written
}

// tree is the store that is tidied up.
type tree struct {
	look  func() shape
	flush func()
}

// shape is what the decisions need to know of the tree.
type shape struct {
	runs    int     // sorted runs of L0
	above   int64   // bytes of L0
	below   int64   // bytes of the level that it is merged into
	full    float64 // the fullest of the levels between L0 and the last, as a share of what it should hold
	debt    int64   // bytes that must be merged until all levels are as they should be
	total   int64   // bytes of the store
	perByte float64 // ns that merges have taken for a byte
	reclaim bool    // merges bring space back
}

const (
	// stopRuns is where Pebble stops all writers, mergeRuns where merges wait no longer. From slowRuns on writers are
	// slowed down.
	mergeRuns = 12
	slowRuns  = 15
	stopRuns  = 19
	// A level overfull times as large as it should be is emptied whatever is written: it makes every merge into it
	// dearer.
	overfull = 2
	// A merge that a short pause starts writes at most maxAnew bytes for each that it takes out of L0.
	maxAnew = 8
	// A pause longPause times as long as a merge takes is enough for any.
	longPause = 20

	// reclaimFor is for how long after a drop a pause is enough for any merge: those that bring its space back are
	// small, and are asked for when it was flushed.
	reclaimFor = time.Minute

	paceTick  = 50 * time.Millisecond // between looks while there are writes
	paceDoze  = time.Second           // the same in a pause, while something waits
	paceQuiet = 100 * time.Millisecond
	// paceTrickle is what may be written in a tick that still counts as a pause: 1 MiB/s fills a memtable in a quarter
	// of a minute.
	paceTrickle = 50 << 10
	// A memtable of flushBytes is flushed when nothing was written for flushQuiet.
	flushBytes = 4 << 20
	flushQuiet = time.Second
)

func newPace(memtable int) *pace {
	no := func() bool { return false }
	return &pace{memtable: int64(memtable), weight: 1, held: func() time.Duration { return 0 }, short: no, tight: no,
		poke: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// due reports whether a merge should run after a pause of so long.
func (s *shape) due(pause time.Duration) bool {
	price := time.Duration(float64(s.above+s.below) * s.perByte)
	return s.runs >= mergeRuns || s.full >= overfull ||
		pause >= paceQuiet && (s.full >= 1 || s.reclaim || s.above*maxAnew >= s.below || pause >= longPause*price)
}

// maxSteps is the number of prices but for the first.
const maxSteps = 4

// prices is what a byte of a batch costs a writer, in ns, by the number of steps: without limit, then 250, 66, 20 and 8
// MB/s, which spans what disks do. With the last one eight clients with batches of 100 items wait a fifth of a second
// each.
var prices = [maxSteps + 1]int64{0, 4, 15, 50, 120}

const (
	// memTables may exist: one that is written to, and full ones.
	memTables = 6
	// maxDelay is how long a batch waits at most.
	maxDelay = 100 * time.Millisecond
	// minDelay is less than what a sleep takes longer than it should: it stays owed.
	minDelay = 200 * time.Microsecond
	// freeDebt is debt that slows nobody down, beside a quarter of the store.
	freeDebt = 1 << 30
)

// steps is by how many steps the tree is behind. Runs: one for each from slowRuns on. Debt: as many as times that it is
// more than may be.
func (s *shape) steps() int64 {
	runs := int64(max(s.runs-slowRuns+1, 0))
	return min(max(runs, s.debt/(freeDebt+s.total/4)), maxSteps)
}

// steps is by how many steps the store is behind. A memtable that is being flushed is none, each further full one is.
func (p *pace) steps() int64 {
	waiting := max(p.full.Load()+p.memtable/2, 0)/p.memtable - 1
	return min(max(waiting, p.behind.Load()), maxSteps)
}

var start = time.Now()

// admit is called before a batch of n bytes takes any lock, and returns when it may go on.
func (p *pace) admit(n int) {
	if s := p.steps(); s > 0 {
		if d := p.delay(n, s, time.Since(start)); d > 0 {
			time.Sleep(d)
		}
	}
}

// delay is how long a batch of n bytes must wait that comes now.
func (p *pace) delay(n int, steps int64, now time.Duration) time.Duration {
	for {
		next := p.next.Load()
		wait := max(next-int64(now), 0)
		if wait > int64(maxDelay) {
			return maxDelay
		}
		paid := min(wait+prices[steps]*int64(n), 2*int64(maxDelay)) // nobody pays for one large batch for long
		if p.next.CompareAndSwap(next, int64(now)+paid) {
			if wait < int64(minDelay) {
				return 0
			}
			return time.Duration(wait)
		}
	}
}

// wrote counts a batch of n bytes.
func (p *pace) wrote(n int) {
	if p.written.Add(int64(n))-p.flushed.Load() >= flushBytes && p.asleep.Load() {
		p.wake()
	}
}

// dropped says that a range was dropped.
func (p *pace) dropped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reclaim = time.Now().Add(reclaimFor)
}

// listen has the store report its memtables. A new log means that the memtable before is full. A flush takes all that
// are full, so each sets full right; the next one after a failed flush does, too.
func (p *pace) listen(l *pebble.EventListener) {
	begun, ended := l.FlushBegin, l.FlushEnd
	l.WALCreated = func(pebble.WALCreateInfo) {
		written := p.written.Load()
		p.mu.Lock()
		p.full.Add(int64(float64(written-p.logged) * p.weight))
		p.logged = written
		p.mu.Unlock()
	}
	l.FlushBegin = func(i pebble.FlushInfo) {
		p.mu.Lock()
		if n := p.logged - p.flushed.Load(); n > 0 {
			p.weight = float64(i.InputBytes) / float64(n)
		}
		p.flushed.Store(p.logged)
		p.full.Store(int64(i.InputBytes))
		p.mu.Unlock()
		begun(i)
	}
	l.FlushEnd = func(i pebble.FlushInfo) {
		p.full.Add(-int64(i.InputBytes))
		ended(i)
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

// TrySchedule implements pebble.CompactionScheduler. Pebble's locks are held, so the tree can't be looked at: Pebble
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
		again := min(p.flush(tree, &w), p.merge(tree, &w))
		if w.pause() < paceQuiet || p.behind.Load() > 0 {
			again = paceTick
		}
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
const never = time.Duration(math.MaxInt64)

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
func (p *pace) merge(t *tree, w *writes) time.Duration {
	for {
		s := t.look()
		p.behind.Store(s.steps())
		waiting, what := p.db.GetWaitingCompaction()
		if !waiting || !p.free() {
			return never // one that is asked for, or that ends, wakes
		}
		if d := p.held(); d > 0 {
			return d
		}
		s.reclaim = p.reclaims()
		pause := w.pause()
		if p.short() {
			pause = max(pause, paceQuiet)
		}
		small := what.Optional // it only brings space back
		if !small && !p.tight() && !s.due(pause) {
			return paceDoze
		}
		if !p.grant() {
			return paceTick
		}
	}
}

// reclaims reports whether a range was dropped not long ago.
func (p *pace) reclaims() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.reclaim)
}

// free reports whether one more compaction may run. Where room gets short they run one by one: there is room for one.
func (p *pace) free() bool {
	allowed := p.db.GetAllowedWithoutPermission()
	if p.short() {
		allowed = min(allowed, 1)
	}
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

// treeOf is the tree of an open store.
func treeOf(db *pebble.DB, log *slog.Logger) *tree {
	return &tree{
		flush: func() {
			if _, err := db.AsyncFlush(); err != nil {
				log.Error("The memtable can't be flushed", "error", err)
			}
		},
		look: func() shape { return shapeOf(db.Metrics()) },
	}
}

func shapeOf(m *pebble.Metrics) shape {
	s := shape{runs: int(m.Levels[0].Sublevels), above: m.Levels[0].TablesSize, debt: int64(m.Compact.EstimatedDebt)}
	var merged uint64
	for i := range m.Levels {
		l := &m.Levels[i]
		s.total += l.TablesSize
		merged += l.TableBytesCompacted
		if i == 0 {
			continue
		}
		if s.below == 0 {
			s.below = l.TablesSize
		}
		if i+1 < len(m.Levels) {
			s.full = max(s.full, l.FillFactor)
		}
	}
	if merged > 0 {
		s.perByte = float64(m.Compact.Duration) / float64(merged)
	}
	return s
}
