package shape

import (
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// VectorOrder returns the call of VectorDistance when it is the only ORDER BY expression of q, else nil. In such an
// order the most similar items come first, whatever direction is written. Items without a distance come last.
func VectorOrder(q *syntax.Query) *syntax.Call {
	if len(q.OrderBy) == 1 {
		call, ok := q.OrderBy[0].Expr.(*syntax.Call)
		if ok && !call.UDF && strings.EqualFold(call.Name, "VectorDistance") {
			return call
		}
	}
	return nil
}

// PlaceOrder reports whether ST_DISTANCE is the only ORDER BY expression of q. VectorDistance and ST_DISTANCE are the
// only function calls that the service orders by. Items without a distance come first, like items without a value in an
// order by a path.
func PlaceOrder(q *syntax.Query) bool {
	if len(q.OrderBy) != 1 {
		return false
	}
	call, ok := q.OrderBy[0].Expr.(*syntax.Call)
	return ok && IsDistance(call)
}

// Euclidean reports whether a call of VectorDistance computes a distance (a smaller number is nearer) and not a
// similarity (a greater number is nearer). It only looks at options that are written as a constant in the call.
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
