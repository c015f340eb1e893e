package sql

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/func"
)

// Param is a query parameter: its name with or without the leading @, and its value.
type Param struct {
	Name  string
	Value value.Value
}

// program is a compiled query text. It is shared by executions and never changes.
type program struct {
	text   string
	key    string // in the cache
	hash   uint64
	q      *Query
	top    *cquery
	params []string
	nslots int
	nsubs  int
	count  func(f *frame) int64 // TOP or LIMIT, nil without
	offset func(f *frame) int64
	order  []orderPath
	pred   predFn
	whole  bool // COUNT(1) of everything
	cover  coverage
	frames sync.Pool // *frame
}

// orderPath is one ORDER BY path.
type orderPath struct {
	steps []step // nil for a distance of vectors or places
	key   evalFn
	desc  bool
	near  nearFn // of a distance from a constant place
}

// compile parses and compiles a text.
func compile(text string, lim Limits) (*program, error) {
	q, err := Parse(text, lim)
	if err != nil {
		return nil, err
	}
	return compileQuery(text, q, false)
}

// compileQuery compiles a parsed text; planar says that geometries lie in a plane.
func compileQuery(text string, q *Query, planar bool) (*program, error) {
	p := &program{text: text, key: text, q: q, hash: xxhash.Sum64String(resumable(text, q))}
	c := &compiler{text: q.text, planar: planar, params: map[string]int{}}
	p.count, p.offset = c.count(q.Limit, "LIMIT"), c.count(q.Offset, "OFFSET")
	if q.Top != nil {
		p.count = c.count(q.Top, "TOP")
	}
	p.top = c.query(q, true, func(cq *cquery) rowFn {
		if cq.grouped {
			return cq.gather
		}
		return func(f *frame) bool { return f.sink(f) }
	})
	if c.err == nil {
		c.orderPaths(p)
	}
	if c.err == nil {
		p.pred = c.predicate(p)
	}
	if c.err != nil {
		return nil, c.err
	}
	p.params, p.nslots, p.nsubs = c.names, c.nslots, c.nsubs
	p.whole = isCountAll(p)
	p.cover = coverageOf(p)
	return p, nil
}

// resumable is the text that continuations of a query are bound to. A client that merges an ORDER BY goes on with the
// partition's continuation under another WHERE: it puts where it stands into the place that the plan left for it. The
// position is one in the order, which no filter changes, so continuations of such texts are not bound to the filter.
func resumable(text string, q *Query) string {
	if len(q.OrderBy) == 0 || len(q.Items) != 3 || q.Items[1].Alias != "orderByItems" || q.Items[2].Alias != "payload" {
		return text
	}
	if rid, ok := q.Items[0].Expr.(*Prop); !ok || rid.Name != "_rid" {
		return text
	}
	bare := *q
	bare.Where = nil
	var pr printer
	pr.query(&bare)
	return "\x00" + pr.b.String()
}

// orderPaths resolves ORDER BY: each must be a path on the item.
func (c *compiler) orderPaths(p *program) {
	if isGrouped(p.q) { // one row, or refused before
		return
	}
	outer := c.scope
	c.scope = &scope{vars: p.top.vars}
	defer func() { c.scope = outer }()
	for _, o := range p.q.OrderBy {
		if call := vectorOrder(p.q); call != nil && p.top.derived == nil {
			p.order = append(p.order, orderPath{key: c.nearness(call), desc: true})
			return
		}
		if placeOrder(p.q) && p.top.derived == nil {
			s := sargs{c: c, from: p.q.From, vars: p.top.vars}
			p.order = append(p.order, orderPath{key: c.expr(o.Expr).fn, desc: o.Desc, near: s.nearest(o.Expr.(*Call))})
			return
		}
		steps, base := splitPath(o.Expr)
		id, ok := base.(*Ident)
		var v *variable
		if ok {
			v = c.resolve(id, o.Expr)
		}
		if c.err != nil {
			return
		}
		if o.computed != "" && (v == nil || len(steps) == 0 || !c.itemPath(p, v, &steps)) {
			// No path: no index has it, and its own name keeps it apart from others in continuations.
			p.order = append(p.order, orderPath{steps: []step{{name: "\x00" + o.computed}}, key: c.expr(o.Expr).fn,
				desc: o.Desc})
			continue
		}
		if v == nil || len(steps) == 0 || !c.itemPath(p, v, &steps) {
			c.failAt(o.Expr, codeOrderBy, "Unsupported ORDER BY clause. ORDER BY item expression could not be "+
				"mapped to a document path.")
			return
		}
		p.order = append(p.order, orderPath{steps: steps, key: rootPath(steps), desc: o.Desc})
	}
}

