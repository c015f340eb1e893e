package sql

import (
	"math"
	"sort"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

const (
	maxSteps     = 50_000_000 // rows that the FROM clauses of one execution may make per page
	maxSubResult = 16 << 20   // bytes of one ARRAY(..)
)

// cquery is a compiled query or sub-query.
type cquery struct {
	id          int
	q           *syntax.Query
	vars        []*variable
	run         rowFn // makes the rows in the current frame; passes those that satisfy WHERE to row
	where       evalFn
	calls       bool // where calls user-defined functions
	project     evalFn
	write       writeFn // only set for the outermost query
	defined     evalFn  // with write and SELECT VALUE: must be defined for a row to count
	isValue     bool    // SELECT VALUE: an undefined result is no row
	grouped     bool
	keys        []evalFn
	group       *groupCtx
	keyed       *spill.Keyed[group] // of groups
	once        bool                // it runs once in each execution, over all items
	order       []evalFn
	base        *cquery // the innermost query in FROM that reads the container, nil when it is cq itself
	derivedNext *rowFn  // receives the rows of derived
	// derived is the sub-query that is the first source in place of the container, if its rows depend on several items
	derived  *sub
	sorted   bool // DISTINCT, and equal rows are neighbours
	joined   bool // an item can have no row or several rows
	rootOnly bool // the only source is the item itself
}

// query compiles q. The function that row returns receives each row that passes WHERE, before grouping.
func (c *compiler) query(q *syntax.Query, top bool, row func(cq *cquery) rowFn) *cquery {
	cq := &cquery{id: c.nsubs, q: q, isValue: q.Value != nil, once: top,
		sorted: top && q.Distinct && shape.DistinctOrdered(q)}
	c.nsubs++
	outer, outerAgg := c.scope, c.noAgg
	c.scope = &scope{parent: outer}
	defer func() { c.scope, c.noAgg = outer, outerAgg }()

	c.noAgg = true
	binds := c.sources(cq, top)
	if q.Where != nil {
		before := c.calls
		cq.where = c.expr(q.Where).fn
		cq.calls = c.calls > before
	}
	for _, k := range q.GroupBy {
		cq.keys = append(cq.keys, c.expr(k).fn)
	}
	groups := len(q.GroupBy) > 0
	if !top && !groups {
		cq.order = c.orderKeys(q)
	}
	c.noAgg = false
	c.selectList(cq, top)
	if groups && cq.group != nil {
		c.groups = append(c.groups, cq.group)
		cq.order = c.orderKeys(q)
		c.groups = c.groups[:len(c.groups)-1]
	}
	c.checkShape(q, top)

	body := row(cq)
	if where := cq.where; where != nil && !cq.coreFilters(top) {
		next := body
		body = func(f *frame) bool {
			if !funcs.IsTrue(where(f)) {
				return f.err == nil
			}
			return next(f)
		}
	}
	for i := len(binds) - 1; i >= 0; i-- {
		body = binds[i](body)
	}
	if cq.derived != nil {
		*cq.derivedNext = body
	}
	cq.run = body
	return cq
}

// coreFilters reports whether the core filters the items by WHERE before the query sees them.
func (cq *cquery) coreFilters(top bool) bool { return top && cq.rootOnly && !cq.calls }

func (c *compiler) orderKeys(q *syntax.Query) (keys []evalFn) {
	for _, o := range q.OrderBy {
		if q.Rank { // refused
			break
		}
		keys = append(keys, c.expr(o.Expr).fn)
	}
	return keys
}

// checkShape refuses combinations of clauses that have no meaning in the language.
func (c *compiler) checkShape(q *syntax.Query, top bool) {
	if q.Rank && !top {
		c.failAt(q.OrderBy[0].Expr, syntax.CodeRank, "The ORDER BY RANK clause is not allowed in a sub-query.")
	}
	if q.Top != nil && q.Offset != nil {
		c.failIn(q.Top.Pos, syntax.CodeSyntax, "'TOP' and 'OFFSET LIMIT' can't be used together.")
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
			if bind = c.querySource(cq, s, v, container); container && !shape.Streams(s.Query) {
				bind, cq.derived.cq.once = nil, true
			} else {
				cq.derived = nil
			}
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
				c.failIn(s.Pos, syntax.CodeDuplicate, "The input alias '%s' is specified more than once in the FROM "+
					"clause.", syntax.Clip(v.name))
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

// isContainer reports whether a source is the item itself: the name of the container, or in a sub-query an alias of the
// item.
func isContainer(c *compiler, s *syntax.Source, container bool) bool {
	id, ok := s.Path.(*syntax.Ident)
	if !ok {
		return false
	}
	if container {
		return true
	}
	v := c.scope.find(id.Name)
	return v != nil && v.root
}

// sourcePath compiles the path of a source. The first identifier of the query's first source is the container, whatever
// its name is.
func (c *compiler) sourcePath(s *syntax.Source, container bool) evalFn {
	if !container {
		return c.expr(s.Path).fn
	}
	steps, _ := shape.SplitPath(s.Path)
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

// pathSource compiles a source that is a property of an alias, or with IN each element of an array.
func (c *compiler) pathSource(s *syntax.Source, v *variable, container bool) func(rowFn) rowFn {
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

// step counts one row. It ends the execution when there are too many rows or the request has ended.
func (f *frame) step() bool {
	f.steps++
	if f.steps > maxSteps {
		f.fail(status.New(status.Timeout, "The query made more than %d rows in one page.", maxSteps))
	} else if f.steps&4095 == 0 {
		f.cancelled()
	}
	return f.err == nil
}

func (f *frame) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// selectList compiles the projection.
func (c *compiler) selectList(cq *cquery, top bool) {
	q := cq.q
	cq.grouped = shape.IsGrouped(q)
	if q.Star {
		c.star(cq, top)
		return
	}
	if cq.grouped {
		cq.group, cq.keyed = &groupCtx{sub: cq.id, keys: q.GroupBy}, cq.keyedGroups()
		c.groups = append(c.groups, cq.group)
		defer func() { c.groups = c.groups[:len(c.groups)-1] }()
	}
	direct := top && !q.Distinct // the rows of the outermost query are written as JSON directly
	if q.Value != nil {
		if direct {
			cq.write = c.writer(q.Value)
			if !cq.grouped && (q.Top != nil || q.Limit != nil || len(q.OrderBy) > 0) {
				cq.defined = c.expr(q.Value).fn
			}
		} else {
			cq.project = c.expr(q.Value).fn
		}
		return
	}
	o := &syntax.ObjectExpr{Keys: shape.ItemNames(q.Items)}
	c.namedOnce(q.Items, o.Keys)
	for _, it := range q.Items {
		o.Vals = append(o.Vals, it.Expr)
	}
	o.Pos = q.SelectSpan
	if direct {
		cq.write = c.objectWriter(o)
	} else {
		cq.project = c.object(o).fn
	}
}

// namedOnce refuses a select list that has a name twice.
func (c *compiler) namedOnce(items []syntax.SelectItem, names []string) {
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		if seen[name] {
			c.failIn(items[i].Named, syntax.CodeMember, "Object creation error, property name '%s' specified more "+
				"than once.", syntax.Clip(name))
			return
		}
		seen[name] = true
	}
}

// star compiles SELECT *, the value of the only source.
func (c *compiler) star(cq *cquery, top bool) {
	q := cq.q
	at := q.SelectSpan
	switch {
	case q.From == nil:
		c.failIn(at, syntax.CodeStarNoFrom, "'SELECT *' is not valid if FROM clause is omitted.")
	case len(q.GroupBy) > 0:
		c.failIn(at, syntax.CodeStarGroup, "'SELECT *' is not allowed with GROUP BY.")
	case len(q.From.Sources) > 1:
		c.failIn(at, syntax.CodeStarJoin, "'SELECT *' is only valid with a single input set.")
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

// count compiles the number of TOP, OFFSET or LIMIT.
func (c *compiler) count(n *syntax.Count, clause string) func(f *frame) int64 {
	if n == nil {
		return nil
	}
	if n.Param == "" {
		return func(*frame) int64 { return n.N }
	}
	i := c.param(n.Param)
	return func(f *frame) int64 {
		k, ok := funcs.ToInt(f.params[i])
		if !ok || !f.params[i].IsNumber() || k < 0 || int64(k) > syntax.MaxCount {
			f.fail(syntax.PlainError("The value of %s must be a whole number from 0 to %d.", clause,
				int64(math.MaxUint32)))
			return 0
		}
		return int64(k)
	}
}

// emit applies DISTINCT, OFFSET and LIMIT to a result. A DISTINCT whose rows don't fit into memory collects them until
// finishDistinct.
func (cq *cquery) emit(f *frame, v value.Value, sink func(f *frame, v value.Value) bool) bool {
	st := &f.subs[cq.id]
	if cq.isValue && !v.IsDefined() {
		return f.err == nil
	}
	if cq.q.Distinct {
		if st.seen == nil {
			st.seen = cq.newDistinct(f)
		}
		if !st.seen.add(f, v, funcs.Hash(v)) {
			return f.err == nil
		}
		v = funcs.One(v)
	}
	return cq.pass(f, v, sink)
}

// pass applies OFFSET and LIMIT to a result.
func (cq *cquery) pass(f *frame, v value.Value, sink func(f *frame, v value.Value) bool) bool {
	st := &f.subs[cq.id]
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
	for _, a := range cq.group.aggs { // before find: a sub-query can make the groups be written to a file
		v := a.arg(f)
		f.args = append(f.args, v)
	}
	n := base + len(cq.keys)
	g := st.groups.find(f.args[base:n], len(cq.group.aggs))
	for i, a := range cq.group.aggs {
		s := &g.aggs[i]
		held := s.Held()
		a.fn.AddTimes(s, f.args[n+i], int64(1+f.more))
		if st.groups.size += s.Held() - held; s.Full() {
			f.fail(a.fn.Overflow())
		}
	}
	f.args = f.args[:base]
	st.groups.charge(f)
	return f.err == nil
}

// gatherSorted adds a row of a sub-query with ORDER BY to the rows to sort.
func (cq *cquery) gatherSorted(f *frame) bool {
	st := &f.subs[cq.id]
	r := sortedRow{keys: make([]value.Value, len(cq.order)), at: st.gathered}
	st.gathered++
	for i, k := range cq.order {
		r.keys[i] = k(f)
	}
	if cq.passed(st, &r) {
		return f.step()
	}
	if r.val = cq.project(f); cq.isValue && !r.val.IsDefined() { // an undefined value is no row
		return f.step()
	}
	r.val = r.val.Clone()
	for i := range r.keys {
		r.keys[i] = r.keys[i].Clone()
	}
	f.hold(st, r.size())
	cq.keep(f, st, r)
	return f.step()
}

// finish passes the groups, or the sorted rows of a sub-query, to sink. It returns false when no further row is wanted.
// A query with aggregates but without GROUP BY has one group, even when there are no rows.
func (cq *cquery) finish(f *frame, sink func(f *frame, v value.Value) bool) bool {
	st := &f.subs[cq.id]
	switch {
	case cq.grouped && st.groups.files:
		rows, err := cq.groupRows(f)
		return passAll(f, st, rows, err, func(g *group) bool {
			st.group = g
			return cq.emit(f, cq.project(f), sink)
		})
	case cq.grouped:
		return cq.finishGroups(f, sink)
	}
	return cq.finishSorted(f, sink)
}

// finishDistinct passes the rows that a DISTINCT has collected to sink.
func (cq *cquery) finishDistinct(f *frame, sink func(f *frame, v value.Value) bool) {
	st := &f.subs[cq.id]
	rows, err := st.seen.rest(f)
	passAll(f, st, rows, err, func(r *distinctRow) bool { return cq.pass(f, funcs.One(r.val), sink) })
}

// passAll calls pass for all groups or rows. pass returns false to end it, and passAll returns false then.
func passAll[S any](f *frame, st *subState, rows *gathered[S], err error, pass func(*S) bool) bool {
	if err != nil {
		f.fail(err)
		return false
	}
	st.ready = rows
	defer func() {
		rows.Close()
		st.ready = nil
		f.spills() // the rows had their own function
	}()
	for {
		g, err := rows.peek()
		if err != nil {
			f.fail(err)
		}
		if g == nil || err != nil {
			return err == nil
		}
		if rows.next(); !pass(&g.State) {
			return false
		}
	}
}

// finishGroups is finish for groups that are only in memory.
func (cq *cquery) finishGroups(f *frame, sink func(f *frame, v value.Value) bool) bool {
	st := &f.subs[cq.id]
	cq.oneGroup(st)
	if cq.holdOrder(f); f.err != nil {
		return false
	}
	for _, g := range cq.sortGroups(f) {
		st.group = &g.State
		if !cq.emit(f, cq.project(f), sink) {
			return false
		}
	}
	return true
}

func (cq *cquery) finishSorted(f *frame, sink func(f *frame, v value.Value) bool) bool {
	st := &f.subs[cq.id]
	if r := st.rowRuns; r != nil && (r.runs != nil || st.held > budget.Floor/2) { // others may need the memory now
		return cq.finishWritten(f, sink)
	}
	st.rowRuns = nil
	sort.Slice(st.sorted, f.checked(func(i, j int) bool { return cq.rowBefore(&st.sorted[i], &st.sorted[j]) }))
	if f.err != nil {
		return false
	}
	for _, r := range st.sorted {
		if !cq.emit(f, r.val, sink) {
			return false
		}
	}
	return true
}

// holdOrder charges the memory that sorting the groups needs.
func (cq *cquery) holdOrder(f *frame) {
	st := &f.subs[cq.id]
	if n := len(st.groups.List()); len(cq.order) > 0 && n > 1 {
		f.hold(st, n*(3*funcs.PointerSize+len(cq.order)*funcs.ValueSize))
	}
}

// sortGroups returns the groups in memory in the order of ORDER BY, or without one in the order of their first rows.
// holdOrder must be called before.
func (cq *cquery) sortGroups(f *frame) []*spill.Group[group] {
	st := &f.subs[cq.id]
	list := st.groups.List()
	if len(cq.order) == 0 || len(list) < 2 {
		return list
	}
	keys := make([][]value.Value, len(list)) // sort keys of list[i]; sorted together with list
	for n, g := range list {
		if n&4095 == 4095 {
			f.cancelled()
		}
		st.group = &g.State
		keys[n] = make([]value.Value, len(cq.order))
		for i, k := range cq.order {
			keys[n][i] = k(f)
		}
	}
	sort.Stable(&groupSort{cq, f.checked(func(i, j int) bool { return cq.before(keys[i], keys[j]) }), list, keys})
	if f.err != nil {
		return nil
	}
	return list
}

// groupSort sorts groups by their keys.
type groupSort struct {
	cq   *cquery
	less func(i, j int) bool
	list []*spill.Group[group]
	keys [][]value.Value
}

func (s *groupSort) Len() int           { return len(s.list) }
func (s *groupSort) Less(i, j int) bool { return s.less(i, j) }
func (s *groupSort) Swap(i, j int) {
	s.list[i], s.list[j] = s.list[j], s.list[i]
	s.keys[i], s.keys[j] = s.keys[j], s.keys[i]
}

// before reports whether sort keys a come before b in the order of ORDER BY.
func (cq *cquery) before(a, b []value.Value) bool {
	for k := range cq.order {
		if d := value.CompareCosmos(a[k], b[k]); d != 0 {
			return (d < 0) != cq.q.OrderBy[k].Desc
		}
	}
	return false
}

// oneGroup makes the only group of an aggregate query without GROUP BY, if it has read no row.
func (cq *cquery) oneGroup(st *subState) {
	if len(cq.q.GroupBy) == 0 && st.groups.Found() == 0 {
		st.groups.find(nil, len(cq.group.aggs))
	}
}
