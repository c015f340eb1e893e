package pebblekv

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// space follows how much room the disk has. It keeps some of it free: the bytes that memtables need when they are
// flushed, the bytes that merges write before their inputs are deleted, and Options.MinFree. Each kind of work stops
// while there is still room for more important work:
//
//	new data    when less than all of that is free
//	deletes     when the flushes' part and half of MinFree are left
//	merges      when the flushes' part and a quarter of MinFree are left;
//	            what they have written so far is deleted again
//	logs and flushes take all that is left, and the ballast after it
//
// Room for the next merge is kept because only merges free room: deleted data takes space until then.
//
// The file system is asked for the free bytes at an interval. Between two answers the bytes that are written are
// subtracted, so that no request waits for the file system. All fields are in bytes, except one.
type space struct {
	minFree  int64
	ballast  ballast
	known    bool         // the file system tells what is free
	total    int64        // of the disk
	memTable int64        // of one memtable
	base     int64        // that the level below L0 may have
	free     atomic.Int64 // less than what is free, by what was written over old bytes
	look     atomic.Int64 // with so many free it is time to ask again: half of the room is used
	flushing atomic.Int64 // what flushes will need
	merging  atomic.Int64 // what running merges and the next one will need
	runs     atomic.Int64 // of L0: no bytes
	atOpen   string       // the figures when the store was opened
	enough   int64        // that must be free to open the store for writing, and to take deletes then

	asking sync.Mutex    // of who asks the file system: what two find in addition to the same number would count twice
	poke   chan struct{} // capacity 1: look again
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

// On small disks everything is small, so that memtables, their logs and the next merge leave most of the disk to data.
const (
	memTableOfDisk   = 64 // a memtable has a 64th of the disk
	smallestMemTable = 256 << 10
	baseOfDisk       = 16 // the level below L0 has a 16th
	largestBase      = 256 << 20
)

// How often the file system is asked.
const (
	spaceTick  = time.Second
	spaceHurry = 100 * time.Millisecond // when little more than what is kept is free
)

// size fits the space to the disk that fs has below dir; unknown is a file system that doesn't say.
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

// kept is what must stay free for new data to be taken.
func (s *space) kept() int64 { return s.flushing.Load() + s.merging.Load() + s.minFree }

// fullRuns is how many runs less than stopRuns a full store may have. More are refused, because a merge that finds no
// room, as others took it, would keep all writers waiting.
const fullRuns = 3

// refuses returns what is refused at this number of free bytes. A refusal ends only when there is a little more room
// than the limit.
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

// mayMerge reports whether there is room for a merge to write n bytes more. Files that were deleted since the last
// answer of the file system are not counted as free, so it is asked again before a merge fails.
func (d *disk) mayMerge(n int64) bool {
	return d.space.mayMerge(n) || d.ask() == nil && d.space.mayMerge(n)
}

// mayMerge is disk.mayMerge by what is known.
func (s *space) mayMerge(n int64) bool {
	return !s.known || s.free.Load()-n >= s.flushing.Load()+s.minFree/4
}

// used takes n bytes that were written off what is free.
func (d *disk) used(n int) {
	if d.space.known {
		if d.space.free.Add(-int64(n)) < d.space.look.Load() {
			d.space.again()
		}
		d.refit()
	}
}

// tight reports whether data is refused because there is too little room.
func (d *disk) tight() bool { return d.refused.Load()&(refuseData|refuseAll) != 0 }

// short reports whether data will soon be refused.
func (d *disk) short() bool { return d.space.known && d.space.free.Load() < 2*d.space.kept() }

// full notes that the file system has refused to write.
func (d *disk) full() {
	if d.space.known {
		d.space.free.Store(0)
		d.refit()
	}
}

// refit sets what is refused because of the room there is.
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

// again has the file system asked soon.
func (s *space) again() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// mind follows the free space until rest.
func (d *disk) mind(metrics func() *pebble.Metrics, tidy func()) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-d.space.poke:
			select { // a burst of changes is one
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

// lookAtSpace is an operation, see stall.begin.
const lookAtSpace = "a look at the free space of "

// ask sets free to what the file system says. What is written meanwhile stays taken off.
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

// measure asks the file system what is free, and returns when to ask again.
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

// nextMerge is about what the largest merge that may come next reads, and writes before that goes: all of L0 with all
// of the level below it, or twice a table of another level with its share of the next one: tables differ.
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

// tell writes what is refused to the log: when that changes, and once a minute while it lasts, but never twice a
// minute.
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

// figures are for the operator.
func (s *space) figures() string {
	return fmt.Sprintf("%s are free of %s; %s are kept: %s for flushes, %s for merges, %s by --min-free.",
		size(s.free.Load()), size(s.total),
		size(s.kept()), size(s.flushing.Load()), size(s.merging.Load()), size(s.minFree))
}

// size writes bytes for people.
func size(n int64) string {
	switch n = max(n, 0); {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// inputs are the sizes of running merges, by job.
type inputs struct {
	mu   sync.Mutex
	jobs map[int]int64
}

// listen has the store report its merges.
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

// pause keeps work that fails from being tried again and again. Pebble would, a hundred times a second.
type pause struct {
	mu    sync.Mutex
	last  time.Duration
	until time.Time
	ended chan struct{} // made by who waits, closed by over
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
		return // of the same try
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

// left is how long the pause still takes.
func (p *pause) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.remaining()
}

// remaining is left for who holds mu.
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
	left int  // messages that didn't pass since
	told bool // for the caller
}

func (e *everyMinute) may() bool {
	_, ok := e.pass()
	return ok
}

// pass reports whether a message may pass, and how many before it didn't.
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

// listen has the store report its merges, and what goes wrong beside the requests. That may be the same a hundred times
// a second.
func (d *disk) listen(l *pebble.EventListener) {
	d.space.merges.listen(l)
	flushed := l.FlushEnd
	l.FlushEnd = func(i pebble.FlushInfo) {
		d.space.again() // the next merge reads more
		flushed(i)
	}
	var said everyMinute
	l.BackgroundError = func(err error) {
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
