package journal

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// In a store that several processes share nobody knows which commits are on their way, so no process can give a commit
// its place in the journal before it is made. The order is made afterwards:
//
//  1. A commit writes what it has changed as *pending*, in its own batch. Its time is greater than those of all commits
//     before it in its slots: the heads of slots have the time of the last one, and the head is a precondition.
//  2. Whoever wants to read the journal *gathers* first: it reads what is pending in a snapshot, in the order of times,
//     and moves it behind the end of the journal, in one commit with the end as its precondition. A commit keeps its
//     time, or gets the next one after the end if that is later.
//  3. Readers read up to the end, which only gatherers move. What is behind the end can't be missed: it is pending, or
//     will be.
//
// So there is no mark that a process which was killed or paused could hold back, and no clock that has to be right. A
// snapshot that shows a commit shows all commits that it depends on, so they are gathered earlier or at the same time;
// at the same time the order is that of times.
//
// Which commits write anything is decided by the heads of their slots, which name the time of the last one that did. So
// a process that doesn't know yet that somebody has asked for a container's changes records them nevertheless, or its
// commit fails.
//
// Example: processes A and B insert into different slots, with the times 7 and 9. A is slow: 9 is visible first. C
// gathers, and the journal ends at 9. Then 7 becomes visible, and B gathers: it gets the time 10. All readers, at
// whichever process, see 9 before 10. The next commit in A's slot has a time above 7, and is gathered after it.

// ends is how far the journal of a shared store goes.
type ends struct {
	last  uint64 // time of the last entry
	total uint64 // bytes of all entries that were ever written, about
}

// Shared reports whether several processes write the journal.
func (j *Journal) Shared() bool { return j.shared }

// ReadOnly reports whether the engine takes no writes.
func (j *Journal) ReadOnly() bool { return j.set.ReadOnly }

// Take gives a commit of n entries its times, after a time that it follows, and returns the last. The store is shared.
func (j *Journal) Take(after uint64, n, size int, together bool) (first, last uint64) {
	if together {
		n = 1 + size/Part
	}
	j.Clock.Advance(after)
	first = j.Clock.Take(j.clk.Now(), max(n, 1))
	return first, first + uint64(max(n, 1)) - 1
}

// PutPending adds the entries of a commit to its batch. The times are those that Take has given.
func (j *Journal) PutPending(b *kv.Batch, news []Entry, first, last uint64, together bool) {
	millis := j.clk.Now().UnixMilli()
	for i := range news {
		e := &news[i]
		e.Millis, e.Together = millis, together
		if e.Time = first + uint64(i); together {
			e.Time = last
		}
		key := keys.AppendPending(nil, first, j.writer, uint32(i))
		val := append(make([]byte, 0, e.storedSize()+1), pendingMore)
		if i == len(news)-1 {
			val[0] = pendingLast
		}
		b.Put(key, e.append(val))
	}
}

// The first byte of a pending entry; the rest is an entry.
const (
	pendingMore = 1 // others of its commit follow
	pendingLast = 2
)

// pending is a commit that isn't in the journal yet.
type pending struct {
	time    uint64 // its first
	writer  uint64
	entries []*Entry
	size    int
}

// Nudge makes those who wait for changes look at once.
func (j *Journal) Nudge() {
	if !j.watching.Load() {
		return
	}
	select {
	case j.nudge <- struct{}{}:
	default:
	}
}

// Nudged is the channel of Nudge. It also tells of the first watcher.
func (j *Journal) Nudged() <-chan struct{} { return j.nudge }

// Watching reports whether anybody watches a container.
func (j *Journal) Watching() bool { return j.watching.Load() }

// Now returns a time: everything that is visible now has no later one in the journal, and everything that is
// acknowledged later has a later one. Positions after it are right at all processes.
func (j *Journal) Now(ctx context.Context) (uint64, error) {
	if !j.shared {
		now := j.Clock.Tick(j.clk.Now(), false)
		return now, j.Settle(ctx, now)
	}
	if err := j.Gather(ctx); err != nil {
		return 0, err
	}
	return j.Mark(), nil
}

// Reload reads what another process may have changed: what is recorded, and the time of the catalog's last change.
func (j *Journal) Reload(ctx context.Context) error {
	if !j.shared {
		return nil
	}
	if err := j.stateMu.Lock(ctx); err != nil {
		return err
	}
	defer j.stateMu.Unlock()
	of, vals := [][]byte{keys.JournalState(), keys.JournalCatalog()}, [2][]byte{}
	err := work.Each(len(of), len(of), func(i, _ int) (err error) { // at the same time: requests wait for this
		vals[i], err = orNil(j.eng.Get(ctx, nil, of[i]))
		return err
	})
	if err == nil {
		err = j.adoptState(vals[0])
	}
	if err != nil || vals[1] == nil {
		return err
	}
	t, err := decodeTime(vals[1])
	j.Clock.Advance(t)
	return err
}

