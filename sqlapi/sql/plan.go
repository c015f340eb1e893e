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
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/expand"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/sarg"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
)

// Env is what the language asks of the API around it.
type Env struct {
	// ItemJSON appends an item as the API shows it, system properties included.
	ItemJSON func(dst []byte, it *core.Item) []byte
	// SystemJSON appends the system properties of an item as "name":value,.. without braces.
	SystemJSON func(dst []byte, it *core.Item) []byte
	// Form, when set, gives the document that the language sees in place of the stored one, in bytes of its own; Pred
	// then translates a predicate on the former into one on the latter. For containers whose items this API shows in
	// another form.
	Form func(doc.Doc) doc.Doc
	Pred func(*access.Pred) *access.Pred
	// Computed is the container's computed properties, nil when it has none.
	Computed *expand.Computed
	// Planar: the container's geospatial configuration is Geometry, not Geography.
	Planar bool
	// Clock gives time and randomness; nil is the wall clock.
	Clock *clock.Clock
}

// Plan is a compiled query with its parameters. It can be executed any number of times, also concurrently.
type Plan struct {
	p    *program
	vals []value.Value
	env  *Env
}

// Compile finds or makes the program of a text and binds the parameters. The error is an *Error, which unwraps to a
// status.Error with the service's JSON as its message.
func Compile(text string, params []Param, env *Env) (*Plan, error) {
	if env == nil {
		env = &Env{}
	}
	p, err := cachedFor(text, env.Computed, env.Planar)
	if err != nil {
		return nil, err
	}
	vals, err := p.bind(params)
	if err != nil {
		return nil, err
	}
	return &Plan{p: p, vals: vals, env: env}, nil
}

// Range is a range of effective partition keys as published: Min inclusive, Max exclusive.
type Range struct{ Min, Max string }

// Request is one page of an execution.
type Request struct {
	PK           core.PartitionKey // one logical partition, or a prefix of a hierarchical key; nil = all
	Ranges       []Range           // restricts to ranges of effective partition keys; nil = all
	PageSize     int               // rows; 0 or less = as many as fit
	MaxBytes     int               // bytes of the rows after which a page ends; 0 = 4 MiB
	Continuation string            // of the page before; "" = from the start
	MaxToken     int               // bytes of a continuation; 0 = as long as it gets
	Explain      bool              // fill Metrics.Explain and Metrics.Indexes
	Times        bool              // fill the times of Metrics

	// Owner stands for who asks. What a page has computed is kept for the next page of the same owner only.
	Owner uint64

	// Hold is told the length of Page.Body as it grows. Its error ends the query. nil = nobody asks.
	Hold func(bytes int) error
}

// defaultPageBytes is the service's response limit.
const defaultPageBytes = 4 << 20

// Execute appends one page of rows to out. A continuation is refused (BadRequest) when it comes from another query,
// other parameters or another container.
func (pl *Plan) Execute(ctx context.Context, c *core.Container, req Request, out *Page) error {
	hash := pl.hash(req)
	r, begin, err := pl.start(ctx, req, hash, out)
	if r != nil {
		defer pl.p.release(r.f)
		r.f.bud, r.f.space = c.Budget(), c.Spill()
	}
	if err != nil {
		return err
	}
	if st := &r.st; pl.p.whole && st.left < 0 && st.skip == 0 && st.drop == 0 {
		n, ok, err := countOf(ctx, c, req)
		if err != nil {
			return err
		}
		if ok {
			out.Charge += countCharge
			return r.countAll(n)
		}
	}
	return pl.run(ctx, c, req, r, hash, begin)
}

