package shape

import (
	"strconv"

	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Streams reports whether a sub-query that stands for the container gives the rows of each item by that item alone.
func Streams(q *syntax.Query) bool {
	if IsGrouped(q) || q.Distinct || len(q.OrderBy) > 0 || q.Top != nil || q.Limit != nil {
		return false
	}
	inner := ContainerQuery(q)
	return inner == nil || Streams(inner)
}

// ContainerQuery returns the sub-query that is the first source of q, nil when there is none.
func ContainerQuery(q *syntax.Query) *syntax.Query {
	if q.From == nil {
		return nil
	}
	return q.From.Sources[0].Query
}

// ItemNames gives each select item its name: the alias, the last property of a path, or $1, $2, .. for the others.
func ItemNames(items []syntax.SelectItem) []string {
	names := make([]string, len(items))
	n := 0
	for i, it := range items {
		names[i] = it.Alias
		if names[i] == "" {
			names[i] = syntax.DerivedName(it.Expr)
		}
		if names[i] == "" {
			n++
			names[i] = "$" + strconv.Itoa(n)
		}
	}
	return names
}

// DistinctOrdered reports whether equal rows come next to each other: the order is first of all by what is selected.
func DistinctOrdered(q *syntax.Query) bool {
	if len(q.OrderBy) == 0 || q.Star || IsGrouped(q) {
		return false
	}
	sel := []syntax.Expr{q.Value}
	if q.Value == nil {
		sel = sel[:0]
		for _, it := range q.Items {
			sel = append(sel, it.Expr)
		}
	}
	left := len(sel)
	selected := make([]bool, len(sel))
	for _, o := range q.OrderBy {
		found := false
		for i, e := range sel {
			if Same(e, o.Expr) {
				if found = true; !selected[i] {
					selected[i] = true
					left--
				}
			}
		}
		if left == 0 {
			return true
		}
		if !found {
			return false
		}
	}
	return false
}
