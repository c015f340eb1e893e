package sql

import (
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/expand"
	"github.com/orrerydb/orrery/sqlapi/sql/sarg"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// Param is a query parameter: its name with or without the leading @, and its value.
type Param struct {
	Name  string
	Value value.Value
}

// program is a compiled query text. Executions share it; it is immutable.
type program struct {
	text   string
	key    string // key in the cache
	hash   uint64
	q      *syntax.Query
	top    *cquery
	params []string
	nslots int
	nsubs  int
	// functions has the names of the user-defined functions that the query refers to.
	functions []string
	count     func(f *frame) int64 // TOP or LIMIT; nil: no limit
	offset    func(f *frame) int64
	order     []orderPath
	rank      *ranking // ORDER BY RANK; nil: there is none
	pred      sarg.Pred[*frame]
	whole     bool // the query only counts all items (isCountAll)
	best      *bestFirst
	tallies   *textTallies // of a query that only counts items, words and phrases; nil: it is another one
	cover     sarg.Coverage
	frames    sync.Pool // *frame
}

// orderPath is one ORDER BY path.
type orderPath struct {
	steps []shape.Step // nil for a distance of vectors or geometries
	key   evalFn
	desc  bool
	near  sarg.Near[*frame] // set for a distance from a constant geometry
}

// compile parses and compiles a text.
func compile(text string, lim syntax.Limits) (*program, error) {
	q, err := syntax.Parse(text, lim)
	if err != nil {
		return nil, err
	}
	return compileQuery(text, q, false)
}

// compileQuery compiles a parsed text. planar is true when geometries lie in a plane.
func compileQuery(text string, q *syntax.Query, planar bool) (*program, error) {
	p := &program{text: text, key: text, q: q, hash: xxhash.Sum64String(resumable(text, q))}
	c := &compiler{text: q.Text, planar: planar, params: map[string]int{}}
	p.count, p.offset = c.count(q.Limit, "LIMIT"), c.count(q.Offset, "OFFSET")
	if q.Top != nil {
		p.count = c.count(q.Top, "TOP")
	}
	p.top = c.query(q, true, func(cq *cquery) rowFn {
		switch {
		case cq.grouped && c.calls > 0:
			return func(f *frame) bool {
				if f.calls.dry {
					return cq.dryRow(f)
				}
				return cq.gather(f)
			}
		case cq.grouped:
			return cq.gather
		}
		return func(f *frame) bool { return f.sink(f) }
	})
	switch {
	case c.err != nil:
	case q.Rank:
		c.rank(p)
	default:
		c.orderPaths(p)
	}
	if c.err == nil {
		p.pred = c.predicate(p)
	}
	if c.err != nil {
		return nil, c.err
	}
	p.params, p.nslots, p.nsubs, p.functions = c.names, c.nslots, c.nsubs, c.functions
	p.whole = isCountAll(p)
	p.tallies, p.best = c.textTallies(p), c.bestFirst(p)
	p.cover = p.coverage()
	return p, nil
}

// predicate compiles WHERE to a predicate for indexes, nil when no condition can use one. With nested sub-queries in
// FROM it is the WHERE of the innermost one: an item that doesn't pass it gives no row.
func (c *compiler) predicate(p *program) sarg.Pred[*frame] {
	cq := p.top
	if cq.base != nil {
		cq = cq.base
	}
	if cq.q.Where == nil || len(cq.vars) == 0 {
		return nil
	}
	outer := c.scope
	c.scope = &scope{vars: cq.vars}
	defer func() { c.scope = outer }()
	return c.sargs(cq).Filter(cq.q.Where)
}

// sargs returns the compiler of predicates for a query's conditions.
func (c *compiler) sargs(cq *cquery) sarg.Compiler[*frame] {
	vars := make([]sarg.Alias, len(cq.vars))
	for i, v := range cq.vars {
		vars[i] = sarg.Alias{Name: v.name, IsRoot: v.root}
	}
	compile := func(e syntax.Expr) sarg.Const[*frame] { return sarg.Const[*frame](c.expr(e).fn) }
	return sarg.Compiler[*frame]{From: cq.q.From, Vars: vars, Planar: c.planar, Compile: compile}
}

// coverage returns what the core needs to answer the query from index entries. It is empty unless the query reads the
// items themselves. With nested queries in FROM that holds for the innermost one, because the outer ones only see its
// rows.
func (p *program) coverage() sarg.Coverage {
	cq := p.top
	if cq.base != nil {
		cq = cq.base
	}
	if !cq.rootOnly || cq.q.Star || cq.derived != nil || len(cq.vars) != 1 || !cq.vars[0].root {
		return sarg.Coverage{}
	}
	return sarg.CoverageOf(cq.q, cq.vars[0].name, p.top.grouped || p.top.derived != nil, cq == p.top)
}

// resumable returns the text that continuations of a query are bound to. Usually that is the query's text. A client
// that merges an ORDER BY writes its position as a filter into the rewritten text (gateway.FilterPlaceholder), and
// sends a continuation of the text with another filter. The continuation is a position in the order, and a filter
// doesn't change the order. So continuations of rewritten ORDER BY texts are not bound to WHERE.
func resumable(text string, q *syntax.Query) string {
	if len(q.OrderBy) == 0 || len(q.Items) != 3 || q.Items[1].Alias != "orderByItems" || q.Items[2].Alias != "payload" {
		return text
	}
	if rid, ok := q.Items[0].Expr.(*syntax.Prop); !ok || rid.Name != "_rid" {
		return text
	}
	bare := *q
	bare.Where = nil
	return "\x00" + syntax.PrintQuery(&bare)
}

// orderPaths resolves the ORDER BY expressions. Each must be a path on the item, or a distance as the only expression.
func (c *compiler) orderPaths(p *program) {
	if shape.IsGrouped(p.q) { // it has one row, or was refused before
		return
	}
	outer := c.scope
	c.scope = &scope{vars: p.top.vars}
	defer func() { c.scope = outer }()
	for _, o := range p.q.OrderBy {
		if call := shape.VectorOrder(p.q); call != nil && p.top.derived == nil {
			p.order = append(p.order, orderPath{key: c.nearness(call), desc: true})
			return
		}
		if call := shape.ScoreOrder(p.q); call != nil && p.top.derived == nil {
			p.order = append(p.order, orderPath{key: c.scoreKey(call, o.Desc), desc: true})
			return
		}
		if shape.PlaceOrder(p.q) && p.top.derived == nil {
			near := c.sargs(p.top).Nearest(o.Expr.(*syntax.Call))
			p.order = append(p.order, orderPath{key: c.expr(o.Expr).fn, desc: o.Desc, near: near})
			return
		}
		steps, base := shape.SplitPath(o.Expr)
		id, ok := base.(*syntax.Ident)
		var v *variable
		if ok {
			v = c.resolve(id, o.Expr)
		}
		if c.err != nil {
			return
		}
		if o.Computed != "" && (v == nil || len(steps) == 0 || !c.itemPath(p, v, &steps)) {
			// A computed property is no path, so no index has it. Its name distinguishes it from other ones in
			// continuations.
			p.order = append(p.order, orderPath{steps: []shape.Step{{Name: "\x00" + o.Computed}},
				key: c.expr(o.Expr).fn, desc: o.Desc})
			continue
		}
		if v == nil || len(steps) == 0 || !c.itemPath(p, v, &steps) {
			c.failAt(o.Expr, syntax.CodeOrderBy, "Unsupported ORDER BY clause. ORDER BY item expression could not be "+
				"mapped to a document path.")
			return
		}
		p.order = append(p.order, orderPath{steps: steps, key: rootPath(steps), desc: o.Desc})
	}
}

// nearness compiles a call of VectorDistance to a sort key that is greater for nearer vectors.
func (c *compiler) nearness(call *syntax.Call) evalFn {
	key := c.expr(call).fn
	if !shape.Euclidean(call) {
		return key
	}
	return func(f *frame) value.Value {
		if v := key(f); v.IsNumber() {
			return value.DoubleOf(-v.Float())
		}
		return value.Value{}
	}
}

// scoreKey compiles a score to a sort key of a descending order in which items without a score come last.
func (c *compiler) scoreKey(call *syntax.Call, desc bool) evalFn {
	key := c.expr(call).fn
	if desc {
		return key
	}
	return func(f *frame) value.Value {
		if v := key(f); v.IsNumber() {
			return value.DoubleOf(-v.Float())
		}
		return value.Value{}
	}
}

// itemPath translates a path on alias v into a path on the item. v is the item itself or FROM c.path AS v. A path with
// array elements is refused.
func (c *compiler) itemPath(p *program, v *variable, steps *[]shape.Step) bool {
	if !v.root {
		src := &p.q.From.Sources[0]
		if v != p.top.vars[0] || src.In || src.Query != nil {
			return false
		}
		base, _ := shape.SplitPath(src.Path)
		*steps = append(append([]shape.Step(nil), base...), *steps...)
	}
	for _, s := range *steps {
		if s.Array {
			return false
		}
	}
	return true
}

// isCountAll reports whether the query only counts all items: SELECT [VALUE] COUNT(constant) FROM c, also inside
// constructors.
func isCountAll(p *program) bool {
	q := p.q
	if !p.top.grouped || !p.top.rootOnly || q.Where != nil || len(q.GroupBy) > 0 {
		return false
	}
	es := []syntax.Expr{q.Value}
	for _, it := range q.Items {
		es = append(es, it.Expr)
	}
	for _, e := range es {
		if !countsAll(e) {
			return false
		}
	}
	return true
}

// countsAll reports whether each aggregate in e is COUNT of a defined constant.
func countsAll(e syntax.Expr) bool {
	if e == nil {
		return true
	}
	if call, ok := e.(*syntax.Call); ok && !call.UDF && funcs.AggregateOf(call.Name) != nil {
		lit, ok := call.Args[0].(*syntax.Lit)
		return ok && lit.Val.IsDefined() && strings.EqualFold(call.Name, "COUNT")
	}
	all := true
	syntax.Children(e, func(x syntax.Expr) { all = all && countsAll(x) })
	_, sub := e.(*syntax.SubqueryExpr)
	return all && !sub
}

// bind returns the parameter values by number. It refuses a query with a missing parameter. If a parameter is given
// twice, its last value is used.
func (p *program) bind(params []Param) ([]value.Value, error) {
	if len(p.params) == 0 {
		return nil, nil
	}
	vals := make([]value.Value, len(p.params))
next:
	for i, name := range p.params {
		for j := len(params) - 1; j >= 0; j-- {
			if strings.TrimPrefix(params[j].Name, "@") == name {
				vals[i] = params[j].Value
				continue next
			}
		}
		err := syntax.PlainError("The query parameter '@%s' is not specified.", name)
		err.Code = syntax.CodeParameter
		return nil, err
	}
	return vals, nil
}

// frame returns a frame for one execution. release puts it back into the pool.
func (p *program) frame(params []value.Value) *frame {
	f, _ := p.frames.Get().(*frame)
	if f == nil {
		f = &frame{slots: make([]value.Value, p.nslots), subs: make([]subState, p.nsubs)}
		f.ctx.Fail = f.fail
	}
	f.params = params
	return f
}

func (p *program) release(f *frame) {
	for i := range f.subs {
		f.subs[i].close()
	}
	f.acct.Close()
	clear(f.slots)
	clear(f.subs)
	*f = frame{slots: f.slots, subs: f.subs, args: f.args[:0], ctx: funcs.Context{Fail: f.ctx.Fail}}
	p.frames.Put(f)
}

// NewComputed checks the definitions of computed properties and returns them, nil when there are none. The errors are
// texts for the user.
func NewComputed(defs []expand.Property) (*expand.Computed, error) {
	return expand.New(defs, func(text string) (q *syntax.Query, params int, err error) {
		if q, err = syntax.Parse(text, syntax.DefaultLimits()); err != nil {
			return nil, 0, err
		}
		p, err := compileQuery(text, q, false)
		if err != nil {
			return nil, 0, err
		}
		return q, len(p.params), nil
	})
}
