// Package exec runs queries with iterators that all four languages share. A Rows streams items. Only a sort holds state
// in memory, and that has a limit. DESIGN.md describes the orders and the continuations.
//
// Example: Open plans SELECT * FROM c WHERE c.n = 5 and makes a source that walks the entries n = 5 in each slot. Next
// takes a candidate from the source, checks the exact filter and gives the item. Continuation returns a token of the
// row's position, with which another Open continues.
package exec

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// Order is one key of a wanted order.
type Order struct {
	Path access.Path
	Desc bool
	// Key returns the sort key of an item as the language reads it; nil = the value at Path.
	Key func(*store.Item) value.Value
	// Near says that the keys are distances from a place. It is only for an order with one Key.
	Near *Near
	// Own says that an item has at most one key, which is one of its values at Path, and that Match refuses items
	// without a key. So an index gives the order although items may have several entries at Path: an item is given at
	// the entry of its key. Beside is another path where the key of some items may be; without names: none.
	//
	// Example: a vertex {name: [{_value: "b"}, {_value: "a"}]} has the key "b", its first value. It has entries "a"
	// and "b" at /name/_value. It is given at "b". A vertex {name: "c"} of another API has its key at /name.
	Own    bool
	Beside access.Path
}

// Query is a query of a language. Match is its exact filter. Pred is a condition that an index can answer and that
// every matching item satisfies.
type Query struct {
	// PK restricts the query to a logical partition, or with fewer values than paths to all partitions below; nil = all
	PK     store.PartitionKey
	Ranges []epk.Range  // restricts to ranges of effective partition keys; nil = all
	Pred   *access.Pred // nil = all
	// Match is the exact filter; nil = all. The item is valid during the call.
	Match func(*store.Item) (bool, error)
	// OrderBy is the wanted order; none = the order of Shown.
	OrderBy []Order
	// Shown is the order of the rows without OrderBy.
	Shown Shown
	// Compare is the language's order of values. OrderBy needs it.
	Compare func(a, b value.Value) int
	// Collation describes Compare. If it is known, an index whose entries hold values of several classes may give the
	// order.
	Collation access.Collation
	// Limit is the total number of rows that the query wants, counted from the start and not from a continuation; 0 =
	// all. It bounds the state of a sort.
	Limit int
	// Page is the number of rows that the caller intends to take from this Rows; 0 = unknown. A sort then holds little
	// more than so many rows at a time, which needs little memory and no file. Rows beyond them cost another pass over
	// the candidates.
	Page int
	// MaxRead is the number of index entries and items that this Rows examines before it pauses with a continuation; 0
	// = no bound.
	MaxRead int
	// Continuation resumes after the last row of an earlier Rows of the same query; "" = from the start.
	Continuation string
	// From is where a query with OrderBy begins if it hasn't come further by its Continuation; nil = at the first row.
	From *Place
	// Needs are the paths that Match, OrderBy and the reader of the rows look at; nil = the whole item. Where index
	// entries hold the values at these paths, the rows' items hold nothing else: no other field, no LSN, and the time
	// of the last write only with access.TS.
	Needs []access.Path
	// Number says that the reader looks at the items' numbers. Where the partition key is the id, index entries don't
	// hold the whole number of every item.
	Number bool
	// Want says which rows are needed. More rows may be given.
	Want Want
	// Whole says that the reader reads to the end, takes no continuation and looks only at Needs. An item without a
	// value at Needs[0] may then be given as an empty one.
	Whole bool
	// Repeat, with Whole, says that equal rows may be given as one. Times tells how many rows it stands for.
	Repeat bool
	// NoFiles says that a sort whose memory is used up fails and writes no files.
	NoFiles bool
	// PlanHash identifies the query's text and parameters. A continuation of another query is refused.
	PlanHash uint64
	// Explain says that Rows.Explain will be called: then the plan has estimates, and the alternatives that lost.
	Explain bool
	// Timer gives a time that never decreases. With it Stats.Times is kept. nil = nothing is timed.
	Timer func() time.Duration

	tx     store.Querying // the transaction that queries; nil: none
	behind bool           // its own rows come behind those of the snapshot
}

// Stats tells what a query has cost so far.
type Stats struct {
	Plan       *access.Plan // that of Tree
	Tree       *plan.Tree
	Counted    int // those of Entries that the planner counted
	Explained  int // index entries that were counted for Query.Explain only; they are not among Entries
	Partitions int // slots visited
	Begun      int // physical partitions in which the query begins; 0 for a page that continues
	Entries    int // index entries that were read
	Items      int // items that were read
	Bytes      int // of the items that were read
	Rows       int // rows that were given
	Candidates int // rows that the sources found
	Turned     int // those of them that were found in another way, after a walk in the wanted order was given up
	Matched    int // candidates that the exact filter accepted
	Sorted     bool
	Times      Times // with Query.Timer

	owed owed // what of Entries, Items and Bytes isn't charged
}

