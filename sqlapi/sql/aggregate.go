package sql

import (
	"strings"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/func"
)

// aggregateFunc is one aggregate: how a value is added to a state and what a state gives. plan is its name in a query
// plan.
type aggregateFunc struct {
	name, plan string
	add        func(s *aggState, v value.Value)
	result     func(s *aggState) value.Value
	join       func(s, t *aggState) // adds to s the state t of later rows, which was stored
	times      times
}

// times says what more rows with one value do to an aggregate.
type times uint8

const (
	timesAdd     times = iota // each counts like the first
	timesCount                // only their number counts
	timesNothing              // they change nothing
)

// addTimes adds a value that n rows have; n is 0 where the rows are counted with another value.
func (a *aggregateFunc) addTimes(s *aggState, v value.Value, n int64) {
	switch {
	case a.times == timesNothing:
		a.add(s, v)
	case a.times == timesCount:
		if v.IsDefined() {
			s.count += n
		}
	default:
		for ; n > 0 && !s.over; n-- {
			a.add(s, v)
		}
	}
}

// aggState is the state of one aggregate in one group.
type aggState struct {
	count int64
	sum   float64
	bad   bool // an argument of a wrong type: the result is undefined
	over  bool // a list has reached its limit
	best  value.Value
	list  funcs.Builder
	// list as it was stored, when it is empty itself
	packed value.Value
	set    *distinctSet
	size   int
}

// maxList bounds the bytes that one MAKELIST or MAKESET gathers; a query that needs more is refused.
const maxList = 4 << 20

// held is how many bytes the state keeps of the values that it has seen.
func (s *aggState) held() int { return s.size + len(s.best.Bytes()) }

var aggregates = map[string]*aggregateFunc{}

func init() {
	for _, a := range []*aggregateFunc{
		{name: "COUNT", plan: "Count", times: timesCount, join: joinCounts, add: func(s *aggState, v value.Value) {
			if v.IsDefined() {
				s.count++
			}
		}, result: func(s *aggState) value.Value { return value.IntOf(s.count) }},
		{name: "COUNTIF", plan: "CountIf", join: joinCounts, add: func(s *aggState, v value.Value) {
			if isTrue(v) {
				s.count++
			}
		}, result: func(s *aggState) value.Value { return value.IntOf(s.count) }},
		{name: "SUM", plan: "Sum", add: addNumber, join: joinSums, result: func(s *aggState) value.Value {
			if s.bad {
				return value.Value{}
			}
			return funcs.Num(s.sum)
		}},
		{name: "AVG", plan: "Average", add: addNumber, join: joinSums, result: func(s *aggState) value.Value {
			if s.bad || s.count == 0 {
				return value.Value{}
			}
			return funcs.Num(s.sum / float64(s.count))
		}},
		{name: "MIN", plan: "Min", times: timesNothing, join: joinBest(-1), add: func(s *aggState, v value.Value) {
			s.extreme(v, -1)
		}, result: (*aggState).extremeResult},
		{name: "MAX", plan: "Max", times: timesNothing, join: joinBest(1), add: func(s *aggState, v value.Value) {
			s.extreme(v, 1)
		}, result: (*aggState).extremeResult},
		{name: "MAKELIST", plan: "MakeList", add: addToList, join: joinLists(addToList),
			result: (*aggState).listResult},
		{name: "MAKESET", plan: "MakeSet", times: timesNothing, add: addToSet, join: joinLists(addToSet),
			result: (*aggState).listResult},
	} {
		aggregates[a.name] = a
	}
}

func aggregateOf(name string) *aggregateFunc { return aggregates[strings.ToUpper(name)] }

// addToList is MAKELIST.
func addToList(s *aggState, v value.Value) {
	if s.over = s.over || s.size+len(v.Bytes()) > maxList; s.over {
		return
	}
	s.size += len(v.Bytes()) + 16
	s.list.Elem(v)
}

// addToSet is MAKESET.
func addToSet(s *aggState, v value.Value) {
	if s.set == nil {
		s.set = newDistinctSet()
	}
	if s.over = s.over || s.size+len(v.Bytes()) > maxList; s.over || !v.IsDefined() || !s.set.add(v) {
		return
	}
	s.size += 2*len(v.Bytes()) + 64
	s.list.Elem(funcs.One(v))
}

