package sql

import (
	"context"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/expand"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/sarg"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
)

// Env is what the language needs from the API that calls it.
type Env struct {
	// ItemJSON appends an item as the API shows it, system properties included.
	ItemJSON func(dst []byte, it *core.Item) []byte
	// SystemJSON appends the system properties of an item as "name":value,.. without braces.
	SystemJSON func(dst []byte, it *core.Item) []byte
	// Form, when set, returns the document that the language sees instead of the stored one. The result has its own
	// memory. Pred then translates a predicate on such documents into a predicate on stored ones. It is for containers
	// whose items this API shows in another form than the stored one.
	Form func(doc.Doc) doc.Doc
	Pred func(*access.Pred) *access.Pred
	// Computed holds the container's computed properties, nil when it has none.
	Computed *expand.Computed
	// Planar is true when the container's geospatial configuration is Geometry, not Geography.
	Planar bool
	// Functions evaluates user-defined functions; nil: there are none.
	Functions Functions
	// Clock is the source of time and randomness; nil: the wall clock.
	Clock *clock.Clock
}

// Plan is a compiled query with its parameters. It can be executed any number of times, also concurrently.
type Plan struct {
	p    *program
	vals []value.Value
	env  *Env
}

// Compile returns the plan of a text with its parameters. The compiled program comes from the cache when possible. The
// error is a *syntax.Error, which unwraps to a status.Error with the service's JSON as its message.
func Compile(text string, params []Param, env *Env) (*Plan, error) {
	if env == nil {
		env = &Env{}
	}
	pl, err := compileFor(text, params, env)
	if err != nil {
		return nil, err
	}
	if err := pl.p.checkFunctions(env.Functions); err != nil {
		return nil, err
	}
	return pl, nil
}

// compileFor is Compile without the check that the user-defined functions exist.
func compileFor(text string, params []Param, env *Env) (*Plan, error) {
	p, err := cachedFor(text, env.Computed, env.Planar)
	if err != nil {
		return nil, err
	}
	if len(p.named) > 0 {
		if p, err = p.withNames(params, env); err != nil {
			return nil, err
		}
	}
	vals, err := p.bind(params)
	if err != nil {
		return nil, err
	}
	return &Plan{p: p, vals: vals, env: env}, nil
}

// Range is a range of effective partition keys in the form that clients see: hexadecimal text, Min inclusive, Max
// exclusive.
type Range struct{ Min, Max string }

// Request is one page of an execution.
type Request struct {
	PK           core.PartitionKey // one logical partition, or a prefix of a hierarchical key; nil = all
	Ranges       []Range           // restricts to ranges of effective partition keys; nil = all
	PageSize     int               // rows; 0 or less = as many as fit
	MaxBytes     int               // a page ends when its rows have this many bytes; 0 = 4 MiB
	Continuation string            // of the page before; "" = from the start
	From         *exec.Place       // where an ordered query begins; nil = at its first row
	MaxToken     int               // most bytes of a continuation; 0 = no limit
	Explain      bool              // fill Metrics.Explain and Metrics.Indexes
	Steps        bool              // fill Metrics.Steps
	Times        bool              // measure the times of Metrics

	// Tx, when set, is the transaction that queries. PK must be its partition key.
	Tx *core.Tx

	// Statistics is the logical partition, or the prefix of a key, whose texts ORDER BY RANK has statistics of; nil:
	// all of the container.
	Statistics core.PartitionKey

	// Owner identifies the requester. State that a page keeps is only available to the next page of the same owner.
	Owner uint64

	// Hold, when set, is called with the length of Page.Body whenever it grows. Its error ends the query.
	Hold func(bytes int) error
}

// defaultPageBytes is the service's response limit.
const defaultPageBytes = 4 << 20