// Rows streams the rows of a query. It is not safe for concurrent use. The caller closes it.
type Rows struct {
	ctx     context.Context
	q       *Query
	given   *Query // as the caller passed it
	view    *store.View
	src     source
	row     row
	err     error
	late    error // of a look ahead: the next call of Next returns it
	stats   Stats
	hash    uint64
	spans   []span // what is read; nil: the source itself waits for durability
	begun   bool   // row is a candidate
	settled bool   // what the view shows of the spans is durable
	done    bool   // there are no more rows
	pause   bool   // MaxRead was reached
	apart   bool   // the view was closed, because the remaining rows don't need it

	visited bool    // see visit
	spent   float64 // the part of the charge that is counted

	token  string    // of the current row, made before a look-ahead
	mark   []byte    // the token of the current candidate, as bytes, if the snapshot can become too old
	tries  int       // how often the query has begun again since the last candidate
	former *position // where an earlier version stopped, if that version ordered rows differently
	calls  int       // calls of Next
	bud    *budget.Budget
	space  *spill.Space // for files; nil: sorts write none
	of     *store.Container
	first  *store.Slot     // the first slot that is read; nil: none
	visits []*store.Slot   // all of them, if they are of several physical partitions
	sort   *budget.Account // the memory that a sort holds; nil: no sort

	found  gathering   // what the planner has read of the current view
	unused kv.Iterator // of the current view: see builder.iter; nil: none

	// walked has, with Query.Explain, the number of entries that the scan of each of the leaves has walked. Its first
	// place, without a leaf, collects counts that nothing reads.
	leaves  []*access.Pred
	walked  []int64
	walkMem [1]int64
}

// row is a candidate. item and pos point into memory of the source and are valid until its next call.
type row struct {
	slot    *store.ViewSlot
	item    store.Item
	pos     position   // where to resume after this row
	matched bool       // it has passed Match
	covered bool       // it was made of an index entry, without its item
	more    int        // rows that it stands for in addition to itself; -1: another row counts it
	mem     *store.Mem // of the source, if the item was read into it; nil: unknown
}

// source gives candidates in a stable order.
type source interface {
	// next fills r. It returns false at the end.
	next(r *row) (bool, error)
	// follows reports whether a candidate follows the last one. It may invalidate the last one. After an error of next
	// or follows only close is called.
	follows() (bool, error)
	// close releases iterators.
	close()
}

// Open starts a query on a container. The caller closes the Rows. A malformed partition key, range or continuation is
// BadRequest. A dropped container is NotFound with sub-status 1003. A sort takes its memory from bud, and writes files
// to space when the memory is used up. Next fails with StoreFull when the disk has no room for the files. Without
// space, Next fails with MemoryLimit when the sort needs more than the query's share of the memory, and with
// TooManyRequests when other requests hold the rest.
func Open(ctx context.Context, c *store.Container, q *Query, bud *budget.Budget, space *spill.Space) (*Rows, error) {
	if err := c.Alive(); err != nil {
		return nil, err
	}
	r := &Rows{ctx: ctx, of: c, given: q, hash: queryHash(c, q), bud: bud}
	r.walked = r.walkMem[:]
	if bud != nil && !q.NoFiles {
		r.space = space
	}
	if err := r.open(c, q.Continuation); err != nil {
		return nil, err
	}
	return r, nil
}

// open makes view and source, starting at a continuation. If facts of some paths in the slots would make the query read
// less, open waits until they are counted. Then it makes a new view and source, because a view doesn't show what was
// counted after it was taken.
func (r *Rows) open(c *store.Container, token string) error {
	before, asked := r.stats, []uint64(nil)
	for {
		b, err := r.build(c, token, asked)
		if r.outlived(err) {
			continue
		}
		if err != nil {
			return err
		}
		counts := b.counts()
		if len(counts) == 0 {
			return nil
		}
		r.closeSource()
		for _, done := range counts {
			select {
			case <-done:
			case <-r.ctx.Done():
				return r.expired()
			}
		}
		asked, r.stats.Plan, r.stats.Tree, r.stats.Sorted = b.asked, before.Plan, before.Tree, before.Sorted
	}
}

