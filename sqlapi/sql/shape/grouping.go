package shape

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// IsGrouped reports whether q has GROUP BY or an aggregate in its select list.
func IsGrouped(q *syntax.Query) bool {
	if len(q.GroupBy) > 0 || HasAggregate(q.Value) {
		return true
	}
	for _, it := range q.Items {
		if HasAggregate(it.Expr) {
			return true
		}
	}
	return false
}

// HasAggregate reports whether e calls an aggregate. Aggregates inside sub-queries don't count.
func HasAggregate(e syntax.Expr) bool {
	if e == nil {
		return false
	}
	if call, ok := e.(*syntax.Call); ok && !call.UDF && funcs.AggregateOf(call.Name) != nil {
		return true
	}
	found := false
	syntax.Children(e, func(x syntax.Expr) { found = found || HasAggregate(x) })
	return found
}

// Selected returns the expressions of a select list; none for SELECT *.
func Selected(q *syntax.Query) []syntax.Expr {
	if q.Value != nil {
		return []syntax.Expr{q.Value}
	}
	es := make([]syntax.Expr, len(q.Items))
	for i := range q.Items {
		es[i] = q.Items[i].Expr
	}
	return es
}

// HasAggregates reports whether a select list calls an aggregate.
func HasAggregates(q *syntax.Query) bool { return slices.ContainsFunc(Selected(q), HasAggregate) }

// EachAggregate calls f for each aggregate of a select list. Names are in upper case.
func EachAggregate(q *syntax.Query, f func(name string, arg syntax.Expr)) {
	var walk func(e syntax.Expr)
	walk = func(e syntax.Expr) {
		if call, ok := e.(*syntax.Call); ok && !call.UDF && funcs.AggregateOf(call.Name) != nil && len(call.Args) == 1 {
			f(strings.ToUpper(call.Name), call.Args[0])
			return
		}
		syntax.Children(e, walk)
	}
	for _, e := range Selected(q) {
		walk(e)
	}
}
