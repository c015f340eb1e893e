package sql

import (
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// distinctRows is the state of a DISTINCT between two pages, when it has returned too many rows for their hashes to fit
// into a continuation. It holds the set of rows that were returned, and the position after the page.
//
// Example: page 1 returns 1000 distinct values. The set of these values is kept under a number, and the continuation
// has the number. Page 2 takes the set and continues at the position. If the set was dropped in the meantime, page 2
// reads all items from the start and drops the first 1000 distinct values.
type distinctRows struct {
	acct *budget.Account
	held int64
	seen *funcs.Set
	st   state
}

// Held implements spill.State.
func (d *distinctRows) Held() int64 { return d.held }

// Close implements spill.State.
func (d *distinctRows) Close() {
	d.acct.Close()
	d.acct, d.seen = nil, nil
}

// keepDistinct keeps the rows that were returned, for a next page that continues at st.
func (r *runner) keepDistinct(st state) {
	st.seen = r.st.seen // rows of the pages before the first page that kept a set
	held := &r.f.subs[r.p.top.id].held
	if r.kept.all == nil || r.seen == nil || r.f.acct == nil {
		return
	}
	r.keptAs = r.kept.all.Put(r.kept.owner, &distinctRows{acct: r.f.acct, held: *held, seen: r.seen, st: st})
	r.f.acct, *held = nil, 0
}

// takeDistinct restores what the previous page has kept.
func (r *runner) takeDistinct() {
	if d, ok := r.kept.take(r.st.kept).(*distinctRows); ok {
		d.st.drop = 0
		r.given = r.st.drop
		r.st, r.seen, r.resumed = d.st, d.seen, true
		r.f.acct, r.f.subs[r.p.top.id].held = d.acct, d.held
	}
}
