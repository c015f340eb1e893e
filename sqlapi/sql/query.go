package sql

import (
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/func"
)

const (
	maxSteps     = 50_000_000 // rows that the FROM clauses of one execution may make per page
	maxGathered  = 64 << 20   // bytes that DISTINCT, GROUP BY or a sort may hold
	maxSubResult = 16 << 20   // bytes of one ARRAY(..)
)

// cquery is a compiled query or sub-query.
type cquery struct {
	id       int
	q        *Query
	vars     []*variable
	run      rowFn // makes the rows of the query in the present frame and hands each that passes WHERE to row
	where    evalFn
	project  evalFn
	write    writeFn // of the query itself only
	defined  evalFn  // with write and SELECT VALUE: what must be defined for a row to count
	isValue  bool    // SELECT VALUE: an undefined result is no row
	grouped  bool
	keys     []evalFn
	group    *groupCtx
	order    []evalFn
	joined   bool // the rows of an item may be more or fewer than one
	rootOnly bool // the one source is the item itself
}

// query compiles q; row gets each row that passes WHERE, before grouping.
func (c *compiler) query(q *Query, top bool, row func(cq *cquery) rowFn) *cquery {
	cq := &cquery{id: c.nsubs, q: q, isValue: q.Value != nil}
	c.nsubs++
	outer, outerAgg := c.scope, c.noAgg
	c.scope = &scope{parent: outer}
	defer func() { c.scope, c.noAgg = outer, outerAgg }()

	c.noAgg = true
	binds := c.sources(cq, top)
	if q.Where != nil {
		cq.where = c.expr(q.Where).fn
	}
	for _, k := range q.GroupBy {
		cq.keys = append(cq.keys, c.expr(k).fn)
	}
	if !top {
		for _, o := range q.OrderBy {
			cq.order = append(cq.order, c.expr(o.Expr).fn)
		}
	}
	c.noAgg = false
	c.selectList(cq, top)
	c.checkShape(q, top)

	body := row(cq)
	if where := cq.where; where != nil && !(top && cq.rootOnly) { // there the core's rows are filtered already
		next := body
		body = func(f *frame) bool {
			if !isTrue(where(f)) {
				return f.err == nil
			}
			return next(f)
		}
	}
	for i := len(binds) - 1; i >= 0; i-- {
		body = binds[i](body)
	}
	cq.run = body
	return cq
}

// checkShape refuses combinations that the language has no meaning for.
func (c *compiler) checkShape(q *Query, top bool) {
	if q.Rank {
		c.fail(&Error{plain: true, Msg: "ORDER BY RANK is not supported."})
	}
	if isGrouped(q) && len(q.GroupBy) > 0 && len(q.OrderBy) > 0 {
		c.fail(&Error{plain: true, Msg: "'ORDER BY' is not supported with 'GROUP BY'."})
	}
	if q.Top != nil && q.Offset != nil {
		c.failAt(&Lit{node: node{pos: q.Top.pos}}, codeSyntax, "'TOP' and 'OFFSET LIMIT' can't be used together.")
	}
}

// sources declares the aliases of FROM and returns for each source the step that makes its rows.
func (c *compiler) sources(cq *cquery, top bool) []func(next rowFn) rowFn {
	if cq.q.From == nil {
		return nil
	}
	srcs := cq.q.From.Sources
	cq.joined = len(srcs) > 1
	var binds []func(rowFn) rowFn
	for i := range srcs {
		s := &srcs[i]
		container := (top || c.first) && i == 0
		c.first = false
		v := &variable{name: s.Alias, owner: cq.id}
		var bind func(rowFn) rowFn
		switch {
		case s.Query != nil:
			if container && !c.streams(s.Query, cq.q) {
				c.fail(plainError("A sub-query with aggregates, ORDER BY, TOP or LIMIT as the first input set of FROM is not supported."))
				return binds
			}
			bind = c.querySource(s, v, container)
			cq.joined = true
		case isContainer(c, s, container) && !s.In:
			v.root = true
		default:
			bind = c.pathSource(s, v, container)
			cq.joined = true
		}
		if v.root && len(srcs) == 1 {
			cq.rootOnly = true
		}
		for _, other := range c.scope.vars {
			if other.name == v.name && v.name != "" {
				c.fail(errorAt(c.text, s.pos, codeDuplicate, "The input alias '%s' is specified more than once in the FROM clause.", clip(v.name)))
			}
		}
		c.scope.vars = append(c.scope.vars, v)
		cq.vars = append(cq.vars, v)
		if bind != nil {
			binds = append(binds, bind)
		}
	}
	return binds
}

