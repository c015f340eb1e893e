package sql

import (
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// distinctRows is what a DISTINCT needs to go on behind a page: the rows that it has given, too many for a
// continuation, and where it stood.
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

// keepDistinct keeps what was given, for a page that goes on at st.
func (r *runner) keepDistinct(st state) {
	st.seen = r.st.seen // of pages before the first one that kept its rows
	held := &r.f.subs[r.p.top.id].held
	if r.kept.all == nil || r.seen == nil || r.f.acct == nil {
		return
	}
	r.keptAs = r.kept.all.Put(r.kept.owner, &distinctRows{acct: r.f.acct, held: *held, seen: r.seen, st: st})
	r.f.acct, *held = nil, 0
}

// takeDistinct finds what the page before has kept.
func (r *runner) takeDistinct() {
	if d, ok := r.kept.take(r.st.kept).(*distinctRows); ok {
		d.st.drop = 0
		r.given = r.st.drop
		r.st, r.seen, r.resumed = d.st, d.seen, true
		r.f.acct, r.f.subs[r.p.top.id].held = d.acct, d.held
	}
}
