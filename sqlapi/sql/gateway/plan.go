// Package gateway makes query plans. SDKs request a plan from the service's gateway. It tells them how to run a query
// over several partitions: the text to send to each partition, and how to merge the answers.
//
// Example: the input
//
//	SELECT c.a FROM c ORDER BY c.n
//
// gives a plan with orderBy ["Ascending"], orderByExpressions ["c.n"] and the rewritten text
//
//	SELECT c._rid, [{"item": c.n}] AS orderByItems, {"a": c.a} AS payload
//	FROM c WHERE (({documentdb-formattableorderbyquery-filter})) ORDER BY c.n
//
// The client sends it to each partition, merges the rows by orderByItems and shows the payloads.
package gateway

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// FilterPlaceholder is the text in a rewritten ORDER BY query that the client replaces: by a filter for the rows behind
// its position, or by true.
const FilterPlaceholder = "{documentdb-formattableorderbyquery-filter}"

// queryInfo tells a client what to do with the partitions' rows. The fields are those of the service's plan.
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

// Request is a request for the plan of a query.
type Request struct {
	Query *syntax.Query
	// Rows that OFFSET skips, and the most rows that TOP or LIMIT allows (-1: no limit).
	Offset, Limit int64
	// Where is a predicate that all items satisfy for which WHERE is true (package sarg). nil: there is none.
	Where *access.Pred
	Key   core.PartitionKeyDef
	// Bound is true when the request names a whole partition key. One partition then gives all rows, whatever the
	// filter is. The ranges of the plan still come from the filter.
	Bound bool
	// Param returns the value of a parameter. It is needed for ORDER BY RANK only.
	Param func(name string) value.Value
	// Features are the features that the client supports. The plan is refused when the query needs another one. nil:
	// they aren't checked.
	Features []string
}

// AppendPlan appends the JSON of the plan.
func AppendPlan(dst []byte, r *Request) ([]byte, error) {
	ranges := keyRanges(r.Query, r.Where, r.Key)
	bound := r.Bound || len(ranges) == 1 && ranges[0].Min == ranges[0].Max
	if bound && (onlyWhole(r.Query) || onlyCut(r.Query)) {
		return plainPlan(r.Query).appendJSON(dst, ranges), nil // one partition returns the whole answer
	}
	if isHybrid(r.Query) {
		h, err := makeHybrid(r)
		if err == nil {
			err = checkFeatures(needs(r.Query), r.Features)
		}
		if err != nil {
			return nil, err
		}
		return h.appendJSON(dst, ranges), nil
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

// NeedsMerge reports whether the concatenated rows of the partitions are not yet the query's answer. That is so for
// ORDER BY, aggregates, GROUP BY, DISTINCT, TOP and OFFSET LIMIT, in the query or in a sub-query over the container.
func NeedsMerge(q *syntax.Query) bool { return len(needs(q)) > 0 || onlyWhole(q) }

// onlyWhole reports whether the query can't be run per partition: no merge of the partitions' rows gives its answer.
func onlyWhole(q *syntax.Query) bool {
	inner := shape.ContainerQuery(q)
	if _, _, ok := shape.DistinctCount(q); ok {
		return false
	}
	return inner != nil && !shape.Streams(inner) || len(q.GroupBy) > 0 && len(q.OrderBy) > 0
}

// onlyCut reports whether OFFSET LIMIT is the only work for a client. A single partition does that work itself.
func onlyCut(q *syntax.Query) bool {
	return q.Limit != nil && !shape.IsGrouped(q) && !q.Distinct && len(q.OrderBy) == 0
}

// plainPlan returns the plan of a query whose rows need no merge.
func plainPlan(q *syntax.Query) *queryInfo {
	return &queryInfo{distinctType: "None", top: -1, offset: -1, limit: -1, hasSelectValue: q.Value != nil}
}

// makePlan returns the client's work and the text for the partitions. limit is the limit of TOP or LIMIT.
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
	r.Rank = false
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
		r.Top, r.Offset, r.Limit = nil, nil, nil // the client applies them
	case q.Limit != nil:
		r.Offset, r.Limit = &syntax.Count{}, &syntax.Count{N: min(offset+limit, syntax.MaxCount)}
	}
	if q.Top != nil && r.Top != nil {
		r.Top = &syntax.Count{N: limit}
	}
	qi.rewritten = strings.Replace(syntax.PrintQuery(&r), "@"+filterMark, "("+FilterPlaceholder+")", 1)
	return qi, nil
}

// filterMark is the name of a parameter that marks the position of FilterPlaceholder in the tree. It is replaced after
// the tree is printed, because the placeholder itself is no expression.
const filterMark = "__orderByFilter"

// rewriteOrdered rewrites an ORDER BY query. Each partition returns rows of _rid, sort keys and payload in order,
// beginning at the client's position (FilterPlaceholder).
func rewriteOrdered(q, r *syntax.Query, qi *queryInfo) error {
	alias := rootAlias(q)
	if alias == "" {
		return syntax.PlainError("An ORDER BY over several partitions needs an alias of the item in FROM.")
	}
	keys := &syntax.ArrayExpr{}
	// Clients refuse such an order without TOP or LIMIT, with a text of their own.
	qi.nonStreaming = shape.VectorOrder(q) != nil
	for _, o := range q.OrderBy {
		dir := "Ascending"
		if vector := shape.VectorOrder(q); vector != nil && !shape.Euclidean(vector) || vector == nil && o.Desc {
			dir = "Descending"
		}
		qi.orderBy = append(qi.orderBy, dir)
		qi.orderByExpressions = append(qi.orderByExpressions, syntax.Print(o.Expr))
		keys.Elems = append(keys.Elems, itemOf(o.Expr))
	}
	r.Where = filtered(q)
	r.Distinct, r.Star, r.Value = false, false, nil
	r.Items = []syntax.SelectItem{
		{Expr: &syntax.Prop{Base: &syntax.Ident{Name: alias}, Name: "_rid"}},
		{Expr: keys, Alias: "orderByItems"},
		{Expr: payload(q), Alias: "payload"},
	}
	return nil
}

// filtered returns the WHERE of a rewritten ORDER BY query, with a mark in place of FilterPlaceholder.
func filtered(q *syntax.Query) syntax.Expr {
	var filter []syntax.Expr
	if q.Where != nil {
		filter = append(filter, q.Where)
	}
	filter = append(filter, &syntax.ParamRef{Name: filterMark})
	if q.Value != nil {
		filter = append(filter, &syntax.Call{Name: "IS_DEFINED", Args: []syntax.Expr{q.Value}})
	}
	return &syntax.Chain{Op: "AND", Xs: filter}
}

// rootAlias returns the alias of the item itself, "" when there is none.
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

// itemOf returns {"item": e}, the form of values that clients merge.
func itemOf(e syntax.Expr) syntax.Expr {
	return &syntax.ObjectExpr{Keys: []string{"item"}, Vals: []syntax.Expr{e}}
}

// payload returns the row of the original query as one expression.
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

// rewriteGrouped rewrites a query with aggregates or GROUP BY. Each partition returns the partial state of each
// aggregate, for each of its groups. Example: SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk becomes SELECT [{"item":
// c.pk}] AS groupByItems, {"pk": c.pk, "n": {"item": COUNT(1)}} AS payload FROM c GROUP BY c.pk.
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

// partial returns the expression that a partition evaluates for a select item: the partial state of an aggregate, or
// the item unchanged. plan is the aggregate's name in the plan, "" for another item. An aggregate inside a larger
// expression can't be merged and is refused.
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