// Execute appends one page of rows to out. It refuses a continuation of another query, of other parameters or of
// another container (BadRequest).
func (pl *Plan) Execute(ctx context.Context, c *core.Container, req Request, out *Page) error {
	hash := pl.hash(req)
	if pl.p.top.grouped { // the core's part of a continuation names the container, but groups have no such part
		rid := c.RID()
		hash += xxhash.Sum64(rid[:])
	}
	r, begin, err := pl.start(ctx, req, hash, out)
	if r != nil {
		defer pl.p.release(r.f)
		r.f.bud, r.f.space = c.Budget(), c.Spill()
	}
	if err != nil {
		return err
	}
	if st := &r.st; pl.p.whole && st.left < 0 && st.skip == 0 && st.drop == 0 && req.Tx == nil {
		n, charge, ok, err := countOf(ctx, c, req)
		if err != nil {
			return err
		}
		if ok {
			out.Charge += charge
			return r.countAll(n)
		}
	}
	if st := &r.st; pl.p.tallies != nil && st.left < 0 && st.skip == 0 && st.drop == 0 {
		if ok, err := pl.tallyTexts(ctx, c, req, r); ok || err != nil {
			return err
		}
	}
	return pl.run(ctx, c, req, r, hash, begin)
}

// start returns the runner of one page. The caller releases its frame, also after an error. begin is the state of a
// first page.
func (pl *Plan) start(ctx context.Context, req Request, hash uint64, out *Page) (r *runner, begin state, err error) {
	f := pl.p.frame(pl.vals)
	f.env, f.done, f.calls = pl.env, ctx, pl.p.newCalls(pl.env)
	clk := pl.env.Clock
	if clk == nil {
		clk = wallClock
	}
	f.ctx.Now, f.ctx.Clock, f.ctx.Random, f.ctx.End = clk.Now(), clk.Now, clk.Float64, ctx
	f.ctx.DocID = func() value.Value {
		if f.root.item == nil {
			return value.Value{}
		}
		return value.IntOf(int64(f.root.item.Number))
	}
	r = &runner{p: pl.p, f: f, out: out, pageSize: req.PageSize, maxBytes: req.MaxBytes, hold: req.Hold}
	if r.maxBytes <= 0 {
		r.maxBytes = defaultPageBytes
	}
	r.maxBytes += len(out.Body)
	if req.Times {
		began := clk.Now()
		r.timer = func() time.Duration { return clk.Now().Sub(began) }
	}
	if begin, err = pl.p.begin(f); err == nil {
		r.st, err = decodeState(req.Continuation, hash, begin, pl.p.top.restarts())
	}
	return r, begin, err
}

// countOf returns the number of items that a request covers, and its charge, when the core has the number as a counter:
// for the whole container, or for a physical or logical partition. ok is false when there is no counter, and when items
// can expire: the counter then includes expired items.
func countOf(ctx context.Context, c *core.Container, req Request) (n int64, charge float64, ok bool, err error) {
	sc := feed.Scope{PK: req.PK}
	switch {
	case c.HasTTL() || len(req.Ranges) > 1 || req.PK != nil && req.Ranges != nil:
		return 0, 0, false, nil
	case req.PK != nil && len(req.PK) == len(c.KeyPaths()):
		n, ok, err = c.CountIn(ctx, req.PK)
	case req.PK != nil:
		return 0, 0, false, nil
	case len(req.Ranges) == 0:
		if n, err = c.Count(ctx); err == nil {
			ok, err = true, c.Settle()
		}
	default:
		sc.Range.Min, sc.Range.Max = req.Ranges[0].Min, req.Ranges[0].Max
		var parts []core.Partition
		if parts, err = c.Partitions(ctx); err != nil {
			return 0, 0, false, err
		}
		for _, p := range parts {
			if p.Min == sc.Range.Min && p.Max == sc.Range.Max {
				n, ok, err = p.Items, true, c.Settle()
			}
		}
	}
	if ok && err == nil {
		charge, err = c.SpendCount(sc)
	}
	return n, charge, ok, err
}

var wallClock = clock.New()