func orNil(b []byte, err error) ([]byte, error) {
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	return b, err
}

// adoptState makes a stored state this process's; nil: there is none. The caller holds stateMu.
func (j *Journal) adoptState(b []byte) error {
	if bytes.Equal(b, j.stored) {
		return nil
	}
	if b == nil {
		j.stored = nil
		j.show(&scopes{version: j.Version() + 1})
		return nil
	}
	return j.readState(b)
}

// CatalogTime adds the time of a change of the catalog to its batch. Who reads the catalog knows of it.
func CatalogTime(b *kv.Batch, t uint64) { b.Put(keys.JournalCatalog(), encodeTime(t)) }

// Plan adds to a batch of the catalog that a namespace is recorded since a time; 0: that it is to be recorded, which
// isn't done yet. It returns the precondition; ok is false if there is nothing to do.
func (j *Journal) Plan(ctx context.Context, b *kv.Batch, ns Namespace, since uint64) (
	pre kv.Precondition, ok bool, err error) {
	if err := j.stateMu.Lock(ctx); err != nil {
		return pre, false, err
	}
	defer j.stateMu.Unlock()
	list := slices.Clone(j.scopes.Load().list)
	at := slices.IndexFunc(list, func(s scope) bool { return s.Namespace == ns })
	switch {
	case at < 0 && since == 0:
		list = append(list, scope{Namespace: ns, since: unready, usage: new(usage)})
		mark := []Entry{{Op: Mark, DB: ns.DB, Coll: ns.Coll}}
		first, last := j.Take(0, 1, mark[0].Room(), false)
		j.PutPending(b, mark, first, last, false)
	case at >= 0 && since != 0 && list[at].since == unready:
		list[at].since = since
	default:
		return pre, false, nil
	}
	b.Put(keys.JournalState(), encodeState(list, j.floor.Load()))
	return j.asStored(), true, nil
}

// Unplan adds to a batch of the catalog that a namespace isn't recorded any more, if nobody has used it for as long as
// entries are kept. It returns the precondition; ok is false if there is nothing to do.
func (j *Journal) Unplan(ctx context.Context, b *kv.Batch, ns Namespace) (pre kv.Precondition, ok bool, err error) {
	if err := j.stateMu.Lock(ctx); err != nil {
		return pre, false, err
	}
	defer j.stateMu.Unlock()
	kept, _ := j.idle(j.clk.Now())
	list := slices.DeleteFunc(slices.Clone(j.scopes.Load().list), func(s scope) bool {
		return s.Namespace == ns && !slices.ContainsFunc(kept, func(k scope) bool { return k.Namespace == ns })
	})
	if len(list) == len(j.scopes.Load().list) {
		return pre, false, nil
	}
	b.Put(keys.JournalState(), encodeState(list, j.floor.Load()))
	return j.asStored(), true, nil
}

// Idle returns the namespaces that nobody has used for as long as entries are kept.
func (j *Journal) Idle() (out []Namespace) {
	kept, _ := j.idle(j.clk.Now())
	for _, s := range j.scopes.Load().list {
		if !slices.ContainsFunc(kept, func(k scope) bool { return k.Namespace == s.Namespace }) {
			out = append(out, s.Namespace)
		}
	}
	return out
}

// asStored is the precondition that the stored state is the one that this process knows. The caller holds stateMu.
func (j *Journal) asStored() kv.Precondition {
	if j.stored == nil {
		return kv.Precondition{Key: keys.JournalState(), Expect: kv.Absent}
	}
	return kv.Precondition{Key: keys.JournalState(), Expect: kv.Equal, Value: j.stored}
}

// floorIn returns the floor that a snapshot shows.
func (j *Journal) floorIn(snap kv.Snapshot) (uint64, error) {
	if !j.shared {
		return j.floor.Load(), nil
	}
	b, err := orNil(snap.Get(nil, keys.JournalState()))
	if err != nil || b == nil {
		return j.floor.Load(), kv.Status(err)
	}
	floor, err := floorOf(b)
	return max(floor, j.floor.Load()), err
}

func errEnd() error { return status.New(status.Corruption, "malformed end of the journal") }
