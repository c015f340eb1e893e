package pebblekv

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// space watches the free space of the disk. It keeps some of it free: the bytes that memtables need when they are
// flushed, the bytes that merges write before their inputs are deleted, and Options.MinFree. Each kind of work stops
// while there is still space for more important work:
//
//	new data    when less than all of that is free
//	deletes     when less than the flushes' part and half of MinFree is free
//	merges      when less than the flushes' part and a quarter of MinFree is free;
//	            the output of a stopped merge is deleted
//	logs and flushes may use all of the disk, and then the ballast
//
// Space for the next merge is kept because only merges free space: deleted data takes space until it is merged away.
//
// Example: flushes need 32 MiB, merges 100 MiB, and MinFree is 256 MiB. New data is refused below 388 MiB of free
// space, deletes below 160 MiB, and merges stop below 96 MiB.
//
// The file system is asked for the free bytes at an interval. Between two answers every written byte is subtracted, so
// no request waits for the file system. All fields are in bytes, except one.
type space struct {
	minFree  int64
	ballast  ballast
	known    bool         // the file system reports its free space
	total    int64        // of the disk
	memTable int64        // of one memtable
	base     int64        // largest size of the level below L0
	free     atomic.Int64 // a lower bound: bytes that overwrite others are subtracted too
	look     atomic.Int64 // ask again when fewer are free: half of what may still be written
	flushing atomic.Int64 // what flushes will write
	merging  atomic.Int64 // what running merges and the next one will write
	runs     atomic.Int64 // of L0; a number, not bytes
	atOpen   string       // a sentence with the figures when the store was opened
	enough   int64        // must be free to open the store for writing and then accept deletes

	asking sync.Mutex    // serializes ask: two concurrent answers would correct the same error twice
	poke   chan struct{} // capacity 1: ask again soon
	merges inputs
	flush  pause // of flushes that failed
	merge  pause // of merges that failed
	said   everyMinute
}

// The default of Options.MinFree.
const (
	defaultMinFree   = 256 << 20
	smallDisk        = 5 << 30
	smallDiskMinFree = 5 // percent of a disk below smallDisk
)

// On small disks memtables, their logs and merges are small too, so that most of the disk is left to data.
const (
	memTableOfDisk   = 64 // a memtable has a 64th of the disk
	smallestMemTable = 256 << 10
	baseOfDisk       = 16 // the level below L0 has a 16th
	largestBase      = 256 << 20
)

// The intervals at which the file system is asked.
const (
	spaceTick  = time.Second
	spaceHurry = 100 * time.Millisecond // when the free space is near the limit
)

// size adapts the limits to the disk u. It isn't called if the file system doesn't report its space.
func (s *space) size(u vfs.DiskUsage, minFree, memTable int64) {
	s.known, s.total, s.minFree, s.memTable = true, int64(u.TotalBytes), minFree, memTable
	if minFree <= 0 {
		s.minFree = defaultMinFree
		if s.total < smallDisk {
			s.minFree = s.total / 100 * smallDiskMinFree
		}
	}
	s.memTable = min(memTable, max(s.total/memTableOfDisk, smallestMemTable))
	s.base = min(largestBase, max(s.total/baseOfDisk, s.memTable))
	s.free.Store(int64(u.AvailBytes))
	s.ballast.size = min(s.minFree/4, s.memTable)
}

// kept is the free space below which new data is refused.
func (s *space) kept() int64 { return s.flushing.Load() + s.merging.Load() + s.minFree }

// fullRuns: a store whose disk is full refuses all writes from stopRuns-fullRuns runs on. At stopRuns a writer would
// wait, perhaps for a merge that has no space.
const fullRuns = 3

// refuses returns the refused kinds of writes for the current free space. To end a refusal, a little more than its
// limit must be free.
func (s *space) refuses(before uint32) uint32 {
	free, kept := s.free.Load(), s.kept()
	half := s.flushing.Load() + s.minFree/2
	if before&refuseAll != 0 {
		half += s.minFree / 8
	}
	if before&(refuseData|refuseAll) != 0 {
		kept += s.minFree / 8
	}
	switch {
	case free < half, free < kept && s.runs.Load() >= stopRuns-fullRuns:
		return refuseAll
	case free < kept:
		return refuseData
	}
	return 0
}