// build makes a view and a source. asked are the paths whose facts were requested before.
func (r *Rows) build(c *store.Container, token string, asked []uint64) (*builder, error) {
	from, err := decodeToken(token, r.hash)
	if err != nil {
		return nil, err
	}
	layout := c.Entries()
	if from, err = r.given.begin(from, layout); err != nil {
		return nil, err
	}
	r.former = from.resume(layout, len(r.given.OrderBy) > 0 && r.given.OrderBy[0].Desc)
	if r.given.tx != nil {
		r.view, err = r.given.tx.View(r.ctx)
	} else {
		lo, hi := r.given.bounds(c)
		r.view, err = c.ViewIn(r.ctx, lo, hi)
	}
	if err != nil {
		return nil, err
	}
	r.q, r.spans, r.settled = r.given, nil, false
	if p := access.Resolve(r.q.Pred, r.view.Policy()); p != r.q.Pred {
		own := *r.q
		own.Pred = p
		r.q = &own
	}
	if r.q.Number && layout.ByID && r.q.Needs != nil {
		own := *r.q
		own.Needs, own.Want = nil, WantAll
		r.q = &own
	}
	r.found = gathering{}
	b := &builder{rows: r, view: r.view, q: r.q, from: from, layout: layout, asked: asked, gathering: &r.found}
	if r.src, err = b.build(); err != nil {
		r.closeView()
		return nil, kv.Status(err)
	}
	return b, nil
}

// renew continues in a new view when the current one is old, because an open view keeps the space of removed data
// occupied. A query that is read whole may give rows that stand for several and have no position. Such a query fails
// when its view gets much too old.
func (r *Rows) renew() error {
	old, gone := r.view.Old()
	switch {
	case !old, r.apart:
		return nil
	case r.mayLeave():
		r.closeView()
		r.apart = true
		return nil
	case !gone && r.sorts(): // to sort again costs more than to keep the space of removed data for about a minute
		return nil
	case r.q.Whole || r.begun && r.row.pos.kind == 0:
		if gone {
			return r.view.ErrOld()
		}
		return nil
	}
	c, token := r.view.Container(), r.Continuation()
	if err := c.Alive(); err != nil {
		return err
	}
	r.closeSource()
	r.token = "" // the next row has another token
	return r.open(c, token)
}

// maxTries is how often a query begins again without finding a candidate, because its snapshot is too old each time.
const maxTries = 3

// outlived reports whether err says that the engine can't read the snapshot any more, and another one may be tried.
// That doesn't hold for what took so long that its view was given up, and for a transaction, which begins again itself.
func (r *Rows) outlived(err error) bool {
	if !errors.Is(err, kv.ErrSnapshotTooOld) {
		return false
	}
	if tx := r.given.tx; tx != nil {
		tx.Outlived()
		return false
	}
	if r.view != nil {
		if _, gone := r.view.Old(); gone {
			return false
		}
	}
	r.tries++
	return r.tries <= maxTries
}

// resume continues in a new view if err is that the snapshot of the current one is too old: after the last candidate,
// or from where the query began. A query whose rows have no position can only be begun again before it has found one.
//
// Example: of 500 rows the engine has given 200 when its snapshot is removed. The 201st is the first one that a new
// snapshot has after the position of the 200th.
func (r *Rows) resume(err error) error {
	if r.begun && len(r.mark) == 0 || r.apart || !r.outlived(err) {
		return err
	}
	token := r.given.Continuation
	if r.begun {
		token = tokenText(r.mark)
	}
	r.closeSource()
	return r.open(r.of, token)
}

// marked keeps the position of the current candidate, for resume: a source may have left it when the next one fails.
func (r *Rows) marked() {
	r.begun, r.tries, r.mark = true, 0, r.mark[:0]
	if r.of.Shared() && !r.q.Whole && r.row.pos.kind != 0 {
		r.mark = r.appendToken(r.mark)
	}
}

// sorts reports whether the rows are in a sort.
func (r *Rows) sorts() bool {
	_, ok := r.src.(*sorter)
	return ok
}

// mayLeave reports whether the remaining rows need nothing from the view, because all of them are in a sort.
func (r *Rows) mayLeave() bool {
	s, ok := r.src.(*sorter)
	return ok && s.apart()
}

// Shelve prepares the rows to be kept between two requests, with at most most bytes of memory and no resources of the
// store. It reports whether that is possible: only if all remaining rows are in a sort. The current row becomes
// invalid. Resume continues.
func (r *Rows) Shelve(most int64) bool {
	s, ok := r.src.(*sorter)
	if !ok || r.err != nil || r.late != nil || r.done {
		return false
	}
	_ = r.Continuation() // while the row and the query exist
	if s.shelve(most) != nil || !s.apart() {
		return false
	}
	if !r.apart {
		r.closeView()
		r.apart = true
	}
	r.sort.Rest()
	r.Spend()
	return true
}

// Resume continues with shelved rows for a request of the same query. q may differ from the former one only in its
// functions. The statistics begin again.
func (r *Rows) Resume(ctx context.Context, q *Query) {
	r.ctx, r.q, r.given, r.spent = ctx, q, q, 0
	r.stats = Stats{Plan: r.stats.Plan, Tree: r.stats.Tree, Sorted: true, Partitions: r.stats.Partitions}
	clear(r.walked)
	r.src.(*sorter).b.q = q
}

