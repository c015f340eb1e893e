// Package journal is the record of changes of a whole store in one order, for change streams. It holds changes of items
// and of the catalog, of the databases and containers whose changes somebody has asked for. A store that nobody has
// asked has none, and its commits only load one flag.
//
// Each entry is written in the batch of the commit that makes the change, under a time of Clock of its own. So the
// journal has a change if and only if the store has it. A commit gets its time just before it is passed to the engine,
// and may become visible later than a commit with a greater time. The *mark* is the greatest time below which nothing
// can become visible any more: a reader goes up to it, and its position stays right. Everything that a reader is given
// is durable.
//
// The order is that of Clock: all changes of an item, of a container and of its drop or rename are in the order in
// which they were made. A position is a time and a number within it. It names neither containers nor slots, so splits,
// drops and renames don't change it.
//
// Example: somebody reads the changes of "shop". Insert A gets the time 7 and insert B, in another slot, gets 8. B is
// visible first: the mark stays 6. When A is visible the mark is 8, and the reader gets A and then B.
//
// In a store that several processes share the order is made after the commits: see shared.go.
package journal

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// Settings of a journal. Zero values stand for the defaults.
type Settings struct {
	Age      time.Duration // entries that are older are removed; 0 = defaultAge
	Bytes    int64         // beyond that the oldest entries are removed; 0 = defaultBytes
	ReadOnly bool          // the engine takes no writes
}

// The defaults of Settings.
const (
	defaultAge   = 24 * time.Hour
	defaultBytes = 1 << 30
)

// Journal is the journal of a store. Safe for concurrent use.
type Journal struct {
	eng kv.Engine
	clk *clock.Clock
	set Settings

	// Clock gives the times of the entries. Whoever shows times to clients uses it too.
	Clock Clock

	shared bool   // other processes write to the store too
	writer uint64 // this process, in keys of what is pending; 0 if it isn't shared

	active atomic.Bool            // something is recorded, or somebody watches a container
	scopes atomic.Pointer[scopes] // what is recorded
	floor  atomic.Uint64          // everything at or below this time may have been removed
	kept   atomic.Uint64          // the next process begins its times behind it, see Keep
	keptMu work.Lock              // allows one change of kept at a time

	gatherMu work.Lock     // allows one round of Gather at a time
	watching atomic.Bool   // there are topics
	nudge    chan struct{} // see Nudge

	stateMu work.Lock // allows one change of the stored state at a time
	stored  []byte    // the stored state; guarded by stateMu
	trimAt  time.Time // guarded by stateMu, as are the following
	// Of a shared store: everything up to dropped was removed; everything up to dropTo is to be at dropAt, 0: nothing.
	dropped, dropTo uint64
	dropAt          time.Duration

	mu      sync.Mutex
	flight  []*Ticket // tickets that aren't over, by time
	pending []commit  // commits that may not be durable, and that no other of them covers
	seq     uint64    // number of tickets that are over
	total   uint64    // bytes of all entries that were ever written, about
	topics  map[Namespace]*Topic
	end     ends  // of a shared store, as far as this process knows it
	due     []due // news of topics that aren't settled: an earlier ticket isn't over
}

// commit is a commit of the engine with the number of tickets that were over before it.
type commit struct {
	seq uint64
	of  kv.Commit
}

// due is a topic that has an entry with a time.
type due struct {
	topic *Topic
	time  uint64
}

// Open returns the journal of a store.
func Open(ctx context.Context, eng kv.Engine, clk *clock.Clock, set Settings) (*Journal, error) {
	if set.Age <= 0 {
		set.Age = defaultAge
	}
	if set.Bytes <= 0 {
		set.Bytes = defaultBytes
	}
	j := &Journal{eng: eng, clk: clk, set: set, topics: map[Namespace]*Topic{}, shared: eng.Shared(),
		nudge: make(chan struct{}, 1), keptMu: work.NewLock(), gatherMu: work.NewLock(), stateMu: work.NewLock()}
	j.scopes.Store(&scopes{})
	if j.shared {
		j.writer = uint64(clk.Int63())
		return j, j.Reload(ctx)
	}
	snap, err := eng.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	if err := j.loadState(snap); err != nil {
		return nil, err
	}
	if err := j.loadTime(snap); err != nil {
		return nil, err
	}
	if j.Active() {
		// The process before this one may have shown times of the present second to clients, as times of its replies.
		// A change that got such a time would be behind a reader that begins there.
		j.Clock.Advance(Wall(clk.Now().Add(time.Second)))
	}
	it, err := snap.Iter(keys.JournalBounds())
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if it.Last() {
		t, _, ok := keys.ParseJournal(it.Key())
		var e Entry
		if _, err := e.head(it.Value()); err != nil || !ok {
			return nil, errEntry()
		}
		j.Clock.Advance(t)
		j.total = e.total
	}
	return j, it.Err()
}

// Bytes returns how many bytes of entries are kept.
func (j *Journal) Bytes() int64 { return j.set.Bytes }

// Active reports whether commits have to look any further at the journal.
func (j *Journal) Active() bool { return j.active.Load() }

// Records reports whether changes of a container are recorded. With coll "" it says whether anything of the database
// is.
func (j *Journal) Records(db, coll string) bool { return j.scopes.Load().covers(db, coll) }

// Version goes up with every change of what is recorded.
func (j *Journal) Version() uint64 { return j.scopes.Load().version }