// run opens the core's rows and fills the page from them.
func (pl *Plan) run(ctx context.Context, c *core.Container, req Request, r *runner, hash uint64, begin state) error {
	rid := c.RID()
	if req.Tx == nil { // what a transaction sees isn't kept
		r.kept = keeper{c.Kept(), hash ^ xxhash.Sum64(rid[:]) ^ req.Owner}
	}
	r.takeKept()
	if r.p.rank != nil && r.st.left != 0 && r.fused == nil {
		if err := pl.startRank(ctx, c, req, r); err != nil {
			return err
		}
	}
	var in input // nothing if the page reads no rows
	if r.reads() {
		var err error
		if in, err = pl.open(ctx, c, req, r, hash, begin); err != nil {
			return err
		}
		defer func() {
			pl.report(c, req, r, &in)
			if !in.kept {
				in.rows.Close()
			}
		}()
		if r.p.rank != nil && r.p.rank.fused {
			if err := r.fuse(begin); err != nil {
				return err
			}
		}
	} else {
		pl.reportEarlier(c, req, r, begin)
	}
	if r.fused != nil {
		r.src = r.fused
		defer func() {
			if r.fused != nil {
				r.fused.Close()
			}
		}()
	}
	next, more, err := r.run()
	if err != nil {
		return err
	}
	if more {
		if r.fused != nil {
			r.keepFused(&next)
		} else if in.rows != nil {
			next.kept, in.kept = r.keepRows(in.q, in.rows, &next)
		}
		r.out.Continuation = encodeShort(next, hash, req.MaxToken)
	}
	return nil
}

// reads reports whether the page needs rows of the core. It needs none if an earlier page has read them all, if LIMIT
// is reached, and without FROM.
func (r *runner) reads() bool {
	return r.p.top.q.From != nil && r.st.left != 0 && !r.gathered()
}

// gathered reports whether the rest of the rows has been kept for this page.
func (r *runner) gathered() bool { return r.groups != nil || r.rest != nil || r.fused != nil }

// input is what a page reads: the core's query and its rows.
type input struct {
	q    *exec.Query
	rows *exec.Rows
	kept bool // the rows are kept for the next page
}

// open opens the core's rows as the source of a page.
func (pl *Plan) open(ctx context.Context, c *core.Container, req Request, r *runner, hash uint64, begin state) (
	in input, err error) {
	q := pl.query(r.f, req, begin)
	q.PlanHash, q.Continuation, q.Timer = hash, r.st.core, r.timer
	if r.p.rank != nil && r.p.rank.fused {
		q.Continuation = "" // the position is one among the rows of RRF
	}
	if q.Page > 0 { // rows that OFFSET skips are read too
		q.Page += int(min(r.st.skip, math.MaxInt32))
	}
	best, src, err := pl.openBest(ctx, c, req, r, q, begin)
	switch {
	case err != nil:
		return in, err
	case best != nil:
		in.q, in.rows = best, src.rows
	default:
		if in.rows, err = r.open(ctx, c, q, req.Tx); err != nil {
			return in, err
		}
		in.q, src = q, &coreRows{rows: in.rows}
	}
	r.src = r.source(src)
	return in, nil
}

// report adds to the page what its rows have cost.
func (pl *Plan) report(c *core.Container, req Request, r *runner, in *input) {
	s, m := in.rows.Stats(), &r.out.Metrics
	r.out.Charge += s.Charge()
	m.ItemsRead += s.Items
	m.BytesRead += s.Bytes
	m.IndexReads += s.Entries
	m.Counted += s.Counted
	m.Rows += s.Rows
	m.Lookup, m.Load = s.Lookup(), s.DocumentLoad()
	m.Plan = s.Plan
	if req.Explain {
		m.Explain, m.Indexes = s.Plan.Explain(), pl.indexUse(c, in.q, s)
	}
	if req.Steps {
		m.Steps = in.rows.Explain(true)
	}
}

// reportEarlier adds to a page that reads no rows its charge, and the plan of the page that has found them.
func (pl *Plan) reportEarlier(c *core.Container, req Request, r *runner, begin state) {
	if r.gathered() || r.st.left == 0 {
		r.out.Charge += ru.Least
	} else {
		r.out.Charge += ru.QueryBase
	}
	s := r.earlier()
	if s == nil || s.Plan == nil {
		return
	}
	r.out.Metrics.Plan = s.Plan
	if req.Explain {
		r.out.Metrics.Explain = s.Plan.Explain()
		r.out.Metrics.Indexes = pl.indexUse(c, pl.query(r.f, req, begin), s)
	}
}