// mayMerge reports whether a merge may write n more bytes. Files that were deleted since the file system was last asked
// aren't counted as free. So it is asked again before a merge fails.
func (d *disk) mayMerge(n int64) bool {
	return d.space.mayMerge(n) || d.ask() == nil && d.space.mayMerge(n)
}

// mayMerge does the same without asking the file system.
func (s *space) mayMerge(n int64) bool {
	return !s.known || s.free.Load()-n >= s.flushing.Load()+s.minFree/4
}

// used subtracts n written bytes from the free space.
func (d *disk) used(n int) {
	if d.space.known {
		if d.space.free.Add(-int64(n)) < d.space.look.Load() {
			d.space.again()
		}
		d.refit()
	}
}

// tight reports whether data is refused because the disk is full.
func (d *disk) tight() bool { return d.refused.Load()&(refuseData|refuseAll) != 0 }

// short reports whether data will soon be refused.
func (d *disk) short() bool { return d.space.known && d.space.free.Load() < 2*d.space.kept() }

// full records that a write has failed because the disk is full.
func (d *disk) full() {
	if d.space.known {
		d.space.free.Store(0)
		d.refit()
	}
}

// refit sets the bits of refused for the current free space.
func (d *disk) refit() {
	for {
		before := d.refused.Load()
		now := before&^(refuseData|refuseAll) | d.space.refuses(before)
		if now == before {
			return
		}
		if d.refused.CompareAndSwap(before, now) {
			d.space.again()
			return
		}
	}
}

// again makes mind ask the file system soon.
func (s *space) again() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// mind watches the free space until rest.
func (d *disk) mind(metrics func() *pebble.Metrics, tidy func()) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-d.space.poke:
			select { // several changes at once are handled together
			case <-d.stop:
				return
			case <-time.After(spaceHurry / 10):
			}
		case <-t.C:
		}
		t.Reset(d.measure(metrics))
		if d.tight() {
			tidy()
		}
	}
}

// lookAtSpace names the operation for stall.begin.
const lookAtSpace = "a look at the free space of "

// ask sets free to the file system's answer, minus what is written while it is asked.
func (d *disk) ask() error {
	d.space.asking.Lock()
	defer d.space.asking.Unlock()
	before := d.space.free.Load()
	place := d.stall.begin(lookAtSpace, d.dir)
	u, err := d.fs.GetDiskUsage(d.dir)
	d.stall.end(place)
	if err == nil {
		d.space.free.Add(int64(u.AvailBytes) - before)
	}
	return err
}

// measure asks the file system, and returns the time until it has to be asked again.
func (d *disk) measure(metrics func() *pebble.Metrics) time.Duration {
	s := &d.space
	if err := d.ask(); err != nil {
		return spaceTick // the last answer stays
	}
	m := metrics()
	inputs := s.merges.sum()
	s.runs.Store(int64(m.Levels[0].Sublevels))
	s.flushing.Store(int64(m.MemTable.Size))
	s.merging.Store(max(0, inputs-m.Compact.InProgressBytes) + max(0, nextMerge(m)-inputs))
	next := spaceTick
	if s.free.Load() < 4*s.kept() {
		next = spaceHurry
	}
	s.look.Store((s.free.Load() + s.kept()) / 2)
	d.refit()
	if !d.tight() {
		s.flush.over()
		if s.free.Load() > s.kept()+s.minFree/8+s.ballast.size {
			s.merge.over()
			s.ballast.fill(d)
		}
	}
	d.tell()
	return next
}

// nextMerge estimates how many bytes the largest possible next merge reads and writes: all of L0 and of the level below
// it, or, for another level, twice the size of an average table and its share of the next level, because tables differ.
func nextMerge(m *pebble.Metrics) int64 {
	n, base := m.Levels[0].TablesSize, true
	for i := 1; i < len(m.Levels); i++ {
		switch l, above := &m.Levels[i], &m.Levels[i-1]; {
		case l.TablesCount == 0:
		case base:
			n, base = n+l.TablesSize, false
		case above.TablesCount > 0:
			n = max(n, 2*(above.TablesSize+l.TablesSize)/above.TablesCount)
		}
	}
	return n
}

// tell logs what is refused: when that changes, and once a minute while it lasts, but never twice a minute.
func (d *disk) tell() {
	h := d.health()
	r := d.refused.Load() & (refuseData | refuseAll | refuseFlushes)
	switch {
	case r != 0 && d.space.said.may():
		d.log.Error(h.Reason)
		d.space.said.told = true
	case r == 0 && d.space.said.told && d.space.said.may():
		d.space.said.told = false
		d.log.Info("The disk has room again, writes go on. " + d.space.figures())
	}
}

