package sql

import (
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
)

// An ORDER BY that no index can answer must sort. Every page that sorts reads all items.
//
// The first page only sorts the rows that it returns. That needs little memory and no file. A client that requests a
// second page usually requests more. So the second page sorts all remaining rows and keeps them for the following
// pages. If they can't be kept, each page sorts only its own rows.
//
// Example: ORDER BY c.n without an index on /n, 1000 items, pages of 100 rows.
//
//	page 1     reads 1000 items, keeps the best 100 during the sort; the continuation says sortRest
//	page 2     reads 1000 items, sorts 900 rows, returns 100 and keeps 800 under a number
//	page 3..10 take the kept rows and sort nothing

// sortRest as state.kept in a continuation means that the next page sorts all remaining rows. It is never the number of
// a kept state.
const sortRest = 1

// sortedRows are sorted rows that are kept between pages.
type sortedRows struct{ rows *exec.Rows }

// Held implements spill.State.
func (s sortedRows) Held() int64 { return s.rows.Held() }

// Close implements spill.State.
func (s sortedRows) Close() { s.rows.Close() }

// keepsRows reports whether the sorted rows of this query are kept between pages. Rows ordered by ST_DISTANCE are not,
// because the nearest ones are found without reading the others. Nor are rows that are read ahead of the page.
func (r *runner) keepsRows(q *exec.Query) bool {
	cq := r.p.top
	return r.kept.all != nil && len(q.OrderBy) > 0 && q.OrderBy[0].Near == nil && !cq.grouped &&
		cq.derived == nil && r.f.calls == nil
}

// open returns the rows that the previous page has kept, or else opens the core's rows. tx may be nil.
func (r *runner) open(ctx context.Context, c *core.Container, q *exec.Query, tx *core.Tx) (*exec.Rows, error) {
	if tx != nil {
		return c.QueryTx(ctx, tx, q)
	}
	if r.st.kept != 0 && r.keepsRows(q) {
		q.Page = 0
		if s, ok := r.kept.take(r.st.kept).(sortedRows); ok {
			s.rows.Resume(ctx, q)
			return s.rows, nil
		}
	}
	return c.Query(ctx, q)
}

// keepRows keeps the rows that remain after a page. It returns state.kept for the continuation, and whether it has
// taken over the rows; the page must not close them then.
func (r *runner) keepRows(q *exec.Query, rows *exec.Rows, next *state) (id uint64, kept bool) {
	switch {
	case !r.keepsRows(q) || !rows.Stats().Sorted || next.inItem > 0:
		return next.kept, false
	case r.p.top.q.Distinct && len(next.seen) == 0: // next.kept has the rows that were returned
		return next.kept, false
	case q.Page > 0 && q.Continuation == "":
		return sortRest, false
	case q.Page > 0 || !rows.Shelve(r.kept.all.Most()):
		return 0, false
	}
	return r.kept.all.Put(r.kept.owner, sortedRows{rows}), true
}
