package gateway

import (
	"strings"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Features that a client needs to merge the partitions' answers to some queries.
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
	featureHybrid     = "HybridSearch"
	featureWeighted   = "WeightedRankFusion"
)

// needs returns the features that a client needs to run q over several partitions.
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
	if isHybrid(q) {
		out = append(out, featureHybrid)
		if rank, _, _ := shape.RankOf(q); rank != nil && rank.Weights != nil {
			out = append(out, featureWeighted)
		}
		return out
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

// checkFeatures returns an error when the client lacks a needed feature. have is the client's list.
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