// streams reports whether a sub-query that stands for the container can be run item by item. DISTINCT remembers what former
// items gave, so the query around it must begin anew on each page.
func (c *compiler) streams(q, outer *Query) bool {
	return !isGrouped(q) && len(q.OrderBy) == 0 && q.Top == nil && q.Limit == nil && (!q.Distinct || isGrouped(outer) || outer.Distinct)
}

// isContainer reports whether a source is the item itself: the container's name, or an alias of the item in a sub-query.
func isContainer(c *compiler, s *Source, container bool) bool {
	id, ok := s.Path.(*Ident)
	if !ok {
		return false
	}
	if container {
		return true
	}
	v := c.scope.find(id.Name)
	return v != nil && v.root
}

// sourcePath compiles the path of a source. The first identifier of the query's first source is the container, whatever it says.
func (c *compiler) sourcePath(s *Source, container bool) evalFn {
	if !container {
		return c.expr(s.Path).fn
	}
	steps, _ := splitPath(s.Path)
	if len(steps) == 0 {
		return (*frame).wholeItem
	}
	return rootPath(steps)
}

func (c *compiler) newSlot(v *variable) int {
	v.slot = c.nslots
	c.nslots++
	return v.slot
}

// pathSource is a property of an alias, or with IN each element of an array.
func (c *compiler) pathSource(s *Source, v *variable, container bool) func(rowFn) rowFn {
	path, slot := c.sourcePath(s, container), c.newSlot(v)
	if !s.In {
		return func(next rowFn) rowFn {
			return func(f *frame) bool {
				if f.slots[slot] = path(f); !f.slots[slot].IsDefined() {
					return true
				}
				return next(f)
			}
		}
	}
	return func(next rowFn) rowFn {
		return func(f *frame) bool { return eachElement(f, path(f), slot, next) }
	}
}

// eachElement runs next for each element of an array.
func eachElement(f *frame, arr value.Value, slot int, next rowFn) bool {
	if arr.Kind() != value.Array {
		return true
	}
	for it := arr.Iter(); it.Next(); {
		if !f.step() {
			return false
		}
		f.slots[slot] = funcs.View(it.Value())
		if !next(f) {
			return false
		}
	}
	return true
}

// step counts one row and ends an execution that makes too many or whose request has ended.
func (f *frame) step() bool {
	f.steps++
	if f.steps > maxSteps {
		f.fail(status.New(status.Timeout, "The query made more than %d rows in one page.", maxSteps))
	} else if f.steps&4095 == 0 && f.done != nil {
		if err := f.done.Err(); err != nil {
			f.fail(err)
		}
	}
	return f.err == nil
}

func (f *frame) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// querySource is a sub-query in FROM: each of its rows is one, with IN each element of each of them.
// With first the sub-query's own first source is the container.
func (c *compiler) querySource(s *Source, v *variable, first bool) func(rowFn) rowFn {
	slot := c.newSlot(v)
	c.first = first
	var next rowFn
	stopped := -1
	in := s.In
	sub := c.subRun(s.Query, func(f *frame, val value.Value) bool {
		ok := true
		if in {
			ok = eachElement(f, val, slot, next)
		} else if f.slots[slot] = val; f.step() {
			ok = next(f)
		}
		if !ok {
			f.subs[stopped].found = true
		}
		return ok
	})
	stopped = sub.id
	sub.keep, c.first = first, false
	return func(n rowFn) rowFn {
		next = n
		return func(f *frame) bool {
			sub.exec(f)
			return !f.subs[sub.id].found && f.err == nil
		}
	}
}

// selectList compiles the projection.
func (c *compiler) selectList(cq *cquery, top bool) {
	q := cq.q
	cq.grouped = isGrouped(q)
	if q.Star {
		c.star(cq, top)
		return
	}
	if cq.grouped {
		cq.group = &groupCtx{sub: cq.id, keys: q.GroupBy}
		c.groups = append(c.groups, cq.group)
		defer func() { c.groups = c.groups[:len(c.groups)-1] }()
	}
	direct := top && !q.Distinct // the top query's rows go straight to JSON
	if q.Value != nil {
		if direct {
			cq.write = c.writer(q.Value)
			if !cq.grouped && (q.Top != nil || q.Limit != nil) {
				cq.defined = c.expr(q.Value).fn
			}
		} else {
			cq.project = c.expr(q.Value).fn
		}
		return
	}
	o := &ObjectExpr{Keys: itemNames(q.Items)}
	for _, it := range q.Items {
		o.Vals = append(o.Vals, it.Expr)
	}
	o.pos = q.selectSpan
	if direct {
		cq.write = c.objectWriter(o)
	} else {
		cq.project = c.object(o).fn
	}
}