// figures describe the free space for the operator.
func (s *space) figures() string {
	return fmt.Sprintf("%s of %s are free; %s are reserved: %s for flushes, %s for merges, %s by --min-free.",
		size(s.free.Load()), size(s.total),
		size(s.kept()), size(s.flushing.Load()), size(s.merging.Load()), size(s.minFree))
}

// size formats bytes for people.
func size(n int64) string {
	switch n = max(n, 0); {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// inputs are the sizes of the inputs of running merges, by job.
type inputs struct {
	mu   sync.Mutex
	jobs map[int]int64
}

// listen counts the merges that Pebble reports.
func (in *inputs) listen(l *pebble.EventListener) {
	in.jobs = map[int]int64{}
	begun, ended := l.CompactionBegin, l.CompactionEnd
	l.CompactionBegin = func(i pebble.CompactionInfo) {
		in.mu.Lock()
		for _, level := range i.Input {
			for _, t := range level.Tables {
				in.jobs[i.JobID] += int64(t.Size)
			}
		}
		in.mu.Unlock()
		begun(i)
	}
	l.CompactionEnd = func(i pebble.CompactionInfo) {
		in.mu.Lock()
		delete(in.jobs, i.JobID)
		in.mu.Unlock()
		ended(i)
	}
}

func (in *inputs) sum() (n int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, s := range in.jobs {
		n += s
	}
	return n
}

// pause delays the next try of work that fails. Pebble would try again a hundred times a second.
type pause struct {
	mu    sync.Mutex
	last  time.Duration
	until time.Time
	ended chan struct{} // made by a waiter, closed by over
}

const (
	firstPause   = 200 * time.Millisecond
	longestPause = 30 * time.Second
)

// failed makes the pause before the next try longer.
func (p *pause) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.until) {
		return // already counted in this pause
	}
	p.last = min(max(2*p.last, firstPause), longestPause)
	p.until = time.Now().Add(p.last)
}

// over ends the pause.
func (p *pause) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.until = 0, time.Time{}
	if p.ended != nil {
		close(p.ended)
		p.ended = nil
	}
}

// left returns the rest of the pause.
func (p *pause) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.remaining()
}

// remaining is left for callers that hold mu.
func (p *pause) remaining() time.Duration {
	if p.until.IsZero() {
		return 0
	}
	return max(0, time.Until(p.until))
}

// wait returns when the pause has passed; false when stop was closed first.
func (p *pause) wait(stop <-chan struct{}) bool {
	p.mu.Lock()
	left := p.remaining()
	if left > 0 && p.ended == nil {
		p.ended = make(chan struct{})
	}
	ended := p.ended
	p.mu.Unlock()
	if left == 0 {
		return true
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-stop:
		return false
	case <-ended:
	case <-t.C:
	}
	return true
}

// everyMinute lets one message a minute pass.
type everyMinute struct {
	mu   sync.Mutex
	last time.Time
	left int  // messages that were suppressed since
	told bool // used by the caller
}

func (e *everyMinute) may() bool {
	_, ok := e.pass()
	return ok
}

// pass reports whether a message may be logged, and how many were suppressed before it.
func (e *everyMinute) pass() (left int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.last.IsZero() && time.Since(e.last) < time.Minute {
		e.left++
		return 0, false
	}
	left, e.left, e.last = e.left, 0, time.Now()
	return left, true
}

// listen counts Pebble's merges, and logs errors of its background work, which may come a hundred times a second.
func (d *disk) listen(l *pebble.EventListener) {
	d.space.merges.listen(l)
	flushed := l.FlushEnd
	l.FlushEnd = func(i pebble.FlushInfo) {
		d.space.again() // the next merge reads more
		flushed(i)
	}
	var said everyMinute
	l.BackgroundError = func(err error) {
		if errors.Is(err, errClosing) {
			return
		}
		if left, ok := said.pass(); ok {
			d.log.Error("Background work of the store failed", "error", err.Error(), "others", left)
		}
	}
}

// closing reports whether the store is being closed.
func (d *disk) closing() bool {
	select {
	case <-d.stop:
		return true
	default:
		return false
	}
}
