package sql

import (
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
)

// The first page of an ORDER BY that no index answers sorts only the rows that it gives: that needs little memory and
// no file. Who asks for a second page mostly asks for more, and each would read all items again. So the second page
// sorts all rows that are left, and they are kept for the next ones. Where they can't be kept, pages go on one by one.

// sortRest in a continuation says that the next page sorts all that is left. It is no number of a state.
const sortRest = 1

// sortedRows are kept rows.
type sortedRows struct{ rows *exec.Rows }

// Held implements spill.State.
func (s sortedRows) Held() int64 { return s.rows.Held() }

// Close implements spill.State.
func (s sortedRows) Close() { s.rows.Close() }

// keepsRows reports whether the rows of a sort are kept between pages. Rows by distance are not: the nearest ones are
// found without a look at the others.
func (r *runner) keepsRows(q *exec.Query) bool {
	cq := r.p.top
	return r.kept.all != nil && len(q.OrderBy) > 0 && q.OrderBy[0].Near == nil && !cq.grouped && !cq.q.Distinct &&
		cq.derived == nil
}

// open opens the rows of the core, or finds those that the page before has kept.
func (r *runner) open(ctx context.Context, c *core.Container, q *exec.Query) (*exec.Rows, error) {
	if r.st.kept != 0 && r.keepsRows(q) {
		q.Page = 0
		if s, ok := r.kept.take(r.st.kept).(sortedRows); ok {
			s.rows.Resume(ctx, q)
			return s.rows, nil
		}
	}
	return c.Query(ctx, q)
}

// keepRows keeps the rows that are left behind a page, and returns what the continuation says of them. They are not the
// page's any more when they are kept.
func (r *runner) keepRows(q *exec.Query, rows *exec.Rows, next *state) (id uint64, kept bool) {
	switch {
	case !r.keepsRows(q) || !rows.Stats().Sorted || next.inItem > 0:
		return next.kept, false
	case q.Page > 0 && q.Continuation == "":
		return sortRest, false
	case q.Page > 0 || !rows.Shelve(r.kept.all.Most()):
		return 0, false
	}
	return r.kept.all.Put(r.kept.owner, sortedRows{rows}), true
}
