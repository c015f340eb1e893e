package pebblekv

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// pace keeps the store from falling behind its writers. It measures three backlogs: full memtables that wait for their
// flush, runs (flushed memtables in L0 that are not merged, each of which a query must search), and bytes that levels
// must still merge.
//
//   - Merges cost as much as everything else in a write, and the cost of a byte falls with the size of the merge. So
//     during writes they wait until there are mergeRuns runs. In a pause they run earlier (see shape.due).
//   - Writers that are faster than flushes and merges are slowed down before a limit stops all of them (see steps).
//     Each byte then costs time, and this price rises with the backlog. So writers and disk reach a balance at any
//     speed of the disk.
//   - In a pause the memtable is flushed: a search in it costs more than in a table.
//
// It is Pebble's CompactionScheduler. Pebble calls it while holding its own locks, so no method here calls Pebble while
// holding mu. At stopRuns runs a writer waits for a merge, and holds the lock of the log meanwhile. A flush waits for
// that lock, so it has a goroutine of its own: run has to allow the merge.
//
// Example: writes fill memtables faster than L0 is merged. At slowRuns runs (one step, 250 MB/s) a batch of 1 MB costs
// 4 ms: it goes on at once, and the next batch waits until these are over. When the merges have caught up there is no
// wait.
type pace struct {
	written atomic.Int64 // bytes of batches written so far
	flushed atomic.Int64 // value of written up to which flushes have begun
	asleep  atomic.Bool  // run is blocked until it is woken
	poke    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	flushes sync.WaitGroup // the flushes that wait for the lock of the log

	memtable int64        // bytes of one
	full     atomic.Int64 // bytes of memtables that wait for their flush or are being flushed
	behind   atomic.Int64 // steps by which the tree is behind
	next     atomic.Int64 // the time at which the next batch may start, in ns since start

	held func() time.Duration // how long no merge may begin
	// the disk will soon be full: cheap merges don't wait for a pause, because data in L0 uses room
	short func() bool
	tight func() bool // the disk is full: deleted data must be removed at any cost
	still atomic.Bool // the store isn't in use yet: nothing is merged

	db   pebble.DBForCompaction
	tree atomic.Pointer[tree] // nil until the store is open

	mu      sync.Mutex
	running int
	closed  bool
	reclaim time.Time // until then a pause is enough for any merge
	logged  int64     // value of written when the last log was made
	weight  float64   // bytes in memtables for each written byte
}

// tree is the store as pace sees it.
type tree struct {
	look  func() shape
	flush func()
}

// shape has the properties of the tree on which decisions depend.
type shape struct {
	runs    int     // sorted runs of L0
	above   int64   // bytes of L0
	below   int64   // bytes of the level that it is merged into
	full    float64 // the fullest of the levels between L0 and the last, as a share of its target size
	debt    int64   // bytes that must be merged until all levels have their target size
	total   int64   // bytes of the store
	perByte float64 // ns that merges have taken for a byte
	reclaim bool    // merges free space
}

const (
	// At stopRuns Pebble stops all writers. At mergeRuns merges no longer wait. From slowRuns on writers are slowed
	// down.
	mergeRuns = 12
	slowRuns  = 15
	stopRuns  = 19
	// A level that is overfull times as large as its target is merged even during writes: it makes every merge into it
	// more expensive.
	overfull = 2
	// A merge in a short pause rewrites at most maxAnew bytes for each byte that it moves out of L0.
	maxAnew = 8
	// A pause that is longPause times as long as a merge takes is enough for any merge.
	longPause = 20

	// reclaimFor is the time after a drop during which a pause is enough for any merge. The merges that free the
	// dropped space are small, and Pebble asks for them after the flush.
	reclaimFor = time.Minute

	paceTick  = 50 * time.Millisecond // between looks while there are writes
	paceDoze  = time.Second           // the same in a pause, while something waits
	paceQuiet = 100 * time.Millisecond
	// paceTrickle is the number of bytes that may be written in a tick that still counts as a pause: at 1 MiB/s a
	// memtable is full after about 15 seconds.
	paceTrickle = 50 << 10
	// A memtable of at least flushBytes is flushed after flushQuiet without writes.
	flushBytes = 4 << 20
	flushQuiet = time.Second
)