// star compiles SELECT *: the one input set.
func (c *compiler) star(cq *cquery, top bool) {
	q := cq.q
	at := &Lit{node: node{pos: q.selectSpan}}
	switch {
	case q.From == nil:
		c.failAt(at, codeStarNoFrom, "'SELECT *' is not valid if FROM clause is omitted.")
	case len(q.GroupBy) > 0:
		c.failAt(at, codeStarGroup, "'SELECT *' is not allowed with GROUP BY.")
	case len(q.From.Sources) > 1:
		c.failAt(at, codeStarJoin, "'SELECT *' is only valid with a single input set.")
	}
	cq.isValue = true
	if c.err != nil || len(cq.vars) == 0 {
		cq.project = konst(value.Value{}).fn
		return
	}
	v := cq.vars[0]
	if v.root {
		cq.project = (*frame).wholeItem
		cq.write = writeItem
		return
	}
	slot := v.slot
	cq.project = func(f *frame) value.Value { return f.slots[slot] }
	if top {
		cq.write = valueWriter(cq.project)
	}
}

// itemNames gives each select item its name: the alias, the last property of a path, or $1, $2, .. for the others.
func itemNames(items []SelectItem) []string {
	names := make([]string, len(items))
	n := 0
	for i, it := range items {
		names[i] = it.Alias
		if names[i] == "" {
			names[i] = derivedName(it.Expr)
		}
		if names[i] == "" {
			n++
			names[i] = "$" + strconv.Itoa(n)
		}
	}
	return names
}

// count evaluates a TOP, OFFSET or LIMIT.
func (c *compiler) count(n *Count, clause string) func(f *frame) int64 {
	if n == nil {
		return nil
	}
	if n.Param == "" {
		return func(*frame) int64 { return n.N }
	}
	i := c.param(n.Param)
	return func(f *frame) int64 {
		k, ok := funcs.ToInt(f.params[i])
		if !ok || !f.params[i].IsNumber() || k < 0 || k > maxCount {
			f.fail(plainError("The value of %s must be a whole number from 0 to %d.", clause, int64(math.MaxUint32)))
			return 0
		}
		return int64(k)
	}
}

// sub is a compiled sub-query: exec runs it in the present frame.
type sub struct {
	id   int
	keep bool // DISTINCT goes on from item to item
	exec func(f *frame)
}

type sortedRow struct {
	keys []value.Value
	val  value.Value
}

// subRun compiles a sub-query whose defined results go to sink, which returns false to end it.
func (c *compiler) subRun(q *Query, sink func(f *frame, v value.Value) bool) *sub {
	top, offset, limit := c.count(q.Top, "TOP"), c.count(q.Offset, "OFFSET"), c.count(q.Limit, "LIMIT")
	if top != nil {
		limit = top
	}
	var cq *cquery
	cq = c.query(q, false, func(cq *cquery) rowFn {
		switch {
		case cq.grouped:
			return cq.gather
		case len(cq.order) > 0:
			return cq.gatherSorted
		}
		return func(f *frame) bool { return cq.emit(f, cq.project(f), sink) }
	})
	sb := &sub{id: cq.id}
	sb.exec = func(f *frame) {
		st := &f.subs[cq.id]
		seen := st.seen
		*st = subState{left: -1}
		if sb.keep {
			st.seen = seen
		}
		if offset != nil {
			st.skip = offset(f)
		}
		if limit != nil {
			st.left = limit(f)
		}
		if f.err != nil || st.left == 0 {
			return
		}
		if cq.grouped {
			st.groups = &groupSet{}
		}
		cq.run(f)
		if f.err == nil && (cq.grouped || len(cq.order) > 0) {
			cq.finish(f, sink)
		}
	}
	return sb
}

// bound refuses a query that holds more than maxGathered bytes of rows, keys or groups.
func (f *frame) bound(size int) {
	if size > maxGathered {
		f.fail(status.New(status.BadRequest, "The query has more distinct rows, groups or rows to sort than this server keeps (%d bytes).", maxGathered))
	}
}

// emit applies DISTINCT, OFFSET and LIMIT to a result.
func (cq *cquery) emit(f *frame, v value.Value, sink func(f *frame, v value.Value) bool) bool {
	st := &f.subs[cq.id]
	if cq.isValue && !v.IsDefined() {
		return f.err == nil
	}
	if cq.q.Distinct {
		if st.seen == nil {
			st.seen = newDistinctSet()
		}
		if !st.seen.add(v) {
			return f.err == nil
		}
		f.bound(st.seen.size)
	}
	if st.skip > 0 {
		st.skip--
		return true
	}
	if st.left > 0 {
		st.left--
	}
	return sink(f, v) && st.left != 0 && f.err == nil
}