// query returns the core's query of an execution: predicate, exact filter, order and limit.
func (pl *Plan) query(f *frame, req Request, begin state) *exec.Query {
	p := pl.p
	q := &exec.Query{PK: req.PK, Compare: value.CompareCosmos, Collation: access.JSONOrder, Explain: req.Steps,
		From: req.From}
	for _, rg := range req.Ranges {
		q.Ranges = append(q.Ranges, struct{ Min, Max string }(rg))
	}
	if p.pred != nil {
		q.Pred = p.pred(f)
		if pl.env.Pred != nil {
			q.Pred = pl.env.Pred(q.Pred)
		}
	}
	if pl.env.Form == nil {
		p.cover.Ask(q)
	}
	// The core gets a limit of items, in total and for the page, when each item gives exactly one row. SELECT VALUE
	// gives no row for an undefined value, so the filter must then reject such items.
	oneRow := p.top.rootOnly && !p.top.grouped && !p.top.q.Distinct && len(p.functions) == 0
	if p.top.showsOrder() && (p.rank == nil || !p.rank.fused) {
		q.Shown = exec.CreationByPartition
	}
	where, defined := p.top.where, p.top.defined
	if !oneRow {
		defined = nil
	}
	if p.top.calls {
		where = nil // its calls are made for many rows at a time
	}
	if p.top.rootOnly && (where != nil || defined != nil) {
		q.Match = func(it *core.Item) (bool, error) {
			f.setRoot(it.Doc, it)
			ok := (where == nil || funcs.IsTrue(where(f))) && (defined == nil || defined(f).IsDefined())
			return ok, f.err
		}
	}
	q.OrderBy = pl.orderBy(f)
	if p.rank != nil && p.rank.fused {
		return q // it reads all items, in any order
	}
	if oneRow {
		q.Page = max(0, req.PageSize)
		if n := begin.left + begin.skip; begin.left >= 0 && n <= math.MaxInt32 {
			q.Limit = int(n)
		}
	}
	return q
}

// orderBy returns the keys of ORDER BY for the core.
func (pl *Plan) orderBy(f *frame) (by []exec.Order) {
	for _, o := range pl.p.order {
		key := o.key
		path, _, ok := shape.StoredPath(o.steps, false)
		if len(o.steps) == 0 {
			path = access.NewPath("\x00")
		} else if !ok || pl.env.Form != nil && !sarg.IsAlways(path) {
			path = access.NewPath("\x00" + o.steps[0].Name)
		}
		var near *exec.Near
		if o.near != nil && pl.env.Form == nil {
			near = o.near(f)
		}
		by = append(by, exec.Order{
			Path: path, Desc: o.desc, Near: near, Key: func(it *core.Item) value.Value {
				f.setRoot(it.Doc, it)
				return key(f)
			}})
	}
	return by
}

// hash identifies an execution: the text, the parameters and the partitions it is restricted to.
func (pl *Plan) hash(req Request) uint64 {
	if len(pl.vals) == 0 && req.PK == nil && len(req.Ranges) == 0 {
		return pl.p.hash
	}
	b := make([]byte, 0, 256)
	for _, vs := range [][]value.Value{pl.vals, req.PK} {
		for _, v := range vs {
			b = append(b, byte(v.Kind()))
			b = doc.AppendElement(b, "", v)
		}
		b = append(b, 0xFF)
	}
	return pl.p.hash ^ xxhash.Sum64(b)
}

// coreRows is the rowSource of the core's rows.
type coreRows struct {
	rows   *exec.Rows
	peeked bool // the next row was read already, if there is one
	has    bool
}

func (s *coreRows) next() bool {
	if s.peeked {
		s.peeked = false
		return s.has
	}
	return s.rows.Next()
}

// peek reads the next row.
func (s *coreRows) peek() { s.has, s.peeked = s.rows.Next(), true }

func (s *coreRows) err() error { return s.rows.Err() }

func (s *coreRows) item() (doc.Doc, *core.Item) {
	it := s.rows.Item()
	return it.Doc, it
}

func (s *coreRows) position() string {
	if s.rows.Exhausted() {
		return ""
	}
	return s.rows.Continuation()
}

// showsOrder reports whether the order of the items can change the answer. It does for a query without groups and
// DISTINCT, whose rows come in that order. It also does for an inner query with TOP or LIMIT but without ORDER BY,
// because the order then decides which rows there are.
func (cq *cquery) showsOrder() bool {
	if !cq.grouped && !cq.q.Distinct {
		return true
	}
	in := cq.base
	return in != nil && len(in.q.OrderBy) == 0 && (in.q.Top != nil || in.q.Limit != nil)
}
