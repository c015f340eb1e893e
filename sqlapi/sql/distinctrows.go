package sql

import (
	"cmp"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// distinctRow is a row of a DISTINCT: a group without aggregates.
type distinctRow struct{ val value.Value }

var keyedRows = &spill.Keyed[distinctRow]{
	Compare: func(a, b *distinctRow) int { return compareKeys(a.val, b.val) },
	Append:  func(dst []byte, r *distinctRow) []byte { return value.AppendTyped(dst, r.val) },
	Decode: func(b []byte, r *distinctRow) error {
		v, _, ok := value.ReadTyped(b)
		if r.val = v; !ok {
			return status.New(status.Corruption, "A row in a temporary file is damaged.")
		}
		return nil
	},
	Merge: func(_, _ *distinctRow) error { return nil },
}

// distinctSet is the rows that a DISTINCT has met. While they fit into memory, each row is passed on when it is met for
// the first time. When they don't fit, they are written to a file. From then on the query can't tell at once whether a
// row is new. So it only collects rows, up to the last one. Then the runs are merged, and the rows that were not passed
// on follow in the order in which they were met.
//
// Example: memory for two rows, input a, b, a, c, b, d. Rows a (place 0) and b (place 1) are passed on. c is too much:
// a, b and c are written to a file, and passed is 2. b (place 3) and d (place 4) are collected. The merge gives a
// (place 0), b (place 1), c (place 2) and d (place 4). Rows c and d have places from 2 on and are passed on now.
type distinctSet struct {
	set[distinctRow]
	gathering bool
	passed    int64 // with gathering: rows with smaller places were passed on
}

// newDistinct returns an empty set of rows.
func (cq *cquery) newDistinct(f *frame) *distinctSet {
	return &distinctSet{set: newSet(f, keyedRows, cq.once)}
}

// add adds a row with its hash. It reports whether the row is new and can be passed on now.
func (s *distinctSet) add(f *frame, v value.Value, hash uint64) bool {
	for r := s.Find(hash); r != nil; r = r.Next() {
		if funcs.Same(r.State.val, v) {
			return false
		}
	}
	r := s.Add(hash)
	r.State.val = funcs.DeepView(v).Clone()
	s.size += distinctSize + funcs.BytesOf(v)
	place := r.Place
	s.charge(f) // this can write all rows to a file
	if !s.gathering && s.Written() {
		s.gathering, s.passed = true, place
	}
	return !s.gathering
}

// gather makes the set collect the rows that follow.
func (s *distinctSet) gather() {
	if !s.gathering {
		s.gathering, s.passed = true, s.Found()
	}
}

// rest ends the collection. It returns the rows that were not passed on.
func (s *distinctSet) rest(f *frame) (*gathered[distinctRow], error) {
	if !s.Written() {
		return gather(f, &s.set, keyedRows, s.passed), nil
	}
	return gatherWritten(f, &s.set, keyedRows, func(a, b *spill.Group[distinctRow]) int {
		return cmp.Compare(a.Place, b.Place)
	}, func(g *spill.Group[distinctRow]) (distinctRow, int, bool) {
		if g.Place < s.passed {
			return distinctRow{}, 0, false
		}
		return distinctRow{g.State.val.Clone()}, distinctSize + funcs.BytesOf(g.State.val), true
	})
}

// distinctRows is the state of a DISTINCT between two pages, when it has returned too many rows for their hashes to fit
// into a continuation. It holds the set of rows that were returned, and the position after the page.
//
// Example: page 1 returns 1000 distinct values. The set of these values is kept under a number, and the continuation
// has the number. Page 2 takes the set and continues at the position. If the set was dropped in the meantime, page 2
// reads all items from the start and drops the first 1000 distinct values.
//
// A set that takes too much memory is kept in a file. Then page 2 collects all rows that follow, and keeps those that
// it doesn't return (gathered).
type distinctRows struct {
	acct *budget.Account
	seen *distinctSet
	st   state
}

// Held implements spill.State.
func (d *distinctRows) Held() int64 { return int64(d.seen.held) }

// Close implements spill.State.
func (d *distinctRows) Close() {
	d.seen.Close()
	d.acct.Close()
	d.acct, d.seen = nil, nil
}

// keepDistinct keeps the rows that were returned, for a next page that continues at st.
func (r *runner) keepDistinct(st state) error {
	st.seen = r.st.seen // rows of the pages before the first page that kept a set
	f, seen := r.f, r.f.subs[r.p.top.id].seen
	if r.kept.all == nil || seen == nil || f.acct == nil {
		return nil
	}
	if int64(seen.held) > r.kept.all.Most() {
		passed := seen.Found()
		if err := seen.write(f); err != nil {
			return err
		}
		seen.gathering, seen.passed = seen.Written(), passed
	}
	f.subs[r.p.top.id].seen = nil
	r.keptAs = r.kept.all.Put(r.kept.owner, &distinctRows{acct: f.handOver(), seen: seen, st: st})
	return nil
}

// takeDistinct restores what the previous page has kept: the rows that it has returned, or those that are left.
func (r *runner) takeDistinct() {
	switch d := r.kept.take(r.st.kept).(type) {
	case nil:
	case *distinctRows:
		d.st.drop = 0
		r.given = r.st.drop
		r.st, r.resumed = d.st, true
		r.f.subs[r.p.top.id].seen, r.f.acct = d.seen, d.acct
		if d.seen.files {
			r.f.spills()
		}
	case *gathered[distinctRow]:
		r.resume(d.left)
		r.rest = d
		r.f.acct, d.acct = d.acct, nil
	default: // the sorted rows of a page whose continuation had no room for hashes
		d.Close()
	}
}

// gather makes a DISTINCT collect all rows that follow, when it would otherwise compute them again for each page. It is
// called when a page is full. It reports whether the rows are collected.
func (r *runner) gather() bool {
	cq, seen := r.p.top, r.f.subs[r.p.top.id].seen
	if !cq.q.Distinct || seen == nil || r.kept.all == nil {
		return false
	}
	rows := r.plain()
	sorted := rows != nil && rows.rows.Stats().Sorted && len(r.hashes) == 0
	if !seen.gathering && !cq.grouped && cq.derived == nil && !sorted {
		return false
	}
	seen.gather()
	return true
}

// runRest fills the page with the rows of a DISTINCT that were collected.
func (r *runner) runRest() error {
	f, st := r.f, &r.f.subs[r.p.top.id]
	if r.rest == nil {
		rows, err := st.seen.rest(f)
		if err != nil {
			return err
		}
		r.rest = rows
	}
	st.ready, f.root = r.rest, rootRow{}
	for {
		x, err := r.rest.peek()
		if x == nil || err != nil {
			return err
		}
		if r.pageFull() {
			r.full = true
			return r.keepRest()
		}
		r.rest.next()
		r.row = x.State.val
		if !r.emit(f) || f.err != nil {
			return f.err
		}
	}
}

// keepRest keeps the rows that are left for the next page.
func (r *runner) keepRest() (err error) {
	if r.kept.all == nil {
		return nil
	}
	r.rest.left, r.rest.stats = r.st.left, r.statsOf(r.rest.stats)
	r.f.subs[r.p.top.id].ready = nil
	r.keptAs, err = r.rest.keep(r.f, &r.kept)
	return err
}
