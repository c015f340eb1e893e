package shape

import (
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// VectorOrder returns the call when q is ordered by VectorDistance alone: the most similar come first, whatever
// direction is written, and items without a distance last.
func VectorOrder(q *syntax.Query) *syntax.Call {
	if len(q.OrderBy) == 1 {
		call, ok := q.OrderBy[0].Expr.(*syntax.Call)
		if ok && !call.UDF && strings.EqualFold(call.Name, "VectorDistance") {
			return call
		}
	}
	return nil
}

// PlaceOrder reports whether q is ordered by ST_DISTANCE alone: the only other expression that the service orders by.
// Items without a distance come first, as those without a value do.
func PlaceOrder(q *syntax.Query) bool {
	if len(q.OrderBy) != 1 {
		return false
	}
	call, ok := q.OrderBy[0].Expr.(*syntax.Call)
	return ok && IsDistance(call)
}

// Euclidean reports whether a call of VectorDistance measures a distance, of which less is nearer, and not a
// similarity. Only written options count.
func Euclidean(call *syntax.Call) bool {
	if len(call.Args) < 4 {
		return false
	}
	if o, ok := call.Args[3].(*syntax.ObjectExpr); ok {
		for i, k := range o.Keys {
			if lit, ok := o.Vals[i].(*syntax.Lit); ok && k == "distanceFunction" && lit.Val.Kind() == value.String {
				return strings.EqualFold(lit.Val.Str(), "euclidean")
			}
		}
	}
	return false
}

// IsDistance reports whether e is ST_DISTANCE of two geometries.
func IsDistance(e *syntax.Call) bool {
	return !e.UDF && len(e.Args) == 2 && strings.EqualFold(e.Name, "ST_DISTANCE")
}
