package shape

import (
	"strconv"

	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Streams reports whether the rows of a sub-query over the container depend on one item each. If it does, partitions
// can run the sub-query independently.
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

// ItemNames returns the name of each select item: its alias, the last property of its path, or else $1, $2, ..
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

// DistinctOrdered reports whether ORDER BY puts equal rows next to each other: its first expressions are the selected
// ones.
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