// errOverList refuses a list that is too long.
func errOverList(fn *aggregateFunc) error {
	return status.New(status.BadRequest, "A %s of the query is larger than %d bytes.", fn.name, maxList)
}

// addNumber is SUM and AVG: undefined is skipped, any other non-number spoils the result.
func addNumber(s *aggState, v value.Value) {
	switch {
	case !v.IsDefined():
	case !v.IsNumber():
		s.bad = true
	default:
		s.sum += v.Float()
		s.count++
	}
}

// extreme is MIN and MAX: the type order decides between types; arrays and objects spoil the result.
func (s *aggState) extreme(v value.Value, sign int) {
	switch v.Kind() {
	case value.Undefined:
		return
	case value.Array, value.Object:
		s.bad = true
		return
	}
	if s.count == 0 || value.CompareCosmos(v, s.best)*sign > 0 {
		s.best = funcs.One(v).Clone()
	}
	s.count++
}

func (s *aggState) extremeResult() value.Value {
	if s.bad {
		return value.Value{}
	}
	return s.best
}

// listResult may be asked for more than once, so the list is kept as a value.
func (s *aggState) listResult() value.Value {
	if s.bad {
		return value.Value{}
	}
	if s.packed.IsDefined() {
		return s.packed
	}
	if !s.best.IsDefined() {
		s.best = s.list.Array()
	}
	return s.best
}

// aggSpec is one aggregate call of a query.
type aggSpec struct {
	fn  *aggregateFunc
	arg evalFn
}

// groupCtx is a grouped query whose select list is being compiled.
type groupCtx struct {
	sub   int // number of the query
	keys  []Expr
	aggs  []*aggSpec
	inAgg bool // inside the argument of an aggregate: the query's aliases may be read
}

// hasAggregate reports whether e calls an aggregate of its own query.
func hasAggregate(e Expr) bool {
	if e == nil {
		return false
	}
	if call, ok := e.(*Call); ok && !call.UDF && aggregateOf(call.Name) != nil {
		return true
	}
	found := false
	children(e, func(x Expr) { found = found || hasAggregate(x) })
	return found
}

// isGrouped reports whether q has groups: GROUP BY or an aggregate in its select list.
func isGrouped(q *Query) bool {
	if len(q.GroupBy) > 0 || hasAggregate(q.Value) {
		return true
	}
	for _, it := range q.Items {
		if hasAggregate(it.Expr) {
			return true
		}
	}
	return false
}

// aggregate compiles an aggregate call: its argument feeds the group's state, the call reads the result.
func (c *compiler) aggregate(e *Call, agg *aggregateFunc) cexpr {
	n := len(c.groups)
	if n == 0 || c.noAgg {
		c.failAt(e, codeAggregateHere, "Aggregate function '%s' may not appear here.", agg.name)
		return konst(value.Value{})
	}
	g := c.groups[n-1]
	if g.inAgg {
		c.failAt(e, codeNestedAgg, "Cannot perform an aggregate function on an expression containing an aggregate "+
			"or a subquery.")
		return konst(value.Value{})
	}
	if len(e.Args) != 1 {
		c.failAt(e, codeArity, "The %s function requires 1 argument(s).", agg.name)
		return konst(value.Value{})
	}
	g.inAgg = true
	arg := c.expr(e.Args[0])
	g.inAgg = false
	i, sub := len(g.aggs), g.sub
	g.aggs = append(g.aggs, &aggSpec{fn: agg, arg: arg.fn})
	return cexpr{fn: func(f *frame) value.Value { return agg.result(&f.subs[sub].group.aggs[i]) }}
}

// groupKey compiles e as a read of a group key when it is one of the GROUP BY expressions of an enclosing grouped
// query.
func (c *compiler) groupKey(e Expr) (cexpr, bool) {
	for n := len(c.groups) - 1; n >= 0; n-- {
		g := c.groups[n]
		if g.inAgg {
			continue
		}
		for i, k := range g.keys {
			if sameExpr(e, k) {
				sub := g.sub
				return cexpr{fn: func(f *frame) value.Value { return f.subs[sub].group.keys[i] }}, true
			}
		}
	}
	return cexpr{}, false
}

