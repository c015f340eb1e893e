package shape

import (
	"strings"

	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// DistinctCount recognises SELECT [VALUE] COUNT(1) [AS a] FROM (SELECT DISTINCT ..). Clients that support the DCount
// feature run the inner query on each partition and count the distinct rows themselves. alias is the name a; it is ""
// for SELECT VALUE.
func DistinctCount(q *syntax.Query) (inner *syntax.Query, alias string, ok bool) {
	inner = ContainerQuery(q)
	plain := func(q *syntax.Query) bool { return len(q.OrderBy) == 0 && q.Top == nil && q.Limit == nil && !q.Rank }
	if inner == nil || len(q.From.Sources) > 1 || q.From.Sources[0].In || q.Where != nil || len(q.GroupBy) > 0 ||
		q.Distinct || q.Star || !plain(q) {
		return nil, "", false
	}
	if deeper := ContainerQuery(inner); !inner.Distinct || IsGrouped(inner) || !plain(inner) || deeper != nil &&
		!Streams(deeper) {
		return nil, "", false
	}
	e := q.Value
	if e == nil {
		if len(q.Items) != 1 {
			return nil, "", false
		}
		e, alias = q.Items[0].Expr, ItemNames(q.Items)[0]
	}
	call, isCall := e.(*syntax.Call)
	if !isCall || call.UDF || !strings.EqualFold(call.Name, "COUNT") {
		return nil, "", false
	}
	switch x := call.Args[0].(type) {
	case *syntax.Lit:
		ok = x.Val.IsDefined()
	case *syntax.Ident:
		ok = x.Name == q.From.Sources[0].Alias
	}
	return inner, alias, ok
}
