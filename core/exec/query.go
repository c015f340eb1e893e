// Package exec runs queries: iterators that all four languages share. A Rows streams items; nothing is held whole in
// memory but the state of a sort, which has a limit. DESIGN.md has the orders and the continuations.
package exec

import (
	"cmp"
	"context"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// Order is one key of a wanted order.
type Order struct {
	Path access.Path
	Desc bool
	// Key gives the sort key of an item in the language's reading; nil = the value at Path.
	Key func(*store.Item) value.Value
	// Near, of an order that Key gives alone, says that the keys are distances from a place.
	Near *Near
}

// Query is what a language asks for. Its filter is Match; Pred is a superset of it that an index can answer.
type Query struct {
	// restricts to a logical partition, or with fewer values than paths to all below; nil = all
	PK     store.PartitionKey
	Ranges []epk.Range  // restricts to ranges of effective partition keys; nil = all
	Pred   *access.Pred // nil = all
	// Match is the exact filter; nil = all. The item is valid during the call.
	Match func(*store.Item) (bool, error)
	// OrderBy is the wanted order; none = what Shown says.
	OrderBy []Order
	// Shown is the order of the rows where nobody ordered them.
	Shown Shown
	// Compare is the language's order of values, needed with OrderBy.
	Compare func(a, b value.Value) int
	// Collation says what Compare is: then an index whose entries hold values of several classes may give the order.
	Collation access.Collation
	// Limit is how many rows the query wants in all from the start (not from a continuation); 0 = all. It bounds the
	// state of a sort.
	Limit int
	// Page is how many rows the caller means to take from this Rows; 0 = unknown. A sort then holds little more than so
	// many at a time, which needs neither much memory nor a file; rows beyond them cost another pass over the
	// candidates.
	Page int
	// MaxRead bounds the index entries and items that this Rows examines before it pauses with a continuation; 0 = no
	// bound.
	MaxRead int
	// Continuation resumes where a former Rows of the same query ended; "" = from the start.
	Continuation string
	// Needs are the paths that Match, OrderBy and the reader of the rows look at; nil = the whole item. Where index
	// entries tell them, the rows' items hold nothing else: no other field, no LSN, and the time of the last write only
	// with access.TS.
	Needs []access.Path
	// Number says that the reader looks at the items' numbers, which index entries don't tell of all items where the
	// partition key is the id.
	Number bool
	// Want says which rows are needed; more may be given.
	Want Want
	// Whole: the reader reads to the end, takes no continuation and looks at nothing but Needs. An item without a value
	// at Needs[0] may then be an empty one.
	Whole bool
	// Repeat: with Whole, equal rows may be given as one; Times tells how many it stands for.
	Repeat bool
	// NoFiles: a sort whose memory is used up fails rather than write files.
	NoFiles bool
	// PlanHash identifies the query's text and parameters: a continuation of another query is refused.
	PlanHash uint64
	// Timer gives a time that only grows; with it Stats.Times is kept. nil = nothing is timed.
	Timer func() time.Duration
}

// Stats says what a query cost so far.
type Stats struct {
	Plan       access.Plan
	Tree       *plan.Tree
	Counted    int // of Entries those that the planner counted
	Partitions int // slots visited
	Entries    int // index entries read
	Items      int // items read
	Bytes      int // of the items read
	Rows       int // rows given
	Candidates int // rows that the sources found
	Matched    int // candidates that the exact filter let pass
	Sorted     bool
	Times      Times // with Query.Timer
}

// Charge returns the request units of what was done.
func (s *Stats) Charge() float64 {
	if s.Plan.Kind == access.Points && s.Items <= 1 && s.Bytes <= 1024 {
		return ru.Read(s.Bytes) + 1.8
	}
	return ru.Query(1, s.Entries, s.Items, s.Bytes)
}

// Rows streams the rows of a query. Not safe for concurrent use. Close it.
type Rows struct {
	ctx     context.Context
	q       *Query
	given   *Query // as the caller gave it
	view    *store.View
	src     source
	row     row
	err     error
	stats   Stats
	hash    uint64
	begun   bool      // row is a candidate
	spans   []span    // what is read; nil: the source waits for what it reads
	settled bool      // what the view shows of them is durable
	done    bool      // no more rows will come
	pause   bool      // MaxRead was reached
	token   string    // of the present row, made before a look-ahead
	former  *position // where an earlier version stopped, when that ordered rows otherwise
	calls   int       // of Next
	bud     *budget.Budget
	space   *spill.Space    // of files; nil: sorts have none
	apart   bool            // the view was closed, because the rows that are left need nothing of it
	sort    *budget.Account // what a sort holds; nil until there is one

	req   plan.Request // what the planner was asked, and what it had read: of the present view
	found gathering

	// Entries that the scans of these leaves walked. The first place is for what nobody asks for.
	leaves  []*access.Pred
	walked  []int64
	leafMem [4]*access.Pred
	walkMem [4]int64
}

// row is a candidate on its way out. item and pos point into memory of the source, valid until its next call.
type row struct {
	slot    *store.ViewSlot
	item    store.Item
	pos     position // where to resume after this row
	matched bool     // it passed Match already
	covered bool     // made of an index entry, without its item
	more    int      // rows that it stands for beside itself; -1: another one counts it
}

// source gives candidates in a stable order.
type source interface {
	// next fills r; false at the end.
	next(r *row) (bool, error)
	// empty reports whether nothing comes after the last candidate. It may invalidate that one.
	empty() bool
	// close releases iterators.
	close()
}

// Open starts a query on a container. The caller closes the Rows. A malformed partition key, range or continuation is
// BadRequest; a dropped container NotFound with sub-status 1003. A sort takes its memory from bud, and files from space
// when there is no more: Next fails with StoreFull when the disk has no room for them. Without space Next fails with
// MemoryLimit past the query's share of the memory, and with TooManyRequests when other requests hold the rest.
func Open(ctx context.Context, c *store.Container, q *Query, bud *budget.Budget, space *spill.Space) (*Rows, error) {
	if err := c.Alive(); err != nil {
		return nil, err
	}
	r := &Rows{ctx: ctx, given: q, hash: queryHash(c, q), bud: bud}
	r.leaves, r.walked = r.leafMem[:1], r.walkMem[:1]
	if bud != nil && !q.NoFiles {
		r.space = space
	}
	if err := r.open(c, q.Continuation); err != nil {
		return nil, err
	}
	return r, nil
}

// open makes view and source from a continuation on. Where it would do with less when slots knew the facts of some
// paths, it waits until they are counted, and makes both anew: a view doesn't show what was counted after it.
func (r *Rows) open(c *store.Container, token string) error {
	before, asked := r.stats, []uint64(nil)
	for {
		b, err := r.build(c, token, asked)
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

// build makes a view and a source; asked are the paths that were asked for before.
func (r *Rows) build(c *store.Container, token string, asked []uint64) (*builder, error) {
	from, err := decodeToken(token, r.hash)
	if err != nil {
		return nil, err
	}
	layout := c.Entries()
	r.former = from.resume(layout, len(r.given.OrderBy) > 0 && r.given.OrderBy[0].Desc)
	if r.view, err = c.View(r.ctx); err != nil {
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
	b := &builder{rows: r, view: r.view, q: r.q, from: from, layout: layout, asked: asked, req: &r.req,
		gathering: &r.found}
	if r.src, err = b.build(); err != nil {
		r.view.Close()
		return nil, store.Translate(err)
	}
	return b, nil
}

// renew goes on in a new view when the present one is old: a view that is open holds the space of what is removed. A
// query that is read whole may give rows that stand for several, from which there is no going on: it fails when its
// view gets far too old.
func (r *Rows) renew() error {
	old, gone := r.view.Old()
	switch {
	case !old, r.apart:
		return nil
	case r.mayLeave():
		r.view.Close()
		r.apart = true
		return nil
	case !gone && r.sorts(): // to sort again costs more than to hold the space of what is removed for some minutes
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
	r.token = "" // the next row has another one
	return r.open(c, token)
}

// sorts reports whether the rows lie in a sort.
func (r *Rows) sorts() bool {
	_, ok := r.src.(*sorter)
	return ok
}

// mayLeave reports whether what is left to give needs nothing of the view: all of it lies in a sort.
func (r *Rows) mayLeave() bool {
	s, ok := r.src.(*sorter)
	return ok && s.apart()
}

// Shelve makes the rows ready to be kept between two requests, holding at most so many bytes of memory and nothing of
// the store, and reports whether they can be. Only rows can that lie in a sort, with all that is to be given. The
// present row isn't valid any more. Resume goes on with them.
func (r *Rows) Shelve(most int64) bool {
	s, ok := r.src.(*sorter)
	if !ok || r.err != nil || r.done {
		return false
	}
	_ = r.Continuation() // while the row and the query are there
	if s.shelve(most) != nil || !s.apart() {
		return false
	}
	if !r.apart {
		r.view.Close()
		r.apart = true
	}
	r.sort.Rest()
	return true
}

// Resume goes on with rows that were shelved, for a request of the same query: q differs from the former one in its
// functions only. The statistics begin again.
func (r *Rows) Resume(ctx context.Context, q *Query) {
	r.ctx, r.q, r.given = ctx, q, q
	r.stats = Stats{Plan: r.stats.Plan, Tree: r.stats.Tree, Sorted: true, Partitions: r.stats.Partitions}
	clear(r.walked)
	r.src.(*sorter).b.q = q
}

// Held is how many bytes of memory the rows hold.
func (r *Rows) Held() int64 { return r.sort.Used() }

func (r *Rows) closeSource() {
	if r.src != nil {
		r.src.close()
		r.src = nil
		if !r.apart {
			r.view.Close()
		}
		r.apart = false
		r.sort.OnSpill(nil)
		r.sort.Close()
	}
}

// Spill gives back the memory that the rows can do without: a sort lets its items go and reads them again when they are
// given out. It is for who needs room for the answer; the present row stays valid.
func (r *Rows) Spill() { r.sort.Spill() }

// Next moves to the next row. It is false at the end, at an error, and when MaxRead is reached (then Continuation goes
// on).
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
		r.row.matched, r.row.covered, r.row.more = false, false, 0
		ok, err := r.candidate(r.src, &r.row)
		if err != nil {
			r.err = cmp.Or(r.settle(), store.Translate(err))
			return false
		}
		if !ok {
			r.done = true
			r.err = r.settle()
			return false
		}
		r.begun = true
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

// Item returns the present row; it is valid until the next call of Next.
func (r *Rows) Item() *store.Item { return &r.row.item }

// Made returns the place of the present row's item in the order of creation.
func (r *Rows) Made() uint64 { return store.Counter(r.row.item.Number) }

// Err returns the error that ended Next.
func (r *Rows) Err() error { return r.err }

// Stats returns what the query cost so far.
func (r *Rows) Stats() *Stats { return &r.stats }

// Continuation returns a token that resumes after the last row, "" when the rows are exhausted. A query whose Limit is
// reached is not exhausted: the caller knows. The token is text of at most 1 KB.
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

// Exhausted reports whether there is nothing after the present row, looking ahead by one candidate at most. The present
// row's item must not be used afterwards; Continuation may be called.
func (r *Rows) Exhausted() bool {
	if r.done || r.err != nil || r.pause {
		return r.done
	}
	_ = r.Continuation() // while the row is there
	r.done = r.src.empty()
	return r.done
}

// Close releases what the Rows holds.
func (r *Rows) Close() { r.closeSource() }