func newPace(memtable int) *pace {
	no := func() bool { return false }
	return &pace{memtable: int64(memtable), weight: 1, held: func() time.Duration { return 0 }, short: no, tight: no,
		poke: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// due reports whether a merge should run after a pause of this length.
func (s *shape) due(pause time.Duration) bool {
	price := time.Duration(float64(s.above+s.below) * s.perByte)
	return s.runs >= mergeRuns || s.full >= overfull ||
		pause >= paceQuiet && (s.full >= 1 || s.reclaim || s.above*maxAnew >= s.below || pause >= longPause*price)
}

// maxSteps is the number of prices, without the first.
const maxSteps = 4

// prices has the price of a byte of a batch in ns, by the number of steps: no price, then 250, 66, 20 and 8 MB/s, which
// covers the speeds of disks.
//
// Example: at the last price a batch of 200 KB costs 24 ms. Of eight clients that write such batches one after another,
// each would wait for the batches of the other seven, 168 ms. maxDelay lets it go on after 100 ms.
var prices = [maxSteps + 1]int64{0, 4, 15, 50, 120}

const (
	// memTables is the largest number of memtables: one that is written to, and full ones.
	memTables = 6
	// maxDelay is the longest wait of a batch.
	maxDelay = 100 * time.Millisecond
	// minDelay is less than the usual error of a sleep. A shorter wait is added to the next one.
	minDelay = 200 * time.Microsecond
	// freeDebt is the number of bytes of debt, in addition to a quarter of the store, that don't slow writers down.
	freeDebt = 1 << 30
)

// steps returns how many steps the tree is behind. Each run from slowRuns on is one step. Debt has as many steps as the
// multiple of the allowed debt.
func (s *shape) steps() int64 {
	runs := int64(max(s.runs-slowRuns+1, 0))
	return min(max(runs, s.debt/(freeDebt+s.total/4)), maxSteps)
}

// steps returns how many steps the store is behind. The memtable that is being flushed doesn't count; each further full
// one is a step.
func (p *pace) steps() int64 {
	waiting := max(p.full.Load()+p.memtable/2, 0)/p.memtable - 1
	return min(max(waiting, p.behind.Load()), maxSteps)
}

var start = time.Now()

// yieldFor is how long a batch of background work waits while the store is behind: at 256 KiB a batch it still makes
// 5 MB/s.
const yieldFor = 50 * time.Millisecond

// admit is called before a batch of n bytes takes any lock. It returns when the batch may continue. A batch of
// background work waits itself, and its bytes make no other batch wait.
func (p *pace) admit(n int, background bool) {
	if s := p.steps(); s > 0 && background {
		time.Sleep(yieldFor)
	} else if s > 0 {
		if d := p.delay(n, s, time.Since(start)); d > 0 {
			time.Sleep(d)
		}
	}
}

// delay returns how long a batch of n bytes must wait now: until the batches before it are paid for, but at most
// maxDelay. A batch that waits maxDelay pays nothing itself.
func (p *pace) delay(n int, steps int64, now time.Duration) time.Duration {
	for {
		next := p.next.Load()
		wait := max(next-int64(now), 0)
		if wait > int64(maxDelay) {
			return maxDelay
		}
		paid := min(wait+prices[steps]*int64(n), 2*int64(maxDelay)) // a bound for the effect of one large batch
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

// dropped records that a range was dropped.
func (p *pace) dropped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reclaim = time.Now().Add(reclaimFor)
}

// listen registers for events of the store's memtables. A new log means that the previous memtable is full. A flush
// takes all full memtables, so each flush sets full to the right value, even the one after a failed flush.
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

// open gives p the tree when the store is open.
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
	p.flushes.Wait()
}

// TrySchedule implements pebble.CompactionScheduler. The caller holds Pebble's locks, so the tree can't be read here.
// Pebble remembers the compaction, and run asks for it.
func (p *pace) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	p.wake()
	return false, nil
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler: another number of compactions may run now.
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

// work ends the time in which nothing is merged.
func (p *pace) work() {
	p.still.Store(false)
	p.wake()
}

// run schedules flushes and merges until Unregister.
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
			p.wake() // a batch was written in between, before asleep was set
		}
	}
}

// never means that no further look is scheduled.
const never = time.Duration(math.MaxInt64)

// unflushed returns the approximate number of bytes in the memtable.
func (p *pace) unflushed() int64 { return p.written.Load() - p.flushed.Load() }

// flush flushes the memtable if that is worth it. It returns the time until the next look.
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
	p.flushes.Go(t.flush)
	return never
}

// merge grants waiting compactions that are due. It returns the time until the next look.
func (p *pace) merge(t *tree, w *writes) time.Duration {
	for {
		s := t.look()
		p.behind.Store(s.steps())
		waiting, what := p.db.GetWaitingCompaction()
		if !waiting || !p.free() || p.still.Load() {
			return never // work, a request for a merge, or the end of one, wakes run
		}
		if d := p.held(); d > 0 {
			return d
		}
		s.reclaim = p.reclaims()
		pause := w.pause()
		if p.short() {
			pause = max(pause, paceQuiet)
		}
		small := what.Optional // it only frees space
		if !small && !p.tight() && !s.due(pause) {
			return paceDoze
		}
		if !p.grant() {
			return paceTick
		}
	}
}

// reclaims reports whether a range was dropped recently.
func (p *pace) reclaims() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.reclaim)
}

// free reports whether one more compaction may run. When the disk has little room, compactions run one at a time,
// because there is room for one.
func (p *pace) free() bool {
	allowed := p.db.GetAllowedWithoutPermission()
	if p.short() {
		allowed = min(allowed, 1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && p.running < allowed
}

// grant makes Pebble run the waiting compaction.
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

// writes measures the rate of writes. The zero value has measured nothing.
type writes struct {
	at      time.Time // of the last look; zero before the first
	busy    time.Time // the last look that found more than paceTrickle
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

// pause returns how long there have been no more writes than paceTrickle.
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
