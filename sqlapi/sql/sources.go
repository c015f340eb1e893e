package sql

import (
	"strconv"
)

// streams reports whether a sub-query that stands for the container gives the rows of each item by that item alone.
func streams(q *Query) bool {
	if isGrouped(q) || q.Distinct || len(q.OrderBy) > 0 || q.Top != nil || q.Limit != nil {
		return false
	}
	inner := containerQuery(q)
	return inner == nil || streams(inner)
}

// containerQuery returns the sub-query that is the first source of q, nil when there is none.
func containerQuery(q *Query) *Query {
	if q.From == nil {
		return nil
	}
	return q.From.Sources[0].Query
}

// itemNames gives each select item its name: the alias, the last property of a path, or $1, $2, .. for the others.
func itemNames(items []SelectItem) []string {
	names := make([]string, len(items))
	n := 0
	for i, it := range items {
		names[i] = it.Alias
		if names[i] == "" {
			names[i] = derivedName(it.Expr)
		}
		if names[i] == "" {
			n++
			names[i] = "$" + strconv.Itoa(n)
		}
	}
	return names
}

// distinctOrdered reports whether equal rows come next to each other: the order is first of all by what is selected.
func distinctOrdered(q *Query) bool {
	if len(q.OrderBy) == 0 || q.Star || isGrouped(q) {
		return false
	}
	sel := []Expr{q.Value}
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
			if sameExpr(e, o.Expr) {
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
