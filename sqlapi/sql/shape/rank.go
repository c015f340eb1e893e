package shape

import (
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Rank is what ORDER BY RANK orders by: a score, or several scores that RRF combines.
//
// Example: RRF(FullTextScore(c.text, "a"), VectorDistance(c.v, [1]), [2, 1]) has two scores and the weights [2, 1].
type Rank struct {
	Scores  []*syntax.Call // FullTextScore and VectorDistance
	Fused   bool           // they are combined by RRF
	Weights syntax.Expr    // nil: all are 1
}

// The service's messages for an ORDER BY RANK that is refused.
const (
	MsgRank      = "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call."
	MsgRankTerms = "The second argument of the FullTextScore function must be a non-empty array of string literals."
	MsgNestedRRF = "'RRF' is not a recognized built-in function name."
	MsgRankOnce  = "The DISTINCT keyword is not allowed with the ORDER BY RANK clause."
)

// RankOf returns what the ORDER BY RANK of a query orders by. If it isn't allowed, rank is nil and msg says why; at is
// the part of the query that is wrong.
func RankOf(q *syntax.Query) (rank *Rank, at syntax.Expr, msg string) {
	first := q.OrderBy[0].Expr
	if q.Distinct {
		return nil, first, MsgRankOnce
	}
	if len(q.OrderBy) > 1 {
		return nil, q.OrderBy[1].Expr, MsgRank
	}
	call, ok := first.(*syntax.Call)
	if !ok || call.UDF {
		return nil, first, MsgRank
	}
	rank = &Rank{}
	args := []syntax.Expr{call}
	if strings.EqualFold(call.Name, "RRF") {
		rank.Fused, args = true, call.Args
		if n := len(args) - 1; n > 1 && isWeights(args[n]) {
			rank.Weights, args = args[n], args[:n]
		}
		if len(args) < 2 {
			return nil, call, MsgRank
		}
	}
	for _, a := range args {
		score, ok := a.(*syntax.Call)
		if ok && !score.UDF && strings.EqualFold(score.Name, "RRF") {
			return nil, score, MsgNestedRRF
		}
		if !ok || score.UDF || !IsTextScore(score) && !strings.EqualFold(score.Name, "VectorDistance") {
			return nil, a, MsgRank
		}
		if IsTextScore(score) {
			for _, term := range score.Args[min(1, len(score.Args)):] {
				if !isTerm(term, true) {
					return nil, term, MsgRankTerms
				}
			}
		}
		rank.Scores = append(rank.Scores, score)
	}
	return rank, nil, ""
}

// IsTextScore reports whether a call is FullTextScore.
func IsTextScore(call *syntax.Call) bool {
	return !call.UDF && strings.EqualFold(call.Name, "FullTextScore")
}

// isWeights reports whether the last argument of RRF is a list of weights.
func isWeights(e syntax.Expr) bool {
	switch e.(type) {
	case *syntax.ArrayExpr, *syntax.ParamRef:
		return true
	}
	return false
}

// isTerm reports whether e may be a term of FullTextScore: a string, a fuzzy term, a parameter, or with list a list of
// these that isn't empty.
func isTerm(e syntax.Expr, list bool) bool {
	switch e := e.(type) {
	case *syntax.Lit:
		return e.Val.Kind() == value.String
	case *syntax.ParamRef:
		return true
	case *syntax.ObjectExpr:
		return IsConstant(e)
	case *syntax.ArrayExpr:
		for _, x := range e.Elems {
			if !isTerm(x, false) {
				return false
			}
		}
		return list && len(e.Elems) > 0
	}
	return false
}

// ScoreOrder returns the call when q is ordered only by _FullTextScore or _VectorScore, else nil. Query plans have
// such orders. Items without a score come last, whatever the direction is.
func ScoreOrder(q *syntax.Query) *syntax.Call {
	if len(q.OrderBy) == 1 {
		call, ok := q.OrderBy[0].Expr.(*syntax.Call)
		if ok && !call.UDF && (strings.EqualFold(call.Name, "_FullTextScore") ||
			strings.EqualFold(call.Name, "_VectorScore")) {
			return call
		}
	}
	return nil
}

// Candidates returns how many items with the best values of each score RRF combines, for the best n of all together: as
// many as the service takes for 10, 120, and for large n twice as many. Other items can't be among the best n unless
// they are far from the best ones in each score.
func Candidates(n int64) int64 { return min(max(2*n, 120), syntax.MaxCount) }
