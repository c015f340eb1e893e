// Package gateway makes the query plans that SDKs ask the service's gateway for: how a client runs a query over several
// partitions, and what it asks each of them.
package gateway

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// FilterPlaceholder stands in a rewritten ORDER BY query where the client puts its resume filter, or true.
const FilterPlaceholder = "{documentdb-formattableorderbyquery-filter}"

// queryInfo is what a client must do with the rows of the partitions; the fields are those of the service's plan.
type queryInfo struct {
	distinctType       string
	top, offset, limit int64 // -1 = null
	orderBy            []string
	orderByExpressions []string
	groupBy            []string
	groupByAliases     []string
	aggregates         []string
	aliasToAggregate   []aliasType
	rewritten          string
	hasSelectValue     bool
	nonStreaming       bool    // ORDER BY of vectors
	dCount             *string // the alias of a count of distinct rows, "" for SELECT VALUE
}

// aliasType is one select item of a grouped query: plan is its aggregate, "" for a plain expression.
type aliasType struct{ alias, plan string }

// Request asks how a client runs a query over the partitions.
type Request struct {
	Query *syntax.Query
	// What OFFSET skips, and what TOP or LIMIT gives at most: -1 without limit.
	Offset, Limit int64
	// Where is what items must satisfy for WHERE to be true, as far as an index can tell; nil when nothing is known.
	Where *access.Pred
	Key   core.PartitionKeyDef
	// Bound says that the request names one whole partition key: one partition gives all rows, whatever the filter
	// says. The ranges are the filter's all the same.
	Bound bool
	// Features are those that the client lists; one that the query needs and the client lacks is refused. nil is not
	// checked.
	Features []string
}

// AppendPlan appends the JSON of the plan.
func AppendPlan(dst []byte, r *Request) ([]byte, error) {
	ranges := keyRanges(r.Query, r.Where, r.Key)
	bound := r.Bound || len(ranges) == 1 && ranges[0].Min == ranges[0].Max
	if bound && (onlyWhole(r.Query) || onlyCut(r.Query)) {
		return plainPlan(r.Query).appendJSON(dst, ranges), nil // one partition gives the whole answer
	}
	qi, err := makePlan(r.Query, r.Offset, r.Limit)
	if err != nil {
		return nil, err
	}
	if err := checkFeatures(needs(r.Query), r.Features); err != nil {
		return nil, err
	}
	return qi.appendJSON(dst, ranges), nil
}

// NeedsMerge reports whether the rows that partitions give apart are not the query's answer put one after another:
// ORDER BY, aggregates, GROUP BY, DISTINCT, TOP or OFFSET LIMIT, in the query or in a sub-query that stands for the
// container.
func NeedsMerge(q *syntax.Query) bool { return len(needs(q)) > 0 || onlyWhole(q) }

// onlyWhole reports whether the rows of partitions can't be merged into the query's answer.
func onlyWhole(q *syntax.Query) bool {
	inner := shape.ContainerQuery(q)
	if _, _, ok := shape.DistinctCount(q); ok {
		return false
	}
	return inner != nil && !shape.Streams(inner) || len(q.GroupBy) > 0 && len(q.OrderBy) > 0
}

// onlyCut reports whether OFFSET LIMIT is all that a client would have to do: a single partition does it itself.
func onlyCut(q *syntax.Query) bool {
	return q.Limit != nil && !shape.IsGrouped(q) && !q.Distinct && len(q.OrderBy) == 0
}

// plainPlan is the plan of a query whose rows are the answer as they come.
func plainPlan(q *syntax.Query) *queryInfo {
	return &queryInfo{distinctType: "None", top: -1, offset: -1, limit: -1, hasSelectValue: q.Value != nil}
}

