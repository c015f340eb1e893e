package exec

import (
	"time"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
)

// Times tells how the time of a query was spent. It is kept only for a Query with a Timer.
type Times struct {
	Sources time.Duration // finding and reading candidates: Load and the index look-up
	Load    time.Duration // reading items by their keys
	Match   time.Duration // the exact filter
}

// Lookup is the time of the index look-up, and DocumentLoad the time of reading items. A scan reads only items.
func (s *Stats) Lookup() time.Duration {
	if s.Plan.Kind == access.Scan {
		return 0
	}
	return max(0, s.Times.Sources-s.Times.Load)
}

// DocumentLoad is the time that reading items took.
func (s *Stats) DocumentLoad() time.Duration { return s.Times.Sources - s.Lookup() }

// candidate takes the next candidate of a source. A sort isn't timed or counted here, because it takes its own
// candidates through this function.
func (r *Rows) candidate(src source, to *row) (bool, error) {
	switch s := src.(type) {
	case *sorter, *created:
		return src.next(to)
	case *creationScan:
		if s.sorts() {
			return src.next(to)
		}
	}
	var t time.Duration
	if r.q.Timer != nil {
		t = r.q.Timer()
	}
	ok, err := src.next(to)
	if ok {
		r.stats.Candidates += 1 + to.more
	}
	if r.q.Timer != nil {
		r.stats.Times.Sources += r.q.Timer() - t
	}
	return ok, err
}

// match applies the query's exact filter.
func (r *Rows) match(it *store.Item) (bool, error) {
	var t time.Duration
	if r.q.Timer != nil {
		t = r.q.Timer()
	}
	ok, err := r.q.Match(it)
	if ok {
		r.stats.Matched++
	}
	if r.q.Timer != nil {
		r.stats.Times.Match += r.q.Timer() - t
	}
	return ok, err
}

// load reads the item of an identity.
func (b *builder) load(it *store.Item, slot *store.ViewSlot, ident []byte, m *store.Mem) (bool, error) {
	if b.q.Timer == nil {
		return b.view.Fetch(it, slot, ident, m)
	}
	return b.timed(func() (bool, error) { return b.view.Fetch(it, slot, ident, m) })
}

// timed times the reading of an item.
func (b *builder) timed(read func() (bool, error)) (bool, error) {
	if b.q.Timer == nil {
		return read()
	}
	t := b.q.Timer()
	ok, err := read()
	b.rows.stats.Times.Load += b.q.Timer() - t
	return ok, err
}
