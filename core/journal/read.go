package journal

import (
	"context"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// Position is a reader's position: everything up to the entry with this time and number was read.
type Position struct {
	Time uint64
	N    uint32
}

// lastN is above the number of every entry.
const lastN = 1<<32 - 1

// After returns the position after everything with a time up to t.
func After(t uint64) Position { return Position{t, lastN} }

// Whole reports whether the position is after all entries of its time.
func (p Position) Whole() bool { return p.N == lastN }

// Before reports whether p comes before q.
func (p Position) Before(q Position) bool { return p.Time < q.Time || p.Time == q.Time && p.N < q.N }

// Page is a part of the journal.
type Page struct {
	Entries []*Entry
	Next    Position
	More    bool // there may be more now
}

// Bounds of a page in addition to the requested number of entries.
const (
	maxBytes = 4 << 20 // of documents
	maxWork  = 50_000  // entries that aren't wanted
)

// Read returns up to most entries after a position and the next position. want chooses entries by their op, names and
// rid, before their documents are read. The page ends at the mark. Everything that it returns or passes is durable. The
// error is Gone (ErrNotKept) if the journal doesn't have everything after the position.
func (j *Journal) Read(ctx context.Context, after Position, most int, want func(*Entry) bool) (Page, error) {
	mark, wait := j.settled()
	if after.Time > mark || after.Time == mark && after.Whole() {
		return Page{Next: after}, j.reaches(after)
	}
	snap, err := j.eng.Snapshot(ctx) // it shows everything up to the mark
	if err != nil {
		return Page{}, kv.Status(err)
	}
	defer snap.Close()
	floor, err := j.floorIn(snap)
	if err != nil {
		return Page{}, err
	}
	if after.Time < floor {
		return Page{}, ErrNotKept()
	}
	p, err := j.read(ctx, snap, after, mark, most, want)
	if err != nil {
		return p, err
	}
	for _, w := range wait {
		if err := w.Wait(); err != nil {
			return Page{}, kv.Status(err)
		}
	}
	return p, nil
}

// reaches returns an error if entries after a position may have been removed. A caller that has a snapshot calls it
// afterwards.
func (j *Journal) reaches(after Position) error {
	if after.Time < j.floor.Load() {
		return ErrNotKept()
	}
	return nil
}

func (j *Journal) read(ctx context.Context, snap kv.Snapshot, after Position, mark uint64, most int,
	want func(*Entry) bool) (p Page, err error) {
	if err := j.reaches(after); err != nil {
		return p, err
	}
	lo := keys.AppendJournal(nil, after.Time, after.N)
	if after.Whole() {
		lo = keys.AppendJournal(nil, after.Time+1, 0)
	} else {
		lo = keys.AppendJournal(lo[:0], after.Time, after.N+1)
	}
	it, err := snap.Iter(lo, keys.AppendJournal(nil, mark+1, 0))
	if err != nil {
		return p, kv.Status(err)
	}
	defer it.Close()
	bytes, work := 0, 0
	p.Next = after
	for ok := it.First(); ok; ok = it.Next() {
		if len(p.Entries) >= most || bytes >= maxBytes || work >= maxWork {
			p.More = true
			return p, nil
		}
		e := &Entry{}
		t, n, ok := keys.ParseJournal(it.Key())
		if !ok {
			return p, errEntry()
		}
		e.Time, e.N = t, n
		val := it.Value()
		rest, err := e.head(val)
		if err != nil {
			return p, err
		}
		p.Next = e.Position()
		if !want(e) {
			if work++; work%1024 == 0 && ctx.Err() != nil {
				return p, kv.Status(ctx.Err())
			}
			continue
		}
		own := append(make([]byte, 0, len(val)), val...)
		if err := e.body(own, own[len(own)-len(rest):]); err != nil {
			return p, err
		}
		p.Entries, bytes = append(p.Entries, e), bytes+e.Size()
	}
	p.Next = After(mark)
	return p, kv.Status(it.Err())
}

// Find returns the entry at a position; nil if there is none. The error is Gone if it may have been removed. Another
// process may have read the entry from a shared journal whose end this one doesn't know yet: it looks first.
func (j *Journal) Find(ctx context.Context, at Position) (*Entry, error) {
	if j.shared && at.Time > j.Mark() {
		if err := j.Gather(ctx); err != nil {
			return nil, err
		}
	}
	var found *Entry
	before := Position{at.Time - 1, lastN}
	if at.N > 0 {
		before = Position{at.Time, at.N - 1}
	}
	if before.Time < j.floor.Load() {
		return nil, ErrNotKept()
	}
	p, err := j.Read(ctx, before, 1, func(*Entry) bool { return true })
	if err == nil && len(p.Entries) > 0 && p.Entries[0].Position() == at {
		found = p.Entries[0]
	}
	return found, err
}

// Before returns the last n wanted entries that are settled and before a position, the newest first.
func (j *Journal) Before(ctx context.Context, pos Position, n int, want func(*Entry) bool) (out []*Entry, err error) {
	mark, wait := j.settled()
	if mark < pos.Time {
		pos = After(mark)
	}
	snap, err := j.eng.Snapshot(ctx)
	if err != nil {
		return nil, kv.Status(err)
	}
	defer snap.Close()
	floor, err := j.floorIn(snap)
	if err != nil {
		return nil, err
	}
	lo, _ := keys.JournalBounds()
	it, err := snap.Iter(lo, keys.AppendJournal(nil, pos.Time, pos.N))
	if err != nil {
		return nil, kv.Status(err)
	}
	defer it.Close()
	for ok := it.Last(); ok && len(out) < n; ok = it.Prev() {
		e := &Entry{}
		e.Time, e.N, ok = keys.ParseJournal(it.Key())
		if !ok {
			return nil, errEntry()
		}
		if e.Time <= max(floor, j.floor.Load()) {
			break
		}
		own := append([]byte(nil), it.Value()...)
		rest, err := e.head(own)
		if err != nil {
			return nil, err
		}
		if !want(e) {
			continue
		}
		if err := e.body(own, rest); err != nil {
			return nil, err
		}
		out = append(out, e)
		if len(out)%1024 == 0 && ctx.Err() != nil {
			return nil, status.Wrap(status.Timeout, ctx.Err(), "The request took too long.")
		}
	}
	for _, w := range wait {
		if err := w.Wait(); err != nil {
			return nil, kv.Status(err)
		}
	}
	return out, kv.Status(it.Err())
}