// insideGroupKey reports whether a proper part of the path e is a group key, so that the path must be read step by
// step.
func (c *compiler) insideGroupKey(e Expr) bool {
	if len(c.groups) == 0 {
		return false
	}
	for {
		switch x := e.(type) {
		case *Prop:
			e = x.Base
		case *Index:
			e = x.Base
		default:
			return false
		}
		if _, ok := c.groupKey(e); ok {
			return true
		}
	}
}

// sameExpr reports whether two expressions are written the same, apart from blanks and quoting.
func sameExpr(a, b Expr) bool {
	if a.depth() != b.depth() {
		return false
	}
	switch x := a.(type) {
	case *Lit:
		y, ok := b.(*Lit)
		return ok && x.Val.Kind() == y.Val.Kind() && value.CompareCosmos(x.Val, y.Val) == 0
	case *ParamRef:
		y, ok := b.(*ParamRef)
		return ok && x.Name == y.Name
	case *Ident:
		y, ok := b.(*Ident)
		return ok && x.Name == y.Name
	case *Prop:
		y, ok := b.(*Prop)
		return ok && x.Name == y.Name && sameExpr(x.Base, y.Base)
	case *SubqueryExpr:
		return false
	}
	return printExpr(a) == printExpr(b)
}

// group is one group of a grouped query: its key, the states of the query's aggregates.
type group struct {
	hash  uint64 // of keys
	at    int64  // which group it is, by its first row
	keys  []value.Value
	order []value.Value // of ORDER BY, when it is sorted in files
	aggs  []aggState
}

// groupSet finds groups by key and keeps them in the order of their first row.
type groupSet struct {
	list []*group
	next int64 // place of the next group
	by   map[uint64][]*group
	size int
	told int
}

// grown is by how much the set has grown since the last call.
func (s *groupSet) grown() int {
	n := s.size - s.told
	s.told = s.size
	return n
}

// find returns the group of the keys; keys are copied when the group is new. Undefined keys form a group of their own.
func (s *groupSet) find(keys []value.Value, aggs int) *group {
	h := uint64(14695981039346656037)
	for _, k := range keys {
		h = (h ^ hashValue(k)) * 1099511628211
	}
next:
	for _, g := range s.by[h] {
		for i := range keys {
			if !sameValue(g.keys[i], keys[i]) {
				continue next
			}
		}
		return g
	}
	g := &group{hash: h, at: s.next, keys: make([]value.Value, len(keys)), aggs: make([]aggState, aggs)}
	for i, k := range keys {
		g.keys[i] = funcs.One(k).Clone()
		s.size += valueSize + bytesOf(k)
	}
	s.size += groupSize + stateSize*aggs
	if s.by == nil {
		s.by = map[uint64][]*group{}
	}
	s.by[h] = append(s.by[h], g)
	s.list = append(s.list, g)
	s.next++
	return g
}

// hashValue and sameValue are the language's equality extended to undefined.
func hashValue(v value.Value) uint64 {
	if !v.IsDefined() {
		return 1
	}
	return value.HashDistinct(funcs.DeepView(v))
}

func sameValue(a, b value.Value) bool {
	if !a.IsDefined() || !b.IsDefined() {
		return a.IsDefined() == b.IsDefined()
	}
	return funcs.Equal(a, b)
}

// distinctSet holds values by the language's equality.
type distinctSet struct {
	by   map[uint64][]value.Value
	size int
	told int
}

// grown is by how much the set has grown since the last call.
func (s *distinctSet) grown() int {
	n := s.size - s.told
	s.told = s.size
	return n
}

func newDistinctSet() *distinctSet { return &distinctSet{by: map[uint64][]value.Value{}} }

func (s *distinctSet) has(v value.Value) bool {
	for _, x := range s.by[hashValue(v)] {
		if sameValue(x, v) {
			return true
		}
	}
	return false
}

// add keeps a copy of v and reports whether it is new.
func (s *distinctSet) add(v value.Value) bool {
	h := hashValue(v)
	for _, x := range s.by[h] {
		if sameValue(x, v) {
			return false
		}
	}
	s.by[h] = append(s.by[h], funcs.DeepView(v).Clone())
	s.size += setEntry + bytesOf(v)
	return true
}