// makePlan works out what the client does and what it asks the partitions. limit is that of TOP or LIMIT.
func makePlan(q *syntax.Query, offset, limit int64) (*queryInfo, error) {
	qi := plainPlan(q)
	if inner, alias, ok := shape.DistinctCount(q); ok {
		qi.distinctType, qi.rewritten, qi.dCount = "Unordered", syntax.PrintQuery(inner), &alias
		return qi, nil
	}
	if q.Top != nil {
		qi.top = limit
	}
	if q.Limit != nil {
		qi.offset, qi.limit = offset, limit
	}
	if q.Distinct {
		qi.distinctType = "Unordered"
		if shape.DistinctOrdered(q) {
			qi.distinctType = "Ordered"
		}
	}
	if onlyWhole(q) {
		if len(q.GroupBy) > 0 && len(q.OrderBy) > 0 {
			return nil, syntax.PlainError("'ORDER BY' is not supported in presence of GROUP BY.")
		}
		return nil, syntax.PlainError("The query can't be planned over several partitions: a sub-query in FROM has " +
			"DISTINCT, aggregates, GROUP BY, ORDER BY, TOP or LIMIT.")
	}
	var err error
	r := *q // the rewritten query
	switch {
	case shape.IsGrouped(q):
		err = rewriteGrouped(q, &r, qi)
	case len(q.OrderBy) > 0:
		err = rewriteOrdered(q, &r, qi)
	case q.Limit == nil && (!q.Distinct || q.Top == nil):
		return qi, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case shape.IsGrouped(q) || q.Distinct:
		r.Top, r.Offset, r.Limit = nil, nil, nil // the client counts
	case q.Limit != nil:
		r.Offset, r.Limit = &syntax.Count{}, &syntax.Count{N: min(offset+limit, syntax.MaxCount)}
	}
	if q.Top != nil && r.Top != nil {
		r.Top = &syntax.Count{N: limit}
	}
	qi.rewritten = strings.Replace(syntax.PrintQuery(&r), "@"+filterMark, "("+FilterPlaceholder+")", 1)
	return qi, nil
}

// filterMark is the parameter that stands for the placeholder until the text is printed.
const filterMark = "__orderByFilter"

// rewriteOrdered asks each partition for the sort keys and the payload, in order, from the client's position on.
func rewriteOrdered(q, r *syntax.Query, qi *queryInfo) error {
	alias := rootAlias(q)
	if alias == "" {
		return syntax.PlainError("An ORDER BY over several partitions needs an alias of the item in FROM.")
	}
	keys := &syntax.ArrayExpr{}
	if qi.nonStreaming = shape.VectorOrder(q) != nil; qi.nonStreaming && q.Top == nil && q.Limit == nil {
		return syntax.PlainError("An ORDER BY of VectorDistance over several partitions needs TOP or LIMIT.")
	}
	for _, o := range q.OrderBy {
		dir := "Ascending"
		if vector := shape.VectorOrder(q); vector != nil && !shape.Euclidean(vector) || vector == nil && o.Desc {
			dir = "Descending"
		}
		qi.orderBy = append(qi.orderBy, dir)
		qi.orderByExpressions = append(qi.orderByExpressions, syntax.Print(o.Expr))
		keys.Elems = append(keys.Elems, itemOf(o.Expr))
	}
	var filter []syntax.Expr
	if q.Where != nil {
		filter = append(filter, q.Where)
	}
	filter = append(filter, &syntax.ParamRef{Name: filterMark})
	if q.Value != nil {
		filter = append(filter, &syntax.Call{Name: "IS_DEFINED", Args: []syntax.Expr{q.Value}})
	}
	r.Where = &syntax.Chain{Op: "AND", Xs: filter}
	r.Distinct, r.Star, r.Value = false, false, nil
	r.Items = []syntax.SelectItem{
		{Expr: &syntax.Prop{Base: &syntax.Ident{Name: alias}, Name: "_rid"}},
		{Expr: keys, Alias: "orderByItems"},
		{Expr: payload(q), Alias: "payload"},
	}
	return nil
}

// rootAlias returns the alias under which the item itself can be named.
func rootAlias(q *syntax.Query) string {
	if q.From == nil {
		return ""
	}
	s := q.From.Sources[0]
	if _, ok := s.Path.(*syntax.Ident); ok && !s.In {
		return s.Alias
	}
	return ""
}

