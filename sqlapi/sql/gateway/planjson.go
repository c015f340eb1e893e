package gateway

import (
	"strconv"

	"github.com/orrerydb/orrery/core/json"
)

// appendJSON appends the plan as JSON. Unused numbers are null and unused lists are empty. No member is left out,
// because each client reads some members without checking that they exist.
func (qi *queryInfo) appendJSON(dst []byte, ranges []keyRange) []byte {
	return appendRanges(qi.appendInfo(append(dst, `{"partitionedQueryExecutionInfoVersion":2,"queryInfo":`...)), ranges)
}

// appendInfo appends a queryInfo.
func (qi *queryInfo) appendInfo(dst []byte) []byte {
	dst = append(dst, `{"distinctType":`...)
	dst = json.AppendString(dst, qi.distinctType)
	for _, n := range []struct {
		name string
		n    int64
	}{{"top", qi.top}, {"offset", qi.offset}, {"limit", qi.limit}} {
		dst = appendNumber(append(append(append(dst, `,"`...), n.name...), `":`...), n.n)
	}
	for _, l := range []struct {
		name string
		list []string
	}{{"orderBy", qi.orderBy}, {"orderByExpressions", qi.orderByExpressions}, {"groupByExpressions", qi.groupBy},
		{"groupByAliases", qi.groupByAliases}, {"aggregates", qi.aggregates}} {
		dst = append(append(append(dst, `,"`...), l.name...), `":`...)
		dst = appendList(dst, l.list)
	}
	dst = append(dst, `,"groupByAliasToAggregateType":{`...)
	for i, a := range qi.aliasToAggregate {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(json.AppendString(dst, a.alias), ':')
		if a.plan == "" {
			dst = append(dst, "null"...)
		} else {
			dst = json.AppendString(dst, a.plan)
		}
	}
	dst = append(dst, `},"rewrittenQuery":`...)
	dst = json.AppendString(dst, qi.rewritten)
	dst = append(dst, `,"hasSelectValue":`...)
	dst = strconv.AppendBool(dst, qi.hasSelectValue)
	dst = append(dst, `,"dCountInfo":`...)
	if qi.dCount != nil {
		dst = append(json.AppendString(append(dst, `{"dCountAlias":`...), *qi.dCount), '}')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"hasNonStreamingOrderBy":`...)
	return append(strconv.AppendBool(dst, qi.nonStreaming), '}')
}

// appendNumber appends a number; -1 is null.
func appendNumber(dst []byte, n int64) []byte {
	if n < 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, n, 10)
}

// appendRanges appends the ranges of a plan, and ends it.
func appendRanges(dst []byte, ranges []keyRange) []byte {
	dst = append(dst, `,"queryRanges":[`...)
	for i, r := range ranges {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = json.AppendString(append(dst, `{"min":`...), r.Min)
		dst = json.AppendString(append(dst, `,"max":`...), r.Max)
		dst = append(dst, `,"isMinInclusive":true,"isMaxInclusive":`...)
		dst = append(strconv.AppendBool(dst, r.Min == r.Max), '}')
	}
	return append(dst, "]}"...)
}

func appendList(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = json.AppendString(dst, s)
	}
	return append(dst, ']')
}
