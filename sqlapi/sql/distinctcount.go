package sql

import "strings"

// distinctCount recognises SELECT [VALUE] COUNT(1) [AS a] FROM (SELECT DISTINCT ..): clients that know DCount run the
// inner query over the partitions and count its distinct rows. alias is "" for SELECT VALUE.
func distinctCount(q *Query) (inner *Query, alias string, ok bool) {
	inner = containerQuery(q)
	plain := func(q *Query) bool { return len(q.OrderBy) == 0 && q.Top == nil && q.Limit == nil && !q.Rank }
	if inner == nil || len(q.From.Sources) > 1 || q.From.Sources[0].In || q.Where != nil || len(q.GroupBy) > 0 ||
		q.Distinct || q.Star || !plain(q) {
		return nil, "", false
	}
	if deeper := containerQuery(inner); !inner.Distinct || isGrouped(inner) || !plain(inner) || deeper != nil &&
		!streams(deeper) {
		return nil, "", false
	}
	e := q.Value
	if e == nil {
		if len(q.Items) != 1 {
			return nil, "", false
		}
		e, alias = q.Items[0].Expr, itemNames(q.Items)[0]
	}
	call, isCall := e.(*Call)
	if !isCall || call.UDF || !strings.EqualFold(call.Name, "COUNT") {
		return nil, "", false
	}
	switch x := call.Args[0].(type) {
	case *Lit:
		ok = x.Val.IsDefined()
	case *Ident:
		ok = x.Name == q.From.Sources[0].Alias
	}
	return inner, alias, ok
}
