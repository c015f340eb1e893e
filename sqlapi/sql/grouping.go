package sql

import (
	"slices"
	"strings"
)

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

func selected(q *Query) []Expr {
	if q.Value != nil {
		return []Expr{q.Value}
	}
	es := make([]Expr, len(q.Items))
	for i := range q.Items {
		es[i] = q.Items[i].Expr
	}
	return es
}

func hasAggregates(q *Query) bool { return slices.ContainsFunc(selected(q), hasAggregate) }

// eachAggregate calls f for the aggregates of a select list, names in upper case.
func eachAggregate(q *Query, f func(name string, arg Expr)) {
	var walk func(e Expr)
	walk = func(e Expr) {
		if call, ok := e.(*Call); ok && !call.UDF && aggregateOf(call.Name) != nil && len(call.Args) == 1 {
			f(strings.ToUpper(call.Name), call.Args[0])
			return
		}
		children(e, walk)
	}
	for _, e := range selected(q) {
		walk(e)
	}
}