// Held returns the number of bytes of memory that the rows hold.
func (r *Rows) Held() int64 { return r.sort.Used() }

func (r *Rows) closeSource() {
	if r.src != nil {
		r.src.close()
		r.src, r.late = nil, nil
		if !r.apart {
			r.closeView()
		}
		r.closeUnused() // sources that were closed after the view
		r.apart = false
		r.sort.OnSpill(nil)
		r.sort.Close()
	}
}

// Spill frees memory: a sort drops its items and reads them again when it gives them. Callers use it when they need
// room for the answer. The current row stays valid.
func (r *Rows) Spill() { r.sort.Spill() }

// Next moves to the next row. It returns false at the end, at an error, and when MaxRead is reached (then Continuation
// continues).
func (r *Rows) Next() bool {
	if r.err != nil || r.done || r.pause {
		return false
	}
	if r.calls++; r.calls&63 == 0 {
		if r.err = cmp.Or(r.expired(), r.renew()); r.err != nil {
			return false
		}
	}
	r.token = ""
	for n := 0; ; n++ {
		if n&63 == 63 {
			if r.err = cmp.Or(r.expired(), r.renew()); r.err != nil {
				return false
			}
		}
		if r.q.MaxRead > 0 && r.stats.Entries+r.stats.Items >= r.q.MaxRead && n > 0 {
			r.pause = true
			r.err = r.settle()
			return false
		}
		r.row.matched, r.row.covered, r.row.more, r.row.mem = false, false, 0, nil
		ok, err := false, r.late
		if err == nil {
			ok, err = r.candidate(r.src, &r.row)
		}
		if err != nil {
			if err = r.resume(err); err == nil {
				continue
			}
			r.err = cmp.Or(r.settle(), kv.Status(err))
			return false
		}
		if !ok {
			r.done = true
			r.err = r.settle()
			return false
		}
		r.marked()
		if r.former != nil && r.gaveBefore(&r.row) {
			continue
		}
		if !r.row.matched && r.q.Match != nil {
			keep, err := r.match(&r.row.item)
			if err != nil {
				r.err = cmp.Or(r.settle(), err)
				return false
			}
			if !keep {
				continue
			}
		}
		if r.err = r.settle(); r.err != nil {
			return false
		}
		r.stats.Rows += 1 + r.row.more
		return true
	}
}

// expired returns Timeout when the query's context has ended.
func (r *Rows) expired() error {
	if err := r.ctx.Err(); err != nil {
		return status.Wrap(status.Timeout, err, "The query took too long.")
	}
	return nil
}

// Item returns the current row. It is valid until the next call of Next.
func (r *Rows) Item() *store.Item { return &r.row.item }

// TakeDoc returns the document of the current row. It belongs to the caller and stays valid, as Item doesn't.
func (r *Rows) TakeDoc() []byte {
	if r.row.mem != nil && r.row.mem.Release(r.row.item.Doc) {
		return r.row.item.Doc
	}
	return bytes.Clone(r.row.item.Doc)
}

// Made returns the place of the current row's item in the order of creation.
func (r *Rows) Made() uint64 { return store.Counter(r.row.item.Number) }

// Err returns the error that ended Next.
func (r *Rows) Err() error { return r.err }

// Stats returns what the query has cost so far.
func (r *Rows) Stats() *Stats { return &r.stats }

// Continuation returns a token that resumes after the last row, "" when the rows are exhausted. A query that has
// reached its Limit is not exhausted; the caller knows the limit. The token is text of at most 1 KB.
func (r *Rows) Continuation() string {
	switch {
	case r.done, r.err != nil:
		return ""
	case !r.begun:
		return r.q.Continuation
	case r.token == "":
		r.token = r.encode()
	}
	return r.token
}

// Exhausted reports whether there is nothing after the current row. It looks ahead by at most one candidate. The
// current row's item must not be used afterwards. Continuation may be called. If it can't look, it returns false, and
// the next call of Next fails.
func (r *Rows) Exhausted() bool {
	if r.done || r.err != nil || r.late != nil || r.pause {
		return r.done
	}
	_ = r.Continuation() // while the row exists
	st := &r.stats
	entries, items, bytes := st.Entries, st.Items, st.Bytes
	more := false
	if more, r.late = r.src.follows(); more || r.late != nil { // the next page reads that again, and counts it
		st.Entries, st.Items, st.Bytes = entries, items, bytes
		return false
	}
	r.done = true
	return true
}

// Close releases all resources.
func (r *Rows) Close() {
	r.closeSource()
	r.Spend()
}