// start makes the runner of one page, whose frame the caller releases also when there is an error. begin is the state
// of a first page.
func (pl *Plan) start(ctx context.Context, req Request, hash uint64, out *Page) (r *runner, begin state, err error) {
	f := pl.p.frame(pl.vals)
	f.env, f.done = pl.env, ctx
	clk := pl.env.Clock
	if clk == nil {
		clk = wallClock
	}
	f.ctx.Now, f.ctx.Clock, f.ctx.Random = clk.Now(), clk.Now, clk.Float64
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

// countOf returns the number of items that a request is about where it is kept: the container's, or a physical or
// logical partition's. Where items can expire it isn't known without reading them.
func countOf(ctx context.Context, c *core.Container, req Request) (n int64, ok bool, err error) {
	switch {
	case c.HasTTL() || len(req.Ranges) > 1 || req.PK != nil && req.Ranges != nil:
		return 0, false, nil
	case req.PK != nil && len(req.PK) == len(c.KeyPaths()):
		return c.CountIn(ctx, req.PK)
	case req.PK != nil:
		return 0, false, nil
	case len(req.Ranges) == 0:
		n = c.Count()
		return n, true, c.Settle()
	}
	for _, p := range c.Partitions() {
		if p.Min == req.Ranges[0].Min && p.Max == req.Ranges[0].Max {
			return p.Items, true, c.Settle()
		}
	}
	return 0, false, nil
}

// countCharge is what a COUNT costs that is answered from a number: the least charge of a query.
const countCharge = 2.3

var wallClock = clock.New()

// run opens the core's rows and makes the page from them.
func (pl *Plan) run(ctx context.Context, c *core.Container, req Request, r *runner, hash uint64, begin state) error {
	rid := c.RID()
	r.kept = keeper{c.Kept(), hash ^ xxhash.Sum64(rid[:]) ^ req.Owner}
	r.takeKept()
	var q *exec.Query
	var rows *exec.Rows
	kept := false // rows
	if r.p.top.q.From != nil && r.st.left != 0 && r.groups == nil {
		q = pl.query(r.f, req, begin)
		q.PlanHash, q.Continuation, q.Timer = hash, r.st.core, r.timer
		if q.Page > 0 { // those that OFFSET skips are read too
			q.Page += int(min(r.st.skip, math.MaxInt32))
		}
		var err error
		if rows, err = r.open(ctx, c, q); err != nil {
			return err
		}
		defer func() {
			if !kept {
				rows.Close()
			}
		}()
		r.src = &coreRows{rows: rows}
		defer func() {
			s := rows.Stats()
			r.out.Charge += s.Charge()
			r.out.Metrics.ItemsRead += s.Items
			r.out.Metrics.BytesRead += s.Bytes
			r.out.Metrics.IndexReads += s.Entries
			r.out.Metrics.Rows += s.Rows
			r.out.Metrics.Lookup, r.out.Metrics.Load = s.Lookup(), s.DocumentLoad()
			r.out.Metrics.Plan = &s.Plan
			if req.Explain {
				r.out.Metrics.Explain, r.out.Metrics.Steps = s.Plan.Explain(), rows.Explain(true)
				r.out.Metrics.Indexes = pl.indexUse(c, q, s)
			}
		}()
	} else {
		r.out.Charge += countCharge
	}
	if g := r.groups; g != nil && g.stats.Plan.Why != "" { // how they were found, by a former page
		r.out.Metrics.Plan = &g.stats.Plan
		if req.Explain {
			r.out.Metrics.Explain = g.stats.Plan.Explain()
			r.out.Metrics.Indexes = pl.indexUse(c, pl.query(r.f, req, begin), &g.stats)
		}
	}
	next, more, err := r.run()
	if err != nil {
		return err
	}
	if more {
		if rows != nil {
			next.kept, kept = r.keepRows(q, rows, &next)
		}
		r.out.Continuation = encodeShort(next, hash, req.MaxToken)
	}
	return nil
}

// query translates the execution for the core: predicate, exact filter, order and limit.
func (pl *Plan) query(f *frame, req Request, begin state) *exec.Query {
	p := pl.p
	q := &exec.Query{PK: req.PK, Compare: value.CompareCosmos, Collation: access.JSONOrder}
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
	// The core may be told how many items are wanted, in all and in a page, where each gives exactly one row: SELECT
	// VALUE drops those whose value is undefined, so they must not match then.
	oneRow := p.top.rootOnly && !p.top.grouped && !p.top.q.Distinct
	if p.top.showsOrder() {
		q.Shown = exec.CreationByPartition
	}
	where, defined := p.top.where, p.top.defined
	if !oneRow {
		defined = nil
	}
	if p.top.rootOnly && (where != nil || defined != nil) {
		q.Match = func(it *core.Item) (bool, error) {
			f.setRoot(it.Doc, it)
			ok := (where == nil || funcs.IsTrue(where(f))) && (defined == nil || defined(f).IsDefined())
			return ok, f.err
		}
	}
	for _, o := range p.order {
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
		q.OrderBy = append(q.OrderBy, exec.Order{
			Path: path, Desc: o.desc, Near: near, Key: func(it *core.Item) value.Value {
				f.setRoot(it.Doc, it)
				return key(f)
			}})
	}
	if oneRow {
		q.Page = max(0, req.PageSize)
		if n := begin.left + begin.skip; begin.left >= 0 && n <= math.MaxInt32 {
			q.Limit = int(n)
		}
	}
	return q
}

// hash identifies an execution: text, parameters and what it is restricted to.
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

// coreRows is the core's rows as a source.
type coreRows struct{ rows *exec.Rows }

func (s *coreRows) next() bool { return s.rows.Next() }
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

// showsOrder reports whether rows tell in which order the items came: those of a query that neither groups them nor
// takes distinct ones do, and a TOP or LIMIT of an inner query without an order of its own decides by it which there
// are.
func (cq *cquery) showsOrder() bool {
	if !cq.grouped && !cq.q.Distinct {
		return true
	}
	in := cq.base
	return in != nil && len(in.q.OrderBy) == 0 && (in.q.Top != nil || in.q.Limit != nil)
}
