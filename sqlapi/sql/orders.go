package sql

import (
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

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

func isDistance(e *Call) bool {
	return !e.UDF && len(e.Args) == 2 && strings.EqualFold(e.Name, "ST_DISTANCE")
}