// gather adds a row to its group.
func (cq *cquery) gather(f *frame) bool {
	st := &f.subs[cq.id]
	base := len(f.args)
	for _, k := range cq.keys {
		v := k(f)
		f.args = append(f.args, v)
	}
	g := st.groups.find(f.args[base:], len(cq.group.aggs))
	f.args = f.args[:base]
	for i, a := range cq.group.aggs {
		a.fn.add(&g.aggs[i], a.arg(f))
	}
	f.bound(st.groups.size)
	return f.err == nil
}

// gatherSorted keeps a row of a sub-query with ORDER BY.
func (cq *cquery) gatherSorted(f *frame) bool {
	r := sortedRow{val: cq.project(f).Clone()}
	st := &f.subs[cq.id]
	for _, k := range cq.order {
		r.keys = append(r.keys, k(f).Clone())
		st.rows += len(r.keys[len(r.keys)-1].Bytes()) + 48
	}
	st.sorted = append(st.sorted, r)
	st.rows += len(r.val.Bytes()) + 48
	f.bound(st.rows)
	return f.step()
}

// finish hands out groups, or the rows of a sub-query in their order. Without GROUP BY there is one group, also without rows.
func (cq *cquery) finish(f *frame, sink func(f *frame, v value.Value) bool) {
	st := &f.subs[cq.id]
	if cq.grouped {
		cq.oneGroup(st)
		for _, g := range st.groups.list {
			st.group = g
			if !cq.emit(f, cq.project(f), sink) {
				return
			}
		}
		return
	}
	sort.SliceStable(st.sorted, func(i, j int) bool {
		for k := range cq.order {
			if d := value.CompareCosmos(st.sorted[i].keys[k], st.sorted[j].keys[k]); d != 0 {
				return (d < 0) != cq.q.OrderBy[k].Desc
			}
		}
		return false
	})
	for _, r := range st.sorted {
		if !cq.emit(f, r.val, sink) {
			return
		}
	}
}

// oneGroup makes the single group of an aggregate query without GROUP BY that met no row.
func (cq *cquery) oneGroup(st *subState) {
	if len(cq.q.GroupBy) == 0 && len(st.groups.list) == 0 {
		st.groups.find(nil, len(cq.group.aggs))
	}
}

// subquery compiles a sub-query in an expression.
func (c *compiler) subquery(e *SubqueryExpr) cexpr {
	id := -1
	var s *sub
	size := func(f *frame, v value.Value) bool {
		st := &f.subs[id]
		if st.rows += len(v.Bytes()) + 16; st.rows > maxSubResult {
			f.fail(status.New(status.BadRequest, "The result of a sub-query is larger than %d bytes.", maxSubResult))
		}
		return f.err == nil
	}
	sinks := map[string]func(f *frame, v value.Value) bool{
		"": func(f *frame, v value.Value) bool {
			st := &f.subs[id]
			if st.rows++; st.rows > 1 {
				f.fail(plainError("The cardinality of a scalar subquery result set cannot be greater than one."))
				return false
			}
			st.val = v
			return true
		},
		"EXISTS": func(f *frame, _ value.Value) bool { f.subs[id].found = true; return false },
		"FIRST":  func(f *frame, v value.Value) bool { f.subs[id].val = v; return false },
		"LAST":   func(f *frame, v value.Value) bool { f.subs[id].val = v; return true },
		"ALL": func(f *frame, v value.Value) bool {
			f.subs[id].found = !isTrue(v)
			return isTrue(v)
		},
		"ARRAY": func(f *frame, v value.Value) bool {
			f.subs[id].list.Elem(v)
			return size(f, v)
		},
	}
	s = c.subRun(e.Q, sinks[strings.ToUpper(e.Kind)])
	id = s.id
	switch e.Kind {
	case "EXISTS":
		return cexpr{fn: func(f *frame) value.Value { s.exec(f); return value.BoolOf(f.subs[id].found) }}
	case "ALL":
		return cexpr{fn: func(f *frame) value.Value { s.exec(f); return value.BoolOf(!f.subs[id].found) }}
	case "ARRAY":
		return cexpr{fn: func(f *frame) value.Value { s.exec(f); return f.subs[id].list.Array() }}
	}
	return cexpr{fn: func(f *frame) value.Value { s.exec(f); return f.subs[id].val }}
}