// vectorOrder returns the call when q is ordered by VectorDistance alone: the most similar come first, whatever
// direction is written, and items without a distance last.
func vectorOrder(q *Query) *Call {
	if len(q.OrderBy) == 1 {
		if call, ok := q.OrderBy[0].Expr.(*Call); ok && !call.UDF && strings.EqualFold(call.Name, "VectorDistance") {
			return call
		}
	}
	return nil
}

// placeOrder reports whether q is ordered by ST_DISTANCE alone: the only other expression that the service orders by.
// Items without a distance come first, as those without a value do.
func placeOrder(q *Query) bool {
	if len(q.OrderBy) != 1 {
		return false
	}
	call, ok := q.OrderBy[0].Expr.(*Call)
	return ok && isDistance(call)
}

// euclidean reports whether a call of VectorDistance measures a distance, of which less is nearer, and not a
// similarity. Only written options count.
func euclidean(call *Call) bool {
	if len(call.Args) < 4 {
		return false
	}
	if o, ok := call.Args[3].(*ObjectExpr); ok {
		for i, k := range o.Keys {
			if lit, ok := o.Vals[i].(*Lit); ok && k == "distanceFunction" && lit.Val.Kind() == value.String {
				return strings.EqualFold(lit.Val.Str(), "euclidean")
			}
		}
	}
	return false
}

// nearness compiles a sort key that is greater for nearer vectors.
func (c *compiler) nearness(call *Call) evalFn {
	key := c.expr(call).fn
	if !euclidean(call) {
		return key
	}
	return func(f *frame) value.Value {
		if v := key(f); v.IsNumber() {
			return value.DoubleOf(-v.Float())
		}
		return value.Value{}
	}
}

// itemPath turns a path on alias v into one on the item: v is the item, or FROM c.path AS v. Array elements are no
// paths.
func (c *compiler) itemPath(p *program, v *variable, steps *[]step) bool {
	if !v.root {
		src := &p.q.From.Sources[0]
		if v != p.top.vars[0] || src.In || src.Query != nil {
			return false
		}
		base, _ := splitPath(src.Path)
		*steps = append(append([]step(nil), base...), *steps...)
	}
	for _, s := range *steps {
		if s.array {
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
	es := []Expr{q.Value}
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
func countsAll(e Expr) bool {
	if e == nil {
		return true
	}
	if call, ok := e.(*Call); ok && !call.UDF && aggregateOf(call.Name) != nil {
		lit, ok := call.Args[0].(*Lit)
		return ok && lit.Val.IsDefined() && strings.EqualFold(call.Name, "COUNT")
	}
	all := true
	children(e, func(x Expr) { all = all && countsAll(x) })
	_, sub := e.(*SubqueryExpr)
	return all && !sub
}

// bind orders parameter values by number and refuses a missing one. A parameter given twice counts with its last value.
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
		return nil, &Error{Code: codeParameter, Msg: fmt.Sprintf("The query parameter '@%s' is not specified.", name),
			plain: true}
	}
	return vals, nil
}

// frame returns a frame for one execution; release gives it back.
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
	f.runs.Close()
	f.acct.Close()
	clear(f.slots)
	clear(f.subs)
	*f = frame{slots: f.slots, subs: f.subs, args: f.args[:0], ctx: funcs.Context{Fail: f.ctx.Fail}}
	p.frames.Put(f)
}

// planCache keeps compiled programs by text. It is bounded in entries and bytes of text; the oldest half is dropped
// when it is full, which costs a busy text one compile.
type planCache struct {
	mu       sync.RWMutex
	now, old map[string]*program
	bytes    int
}

const (
	cacheEntries = 1000
	cacheBytes   = 4 << 20
)

// shards of the cache keep executions on different texts from waiting for each other.
var (
	cacheSeed = maphash.MakeSeed()
	caches    [16]planCache
)

// cached returns the program of a text, compiling it when it isn't known. Refused texts are not kept.
func cached(text string) (*program, error) {
	c := cacheOf(text)
	p := c.get(text)
	if p == nil {
		var err error
		if p, err = compile(text, DefaultLimits()); err != nil {
			return nil, err
		}
		c.put(p)
	}
	return p, nil
}

func cacheOf(key string) *planCache { return &caches[maphash.String(cacheSeed, key)&15] }

// get returns the program under a key; nil when there is none.
func (c *planCache) get(key string) *program {
	c.mu.RLock()
	p := c.now[key]
	c.mu.RUnlock()
	if p != nil {
		return p
	}
	c.mu.Lock()
	p = c.old[key]
	c.mu.Unlock()
	if p != nil {
		c.put(p)
	}
	return p
}

func (c *planCache) put(p *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || len(c.now) >= cacheEntries/16 || c.bytes >= cacheBytes/16 {
		c.old, c.now, c.bytes = c.now, map[string]*program{}, 0
	}
	if c.now[p.key] == nil {
		c.bytes += len(p.key)
		c.now[p.key] = p
	}
}
