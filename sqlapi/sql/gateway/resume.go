package gateway

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Resume is where a client has stopped in the order of a rewritten query: the member resumeFilter of a request, by
// which .NET's client goes on after a page. Others write it into the text, in place of FilterPlaceholder.
//
// Example: a query has ORDER BY c.n, c.s DESC and has stopped at the values 2 and "x". Of the partition in which it has
// stopped, and of those whose turn is later, it wants the rows from there on:
//
//	c.n > 2 OR IS_STRING(c.n) OR IS_ARRAY(c.n) OR IS_OBJECT(c.n)
//	OR c.n = 2 AND (c.s < "x" OR IS_NUMBER(c.s) OR .. OR NOT IS_DEFINED(c.s) OR c.s = "x")
//
// Of those that come before, it has had the rows with these values (Exclude). The client itself drops those rows of the
// first page that it has had.
type Resume struct {
	Values  []value.Value // of the expressions of ORDER BY
	Exclude bool          // rows with exactly these values aren't wanted
}

// Text returns the text of a query that gives the rows from r on. The values are literals in it, because continuations
// are bound to parameters, and not to the filter of a rewritten query.
func (r *Resume) Text(q *syntax.Query) (string, error) {
	if len(q.OrderBy) == 0 || len(q.OrderBy) != len(r.Values) {
		return "", syntax.PlainError("The resume filter has %d values, and the query is in the order of %d.",
			len(r.Values), len(q.OrderBy))
	}
	resumed := *q
	filter := r.from(q.OrderBy, r.Values)
	if resumed.Where = filter; q.Where != nil {
		resumed.Where = &syntax.Chain{Op: "AND", Xs: []syntax.Expr{q.Where, filter}}
	}
	return syntax.PrintQuery(&resumed), nil
}

// from returns the condition for the rows whose values are behind the given ones, or are these and wanted.
func (r *Resume) from(order []syntax.OrderItem, vals []value.Value) syntax.Expr {
	path, v := order[0].Expr, vals[0]
	at := &syntax.Lit{Val: v}
	rank := rankOf(v)
	var or []syntax.Expr
	if rank >= rankBool {
		op := ">"
		if order[0].Desc {
			op = "<"
		}
		or = append(or, &syntax.Binary{Op: op, L: path, R: at})
	}
	for other := range is {
		if other > rank != order[0].Desc && other != rank {
			or = append(or, ofRank(path, other))
		}
	}
	same := ofRank(path, rank)
	if rank >= rankBool {
		same = &syntax.Binary{Op: "=", L: path, R: at}
	}
	switch {
	case len(order) > 1:
		or = append(or, &syntax.Chain{Op: "AND", Xs: []syntax.Expr{same, r.from(order[1:], vals[1:])}})
	case !r.Exclude:
		or = append(or, same)
	}
	switch len(or) {
	case 0:
		return &syntax.Lit{Val: value.BoolOf(false)}
	case 1:
		return or[0]
	}
	return &syntax.Chain{Op: "OR", Xs: or}
}

// The types of values in their order.
const (
	rankUndefined = iota
	rankNull
	rankBool
	rankNumber
	rankString
)

// is has the functions that tell whether a value is of a type, in the order of types.
var is = [...]string{"IS_DEFINED", "IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT"}

func ofRank(path syntax.Expr, rank int) syntax.Expr {
	call := &syntax.Call{Name: is[rank], Args: []syntax.Expr{path}}
	if rank == rankUndefined {
		return &syntax.Unary{Op: "NOT", X: call}
	}
	return call
}

func rankOf(v value.Value) int {
	switch {
	case !v.IsDefined():
		return rankUndefined
	case v.Kind() == value.Null:
		return rankNull
	case v.IsNumber():
		return rankNumber
	case v.Kind() == value.String:
		return rankString
	}
	return rankBool
}
