// Package gateway makes the query plans that SDKs ask the service's gateway for: how a client runs a query over several
// partitions, and what it asks each of them.
package gateway

import (
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/value"
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

// Features that a query may need from a client that merges partitions.
const (
	featureAggregate  = "Aggregate"
	featureMultiple   = "MultipleAggregates"
	featureNonValue   = "NonValueAggregate"
	featureGroupBy    = "GroupBy"
	featureDistinct   = "Distinct"
	featureOrderBy    = "OrderBy"
	featureMultiOrder = "MultipleOrderBy"
	featureDCount     = "DCount"
	featureVector     = "NonStreamingOrderBy"
	featureOffset     = "OffsetAndLimit"
	featureTop        = "Top"
	featureCountIf    = "CountIf"
	featureLists      = "ListAndSetAggregate"
)

// needs lists the features of a client that the query needs over several partitions.
func needs(q *syntax.Query) []string {
	var out []string
	add := func(need bool, name string) {
		if need {
			out = append(out, name)
		}
	}
	if _, _, ok := shape.DistinctCount(q); ok {
		return []string{featureDistinct, featureDCount}
	}
	aggs := map[string]int{}
	total := countAggregates(q.Value, aggs)
	for _, it := range q.Items {
		total += countAggregates(it.Expr, aggs)
	}
	add(total > 0, featureAggregate)
	add(total > 1, featureMultiple)
	add(total > 0 && q.Value == nil, featureNonValue)
	add(len(q.GroupBy) > 0, featureGroupBy)
	add(q.Distinct, featureDistinct)
	add(len(q.OrderBy) > 0, featureOrderBy)
	add(len(q.OrderBy) > 1, featureMultiOrder)
	add(shape.VectorOrder(q) != nil, featureVector)
	add(q.Limit != nil, featureOffset)
	add(q.Top != nil, featureTop)
	add(aggs["COUNTIF"] > 0, featureCountIf)
	add(aggs["MAKELIST"]+aggs["MAKESET"] > 0, featureLists)
	return out
}

func countAggregates(e syntax.Expr, by map[string]int) int {
	if e == nil {
		return 0
	}
	n := 0
	if call, ok := e.(*syntax.Call); ok && !call.UDF {
		if a := funcs.AggregateOf(call.Name); a != nil {
			by[a.Name]++
			n++
		}
	}
	syntax.Children(e, func(x syntax.Expr) { n += countAggregates(x, by) })
	return n
}

// checkFeatures refuses a plan that the client could not follow.
func checkFeatures(needs, have []string) error {
	if have == nil {
		return nil
	}
	var missing []string
next:
	for _, n := range needs {
		for _, h := range have {
			if strings.EqualFold(n, strings.TrimSpace(h)) {
				continue next
			}
		}
		missing = append(missing, "Query contained "+n+", which the calling client does not support.")
	}
	if len(missing) == 0 {
		return nil
	}
	return syntax.PlainError("Query contains 1 or more unsupported features. Upgrade your SDK to a version that does "+
		"support the requested features:\r\n%s", strings.Join(missing, "\r\n"))
}

// maxPoints bounds the partition keys that a plan lists; beyond it the plan is for everything.
const maxPoints = 2000

var everything = []keyRange{{"", "FF"}}

// keyRange is a range of effective partition keys as published: Min inclusive, Max exclusive. A point has Min = Max and
// is closed.
type keyRange struct{ Min, Max string }

// keyRanges returns the ranges that WHERE restricts a query to, sorted and without overlap; everything when it doesn't.
// An empty set, and a query without FROM, is the point "".
func keyRanges(q *syntax.Query, p *access.Pred, def core.PartitionKeyDef) []keyRange {
	if q.From == nil {
		return []keyRange{{"", ""}}
	}
	if p == nil {
		return everything
	}
	keys := make([]access.Path, len(def.Paths))
	for i, path := range def.Paths {
		segs, err := core.ParsePath(path)
		if err != nil {
			return everything
		}
		keys[i] = access.NewPath(segs...)
	}
	tuples, ok := keySets(p, keys)
	if !ok {
		return everything
	}
	if len(tuples) == 0 {
		return []keyRange{{"", ""}}
	}
	var out []keyRange
	for _, t := range tuples {
		n := 0
		for n < len(t) && t[n] != nil {
			n++
		}
		if n == 0 || n < len(t) && def.Kind != "MultiHash" {
			return everything
		}
		pk := make(core.PartitionKey, n)
		for i := range pk {
			pk[i] = *t[i]
		}
		if n == len(t) {
			epk := core.EPKText(def, pk)
			out = append(out, keyRange{epk, epk})
		} else {
			r := core.EPKRange(def, pk)
			out = append(out, keyRange{r.Min, r.Max})
		}
	}
	return mergeRanges(out)
}

// mergeRanges sorts ranges and joins those that overlap.
func mergeRanges(rs []keyRange) []keyRange {
	sort.Slice(rs, func(i, j int) bool {
		return rs[i].Min < rs[j].Min || rs[i].Min == rs[j].Min && rs[i].Max > rs[j].Max
	})
	out := rs[:1]
	for _, r := range rs[1:] {
		last := &out[len(out)-1]
		if r.Min < last.Max || r.Min == last.Min {
			last.Max = max(last.Max, r.Max)
			continue
		}
		out = append(out, r)
	}
	return out
}

// keySets returns the partition keys that satisfy a predicate, nil in a tuple where a path is free; ok is false when
// the predicate doesn't bound them.
func keySets(p *access.Pred, keys []access.Path) (tuples [][]*value.Value, ok bool) {
	switch p.Op {
	case access.OpNone:
		return nil, true
	case access.OpIn:
		return keyLeaf(p, keys)
	case access.OpOr:
		for _, k := range p.Kids {
			t, ok := keySets(k, keys)
			if !ok || len(tuples)+len(t) > maxPoints {
				return nil, false
			}
			tuples = append(tuples, t...)
		}
		return tuples, true
	case access.OpAnd:
		for _, k := range p.Kids {
			t, bounded := keySets(k, keys)
			if !bounded {
				continue
			}
			if !ok {
				tuples, ok = t, true
				continue
			}
			if len(tuples)*len(t) > maxPoints {
				continue // weaker, and still right
			}
			tuples = combine(tuples, t)
		}
		return tuples, ok
	}
	return nil, false
}

func keyLeaf(p *access.Pred, keys []access.Path) (tuples [][]*value.Value, ok bool) {
	if p.Path.Elements || len(p.Vals) > maxPoints {
		return nil, false
	}
	for i, k := range keys {
		if strings.Join(k.Segs, "\x00") != strings.Join(p.Path.Segs, "\x00") {
			continue
		}
		for j := range p.Vals {
			if v := p.Vals[j]; v.Kind() == value.Array || v.Kind() == value.Object || !v.IsDefined() {
				return nil, false
			}
			t := make([]*value.Value, len(keys))
			t[i] = &p.Vals[j]
			tuples = append(tuples, t)
		}
		return tuples, true
	}
	return nil, false
}

// combine gives the tuples that satisfy one of a and one of b.
func combine(a, b [][]*value.Value) [][]*value.Value {
	var out [][]*value.Value
	for _, x := range a {
	next:
		for _, y := range b {
			t := make([]*value.Value, len(x))
			for i := range x {
				switch {
				case x[i] == nil:
					t[i] = y[i]
				case y[i] == nil || value.EqualCosmos(*x[i], *y[i]):
					t[i] = x[i]
				default:
					continue next
				}
			}
			out = append(out, t)
		}
	}
	return out
}