// Ticket is a commit on its way. The caller calls End in any case.
type Ticket struct {
	j      *Journal
	time   uint64 // its first
	last   uint64
	next   Position // of the next entry
	seq    uint64   // tickets that were over when this one began
	millis int64
	total  uint64 // of its first entry
	topics []*Topic
	over   bool

	together bool // all entries have the last time
}

// Begin gives a commit its times, one for each of its n entries. size is about the number of bytes of the entries (see
// Room).
func (j *Journal) Begin(n, size int) *Ticket { return j.begin(max(n, 1), size, false) }

// Part is the number of bytes of a commit that is shown as one for which it gets a time more.
const Part = 1 << 20

// BeginTogether is Begin for a commit that is shown as one: all of its entries have the same time, and one number after
// the other. It also gets the size/Part times before that, which no entry has. A reader that can't show it at once may
// give them to the parts in which it does.
func (j *Journal) BeginTogether(size int) *Ticket { return j.begin(1+size/Part, size, true) }

func (j *Journal) begin(n, size int, together bool) *Ticket {
	now := j.clk.Now()
	t := &Ticket{j: j, millis: now.UnixMilli(), together: together}
	j.mu.Lock()
	defer j.mu.Unlock()
	t.time, t.seq, t.total = j.Clock.Take(now, n), j.seq, j.total
	t.last = t.time + uint64(n) - 1
	if t.next.Time = t.time; together {
		t.next.Time = t.last
	}
	j.total += uint64(size)
	j.flight = append(j.flight, t)
	return t
}

// Time returns the time of the commit's last entry.
func (t *Ticket) Time() uint64 { return t.last }

// Put adds an entry to the commit's batch.
func (t *Ticket) Put(b *kv.Batch, e *Entry) {
	e.Time, e.N, e.Millis, e.Together = t.next.Time, t.next.N, t.millis, t.together
	t.total += e.storedSize()
	e.total = t.total
	if t.together {
		t.next.N++
	} else {
		t.next.Time++
	}
	t.Touch(e.DB, e.Coll)
	b.Put(keys.AppendJournal(nil, e.Time, e.N), e.append(make([]byte, 0, e.storedSize())))
}

// Room is about the number of bytes that an entry adds to a batch.
func (e *Entry) Room() int { return int(e.storedSize()) }

// Touch tells those who watch a container that the commit changes it. A commit with a greater time may have done so
// before.
func (t *Ticket) Touch(db, coll string) {
	j := t.j
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, ns := range [...]Namespace{{db, coll}, {DB: db}, {}} {
		if tp := j.topics[ns]; tp != nil && !slices.Contains(t.topics, tp) {
			tp.last = max(tp.last, t.last)
			t.topics = append(t.topics, tp)
		}
	}
}

// End says that the commit is visible; nil: that it was not made. Only the first call counts.
func (t *Ticket) End(w kv.Commit) {
	if t == nil {
		return
	}
	j := t.j
	j.mu.Lock()
	defer j.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	i := 0
	for j.flight[i] != t {
		i++
	}
	j.flight = append(j.flight[:i], j.flight[i+1:]...)
	j.seq++
	if w != nil {
		// This commit was made after all whose tickets were over before it began: they are durable when it is.
		kept := j.pending[:0]
		for _, p := range j.pending {
			if p.seq > t.seq {
				kept = append(kept, p)
			}
		}
		clear(j.pending[len(kept):])
		j.pending = append(kept, commit{j.seq, w})
	}
	j.settle(t)
}

// settle wakes those who wait for something that is settled now. The caller holds mu.
func (j *Journal) settle(t *Ticket) {
	for _, tp := range t.topics {
		j.due = append(j.due, due{tp, t.last})
	}
	if len(j.due) == 0 {
		return
	}
	mark, kept := j.mark(), j.due[:0]
	for _, d := range j.due {
		if d.time <= mark {
			d.topic.wakeAll()
		} else {
			kept = append(kept, d)
		}
	}
	clear(j.due[len(kept):])
	j.due = kept
}

// mark returns the time up to which nothing can become visible any more. The caller holds mu.
func (j *Journal) mark() uint64 {
	if j.shared {
		return j.end.last
	}
	if len(j.flight) > 0 {
		return j.flight[0].time - 1
	}
	return j.Clock.Tick(j.clk.Now(), false)
}

// settled returns the mark, and the commits that must be durable before anything up to it is shown.
func (j *Journal) settled() (uint64, []kv.Commit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var wait []kv.Commit
	for _, p := range j.pending {
		wait = append(wait, p.of)
	}
	return j.mark(), wait
}

// Mark returns the time up to which nothing can become visible any more.
func (j *Journal) Mark() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mark()
}

// settleStep is the time between two looks at commits that are on their way.
const settleStep = 200 * time.Microsecond

// Settle waits until every commit with a time up to t is visible or has failed. That takes no longer than a commit.
func (j *Journal) Settle(ctx context.Context, t uint64) error {
	for j.Mark() < t {
		if !work.Sleep(ctx, settleStep) {
			return kv.Status(ctx.Err())
		}
	}
	return nil
}

// ErrNotKept is the error for a position whose next changes the journal no longer has, or never had.
func ErrNotKept() error {
	return status.New(status.Gone, "The journal doesn't have the changes from this position on: they are older than "+
		"its retention, or weren't recorded.")
}
