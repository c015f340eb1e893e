package sql

import (
	"slices"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// Page is one page of a query's answer. Body holds the rows as JSON, separated by commas and without brackets. Execute
// appends to it.
type Page struct {
	Body         []byte
	Count        int
	Continuation string // "" at the end
	Charge       float64
	Metrics      Metrics
}

// Metrics tells what a page cost.
type Metrics struct {
	ItemsRead  int // items loaded
	BytesRead  int
	IndexReads int
	Counted    int // those of them that the planner counted, which aren't charged
	Rows       int // items that passed the filter

	Plan *access.Plan // how items were found; nil when no item was read

	// With Request.Times: the time of index look-ups, of reading items and of writing rows.
	Lookup, Load, Write time.Duration

	// With Request.Explain; empty when no item was read.
	Explain string // the access path in one line
	Indexes *IndexUse

	// With Request.Steps; nil when no item was read: the plan, with the figures of its steps.
	Steps *plan.Explanation
}

// rowSource returns the items of a query in the order of ORDER BY. If the query has no joins they are filtered by
// WHERE.
type rowSource interface {
	next() bool
	item() (d doc.Doc, item *core.Item) // valid until next
	err() error
	position() string // resumes after the current item; "" when it is the last one
}

// runner produces one page of a query from a source of items.
//
// Example: SELECT t FROM c JOIN t IN c.tags with pages of 3 rows; item 1 has the tags a, b and item 2 has x, y.
//
//	page 1: a, b, x   state: core = position behind item 1, inItem = 1
//	page 2: y         resumes behind item 1, reads item 2 and skips its first row
type runner struct {
	p        *program
	f        *frame
	src      rowSource
	out      *Page
	pageSize int             // rows; 0 = no limit
	maxBytes int             // of the page's body; 0 = no limit
	hold     func(int) error // Request.Hold
	timer    func() time.Duration
	st       state    // position at which the page begins
	inItem   int64    // rows of the current item so far, earlier pages included
	given    int64    // rows that the query has returned, earlier pages included
	full     bool     // the page is full and there is a further row
	end      bool     // TOP or LIMIT is reached
	hashes   []uint64 // of the rows of DISTINCT, earlier pages included; nil: there were too many
	kept     keeper
	stats    string                 // see state.stats
	best     bool                   // see state.best
	fused    *fusedRows             // the rows of ORDER BY RANK RRF; nil: there are none, or they must be computed
	groups   *gathered[group]       // kept by an earlier page; nil: they must be computed
	rest     *gathered[distinctRow] // what is left of a DISTINCT; nil: it must be computed
	row      value.Value            // the current row of rest
	resumed  bool                   // state that an earlier page has kept was found
	keptAs   uint64                 // see state.kept
	last     uint64
}

// state is the position of a query between two pages; a continuation holds it (token.go). Most queries continue behind
// an item, or between two rows of one item. A query whose rows are only known after all items were read (GROUP BY,
// aggregates) runs again from the start and drops the rows that earlier pages returned. So does a DISTINCT with many
// rows. Kept state (kept) saves that work when it is still there.
type state struct {
	core   string // position of the core's rows
	inItem int64  // rows of the next item that earlier pages returned
	skip   int64  // rows of OFFSET still to skip
	left   int64  // rows of TOP or LIMIT still to return, -1: no limit
	drop   int64  // rows that earlier pages returned; a query that starts again drops them
	// seen has the hashes of the rows that a DISTINCT has returned, when it continues at a position. If equal rows are
	// neighbours, it only has the last one.
	seen []uint64
	// kept is the number under which a page has kept its computed rows or groups for the next page (spill.Kept); 0:
	// nothing is kept. If they were dropped, they are computed again, and groups continue behind the group whose keys
	// have this hash (last). last 0: no group was returned.
	kept, last uint64
	// stats are the statistics of ORDER BY RANK (rankState.encode).
	stats string
	// best is true if the rows are only those with a positive score (bestFirst).
	best bool
}

// maxSeen bounds the hashes in a continuation: 2 KiB.
const maxSeen = 256

// run produces the page. more is true when rows are left; next is then the position of the first one.
func (r *runner) run() (next state, more bool, err error) {
	r.f.sink = r.take
	cq := r.p.top
	if !r.resumed {
		r.given = r.st.drop
	}
	if r.st.left == 0 {
		return state{}, false, nil
	}
	switch {
	case r.rest != nil:
	case cq.grouped:
		err = r.runGrouped()
	case cq.derived != nil:
		err = r.allItems()
	case cq.q.From == nil:
		cq.run(r.f)
		err = r.f.err
	default:
		if next, more, err = r.runItems(); more {
			return next, more, err
		}
	}
	if seen := r.f.subs[cq.id].seen; err == nil && !r.end && (r.rest != nil || seen != nil && seen.gathering) {
		err = r.runRest()
	}
	return state{drop: r.given, kept: r.keptAs, last: r.last}, r.full, err
}

// runItems produces the page of a query that continues at a position: it reads items until the page is full.
func (r *runner) runItems() (next state, more bool, err error) {
	cq := r.p.top
	before := r.st.core
	for r.src.next() {
		r.f.setRoot(r.src.item())
		r.inItem = 0
		cq.run(r.f)
		switch {
		case r.f.err != nil:
			return state{}, false, r.f.err
		case r.end:
			return state{}, false, nil
		case r.full:
			next, err = r.nextState(before, r.inItem-1)
			return next, err == nil, err
		case r.pageFull() && !r.gather():
			at := r.src.position()
			if at == "" {
				return state{}, false, nil
			}
			next, err = r.nextState(at, 0)
			return next, err == nil, err
		}
		r.st.inItem = 0
		if cq.joined {
			before = r.src.position()
		}
	}
	return state{}, false, r.src.err()
}

func (r *runner) nextState(core string, inItem int64) (st state, err error) {
	st = state{core: core, inItem: inItem, skip: r.st.skip, left: r.st.left, stats: r.stats, best: r.best}
	if r.p.top.q.Distinct {
		if len(r.hashes) == 0 {
			err = r.keepDistinct(st)
			return state{drop: r.given, kept: r.keptAs}, err
		}
		st.seen, st.drop = r.hashes, r.given
	}
	return st, nil
}

// pageFull reports whether the page has reached its limit of rows or bytes.
func (r *runner) pageFull() bool {
	return r.pageSize > 0 && r.out.Count >= r.pageSize || r.maxBytes > 0 && len(r.out.Body) >= r.maxBytes
}

// take is the sink of the outermost query. The frame holds a row that passed WHERE.
func (r *runner) take(f *frame) bool {
	r.inItem++
	if r.inItem <= r.st.inItem { // returned by an earlier page
		return true
	}
	if r.pageFull() && !r.gather() {
		r.full = true
		return false
	}
	return r.emit(f)
}

// emit appends the current row to the page, after DISTINCT, OFFSET and LIMIT. It returns false when the query or the
// page ends.
func (r *runner) emit(f *frame) bool {
	cq, start := r.p.top, len(r.out.Body)
	if r.st.skip > 0 && cq.write != nil && !cq.isValue { // every row counts, so it needn't be rendered
		r.st.skip--
		return true
	}
	body := r.out.Body
	if r.out.Count > 0 {
		body = append(body, ',')
	}
	body, ok := r.render(f, body)
	r.out.Body = body[:start]
	switch {
	case f.err != nil:
		return false
	case !ok:
		return true
	case r.st.skip > 0:
		r.st.skip--
		return true
	}
	if r.st.left > 0 {
		r.st.left--
		r.end = r.st.left == 0
	}
	if r.st.drop > 0 && len(r.st.seen) == 0 {
		r.st.drop--
		return !r.end
	}
	if r.hold != nil {
		if f.err = r.hold(len(body)); f.err != nil {
			return false
		}
	}
	r.out.Body = body
	r.out.Count++
	r.given++
	return !r.end
}

// render appends the current row as JSON. ok is false when DISTINCT or an undefined value drops it.
func (r *runner) render(f *frame, body []byte) (_ []byte, ok bool) {
	if r.timer != nil {
		began := r.timer()
		defer func() { r.out.Metrics.Write += r.timer() - began }()
	}
	if write := r.p.top.write; write != nil {
		return write(f, body)
	}
	if r.rest != nil {
		return doc.AppendJSON(body, funcs.One(r.row)), true
	}
	return r.distinct(f, body)
}

// distinct appends the current row unless an equal one was returned before, or the rows are only collected.
func (r *runner) distinct(f *frame, body []byte) ([]byte, bool) {
	v := r.p.top.project(f)
	if f.err != nil || r.p.top.isValue && !v.IsDefined() {
		return body, false
	}
	st := &f.subs[r.p.top.id]
	if st.seen == nil {
		st.seen = r.p.top.newDistinct(f)
	}
	if r.hashes == nil && st.seen.Found() == 0 {
		r.hashes = append(make([]uint64, 0, 16), r.st.seen...)
	}
	h := funcs.Hash(v)
	if slices.Contains(r.st.seen, h) || !st.seen.add(f, v, h) {
		return body, false
	}
	switch {
	case r.p.top.sorted:
		r.hashes = append(r.hashes[:0], h)
	case r.hashes != nil && len(r.hashes) < maxSeen:
		r.hashes = append(r.hashes, h)
	default:
		r.hashes = nil
	}
	return doc.AppendJSON(body, funcs.One(v)), true
}

// runGrouped computes all groups, or takes the kept ones, and appends groups until the page is full.
func (r *runner) runGrouped() error {
	cq, f := r.p.top, r.f
	rows, err := r.groups, error(nil)
	if rows == nil {
		if rows, err = r.makeGroups(); err != nil {
			return err
		}
	}
	f.subs[cq.id].ready = rows
	f.root = rootRow{}
	for {
		g, err := rows.peek()
		if g == nil || err != nil {
			rows.Close()
			f.subs[cq.id].ready = nil
			return err
		}
		if r.pageFull() && !r.gather() {
			r.full, r.last = true, rows.last
			return r.keepGroups(rows)
		}
		rows.next()
		f.subs[cq.id].group = &g.State
		if !r.emit(f) || f.err != nil {
			return f.err
		}
	}
}

// makeGroups reads all rows into groups. It then skips the groups that earlier pages returned.
func (r *runner) makeGroups() (*gathered[group], error) {
	cq, f := r.p.top, r.f
	f.subs[cq.id].groups = cq.newGroups(f)
	if err := r.allItems(); err != nil {
		return nil, err
	}
	rows, err := cq.groupRows(f)
	if err != nil || r.st.last == 0 || cq.q.Distinct {
		return rows, err
	}
	found, err := rows.seek(f.done, r.st.last)
	if err != nil {
		rows.Close()
		return nil, err
	}
	if found {
		r.skipped(max(-1, r.st.left-r.st.drop))
	}
	return rows, nil
}

// skipped records that the rows of earlier pages are skipped already. left is the number of rows still to return; -1:
// all.
func (r *runner) skipped(left int64) { r.st.skip, r.st.drop, r.st.left = 0, 0, left }

// resume continues with what an earlier page has computed; left as in skipped.
func (r *runner) resume(left int64) {
	r.given, r.resumed = r.st.drop, true
	r.skipped(left)
}

// keepGroups keeps the remaining groups for the next page.
func (r *runner) keepGroups(rows *gathered[group]) (err error) {
	if r.kept.all == nil || r.p.top.q.Distinct { // the groups don't hold the rows that DISTINCT has returned
		return nil
	}
	rows.left, rows.stats = r.st.left, r.statsOf(rows.stats)
	r.f.subs[r.p.top.id].ready = nil
	r.keptAs, err = rows.keep(r.f, &r.kept)
	return err
}

// statsOf returns what is known of how this page, or an earlier one, has found the items.
func (r *runner) statsOf(earlier exec.Stats) exec.Stats {
	if src := r.plain(); src != nil {
		return exec.Stats{Plan: src.rows.Stats().Plan}
	}
	return earlier
}

// earlier returns how an earlier page has found the items, nil when this page does.
func (r *runner) earlier() *exec.Stats {
	switch {
	case r.groups != nil:
		return &r.groups.stats
	case r.rest != nil:
		return &r.rest.stats
	}
	return nil
}

// keeper is the store of states between pages, and the owner of this query's states.
type keeper struct {
	all   *spill.Kept
	owner uint64
}

// take removes a kept state from the store and returns it; nil when there is none.
func (k *keeper) take(id uint64) spill.State { return k.all.Take(k.owner, id) }

// takeKept restores the state that the previous page has kept.
func (r *runner) takeKept() {
	switch cq := r.p.top; {
	case r.st.kept == 0:
	case r.p.rank != nil && r.p.rank.fused:
		r.takeFused()
	case cq.grouped && !cq.q.Distinct:
		r.takeGroups()
	case cq.q.Distinct && len(r.st.seen) == 0:
		r.takeDistinct()
	}
}

func (r *runner) takeGroups() {
	if rows, ok := r.kept.take(r.st.kept).(*gathered[group]); ok {
		r.groups = rows
		r.f.acct, rows.acct = rows.acct, nil
		r.resume(rows.left)
	}
}

// allItems runs the query over all items, and then emits the rows that are only known at the end.
func (r *runner) allItems() error {
	cq, f := r.p.top, r.f
	if cq.q.From == nil {
		cq.run(f)
		return f.err
	}
	cq.begin(f)
	rows, _ := r.src.(*coreRows)
	for f.err == nil && r.src.next() {
		f.setRoot(r.src.item())
		if rows != nil {
			f.more = rows.rows.Times() - 1
		}
		if !cq.each(f) {
			break
		}
	}
	if err := r.src.err(); err != nil {
		return err
	}
	if f.err == nil && !r.full && !r.end {
		f.root = rootRow{}
		cq.close(f)
	}
	return f.err
}

// countAll answers a COUNT of all items from a counter.
func (r *runner) countAll(n int64) error {
	cq, f := r.p.top, r.f
	st := &f.subs[cq.id]
	st.groups = &groupSet{newSet(f, cq.keyed, false)}
	cq.oneGroup(st)
	st.group = &st.groups.List()[0].State
	r.f.sink = r.take
	for i := range st.group.aggs {
		st.group.aggs[i].SetCount(n)
	}
	r.emit(f)
	return f.err
}

// identity returns a stored id as the language shows it: as text.
func identity(v value.Value) value.Value {
	if v.Kind() == value.String || !v.IsDefined() {
		return v
	}
	return value.StringOf(core.IdentityText(v))
}

// restarts reports whether each page of the query runs from the start and drops the rows of earlier pages.
func (cq *cquery) restarts() bool {
	return cq.grouped || cq.q.Distinct || cq.q.From == nil || cq.derived != nil
}

// begin evaluates OFFSET and LIMIT, for the first page and for every page of a query that starts again.
func (p *program) begin(f *frame) (state, error) {
	st := state{left: -1}
	if p.offset != nil {
		st.skip = p.offset(f)
	}
	if p.count != nil {
		st.left = p.count(f)
	}
	return st, f.err
}