// itemOf wraps a value as {"item": e}.
func itemOf(e syntax.Expr) syntax.Expr {
	return &syntax.ObjectExpr{Keys: []string{"item"}, Vals: []syntax.Expr{e}}
}

// payload is what a row of the original query shows.
func payload(q *syntax.Query) syntax.Expr {
	switch {
	case q.Star:
		return &syntax.Ident{Name: q.From.Sources[0].Alias}
	case q.Value != nil:
		return q.Value
	}
	o := &syntax.ObjectExpr{Keys: shape.ItemNames(q.Items)}
	for _, it := range q.Items {
		o.Vals = append(o.Vals, it.Expr)
	}
	return o
}

// rewriteGrouped asks each partition for partial aggregates, per group where there are groups.
func rewriteGrouped(q, r *syntax.Query, qi *queryInfo) error {
	r.Distinct, r.OrderBy = false, nil
	var group *syntax.ArrayExpr
	if len(q.GroupBy) > 0 {
		group = &syntax.ArrayExpr{}
		for _, k := range q.GroupBy {
			qi.groupBy = append(qi.groupBy, syntax.Print(k))
			group.Elems = append(group.Elems, itemOf(k))
		}
	}
	var out syntax.Expr
	if q.Value != nil {
		part, plan, err := partial(q.Value)
		if err != nil {
			return err
		}
		if plan != "" {
			qi.aggregates = []string{plan}
			out = &syntax.ArrayExpr{Elems: []syntax.Expr{part}}
		} else {
			out = q.Value
		}
		if group == nil {
			r.Value = out
			return nil
		}
	} else {
		o := &syntax.ObjectExpr{Keys: shape.ItemNames(q.Items)}
		for i, it := range q.Items {
			part, plan, err := partial(it.Expr)
			if err != nil {
				return err
			}
			o.Vals = append(o.Vals, part)
			qi.groupByAliases = append(qi.groupByAliases, o.Keys[i])
			qi.aliasToAggregate = append(qi.aliasToAggregate, aliasType{o.Keys[i], plan})
		}
		out = o
	}
	r.Value, r.Items = nil, nil
	if group != nil {
		r.Items = append(r.Items, syntax.SelectItem{Expr: group, Alias: "groupByItems"})
	}
	r.Items = append(r.Items, syntax.SelectItem{Expr: out, Alias: "payload"})
	return nil
}

// partial gives what a partition answers for a select item: for an aggregate its partial state, else the item itself.
// plan is the aggregate's name. An aggregate inside an expression can't be merged.
func partial(e syntax.Expr) (part syntax.Expr, plan string, err error) {
	call, ok := e.(*syntax.Call)
	if !ok || call.UDF || funcs.AggregateOf(call.Name) == nil {
		if shape.HasAggregate(e) {
			return nil, "", syntax.PlainError("Compositions of aggregates and other expressions are not allowed.")
		}
		return e, "", nil
	}
	agg := funcs.AggregateOf(call.Name)
	x := call.Args[0]
	of := func(name string) syntax.Expr { return &syntax.Call{Name: name, Args: []syntax.Expr{x}} }
	switch agg.Name {
	case "AVG":
		sums := &syntax.ObjectExpr{Keys: []string{"sum", "count"}, Vals: []syntax.Expr{of("SUM"), of("COUNT")}}
		return itemOf(sums), agg.Plan, nil
	case "MIN", "MAX":
		both := &syntax.ObjectExpr{Keys: []string{strings.ToLower(agg.Name), "count"},
			Vals: []syntax.Expr{of(agg.Name), of("COUNT")}}
		part := &syntax.ObjectExpr{Keys: []string{"item", "item2"}, Vals: []syntax.Expr{of(agg.Name), both}}
		return part, agg.Plan, nil
	}
	return itemOf(of(agg.Name)), agg.Plan, nil
}
