package sql

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// aggSpec is one aggregate call of a query.
type aggSpec struct {
	fn  *funcs.Aggregate
	arg evalFn
	of  *syntax.Call
}

// groupCtx is a grouped query whose select list is being compiled.
type groupCtx struct {
	sub   int // number of the query
	keys  []syntax.Expr
	aggs  []*aggSpec
	inAgg bool // inside the argument of an aggregate, where the query's aliases may be read
}

// aggregate compiles a call of an aggregate. The argument is evaluated for each row and added to the group's state. The
// call itself reads the result of the state.
func (c *compiler) aggregate(e *syntax.Call, agg *funcs.Aggregate) cexpr {
	n := len(c.groups)
	if n == 0 || c.noAgg {
		c.failAt(e, syntax.CodeAggregateHere, "Aggregate function '%s' may not appear here.", agg.Name)
		return konst(value.Value{})
	}
	g := c.groups[n-1]
	if g.inAgg {
		c.failAt(e, syntax.CodeNestedAgg, "Cannot perform an aggregate function on an expression containing an "+
			"aggregate or a subquery.")
		return konst(value.Value{})
	}
	if len(e.Args) != 1 {
		c.failAt(e, syntax.CodeArity, "The %s function requires 1 argument(s).", agg.Name)
		return konst(value.Value{})
	}
	g.inAgg = true
	arg := c.expr(e.Args[0])
	g.inAgg = false
	i, sub := len(g.aggs), g.sub
	g.aggs = append(g.aggs, &aggSpec{fn: agg, arg: arg.fn, of: e})
	return cexpr{fn: func(f *frame) value.Value { return agg.Result(&f.subs[sub].group.aggs[i]) }}
}

// groupKey compiles e as a read of a group key, when e is a GROUP BY expression of an enclosing grouped query.
func (c *compiler) groupKey(e syntax.Expr) (cexpr, bool) {
	for n := len(c.groups) - 1; n >= 0; n-- {
		g := c.groups[n]
		if g.inAgg {
			continue
		}
		for i, k := range g.keys {
			if shape.Same(e, k) {
				sub := g.sub
				return cexpr{fn: func(f *frame) value.Value { return f.subs[sub].group.keys[i] }}, true
			}
		}
	}
	return cexpr{}, false
}

// insideGroupKey reports whether a proper prefix of the path e is a group key. Such a path must be read step by step.
func (c *compiler) insideGroupKey(e syntax.Expr) bool {
	if len(c.groups) == 0 {
		return false
	}
	for {
		switch x := e.(type) {
		case *syntax.Prop:
			e = x.Base
		case *syntax.Index:
			e = x.Base
		default:
			return false
		}
		if _, ok := c.groupKey(e); ok {
			return true
		}
	}
}

// group is one group of a grouped query: its keys and the states of the query's aggregates.
type group struct {
	keys  []value.Value
	order []value.Value // values of ORDER BY, set when groups are sorted in files
	aggs  []funcs.State
}

// groupSet is the groups of a query.
type groupSet struct{ set[group] }

// newGroups returns an empty set of groups.
func (cq *cquery) newGroups(f *frame) *groupSet { return &groupSet{newSet(f, cq.keyed, cq.once)} }

// find returns the group with the given keys, and makes it when there is none. A new group has copies of the keys.
// Undefined is a key like any other value.
func (s *groupSet) find(keys []value.Value, aggs int) *group {
	h := hashKeys(keys)
next:
	for g := s.Find(h); g != nil; g = g.Next() {
		for i := range keys {
			if !funcs.Same(g.State.keys[i], keys[i]) {
				continue next
			}
		}
		return &g.State
	}
	g := &s.Add(h).State
	g.keys, g.aggs = make([]value.Value, len(keys)), make([]funcs.State, aggs)
	for i, k := range keys {
		g.keys[i] = funcs.One(k).Clone()
		s.size += funcs.ValueSize + funcs.BytesOf(k)
	}
	s.size += groupSize + funcs.StateSize*aggs
	return g
}

func hashKeys(keys []value.Value) uint64 {
	h := uint64(14695981039346656037)
	for _, k := range keys {
		h = (h ^ funcs.Hash(k)) * 1099511628211
	}
	return h
}
