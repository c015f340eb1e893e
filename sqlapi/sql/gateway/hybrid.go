package gateway

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// A plan for ORDER BY RANK with scores of texts, or with several scores. The client first sends the statistics query to
// all partitions, and adds up the answers. Then it writes them into the component queries, one for each score, and
// sends these to the partitions of the query. Each gives the best items by its score, with all scores. The client ranks
// the items that it got by each of the scores, and combines the ranks.
//
// Example: SELECT TOP 10 * FROM c ORDER BY RANK FullTextScore(c.text, "swim") has the statistics query
//
//	SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.text)),
//	"hitCounts": [COUNTIF(FullTextContains(c.text, "swim"))]}] AS fullTextStatistics FROM c
//
// and the component query (N, W and H are texts that the client replaces by statistics)
//
//	SELECT TOP 10 c._rid, [{"item": _FullTextScore(c.text, ["swim"], N, W, H)}] AS orderByItems,
//	{"payload": c, "componentScores": [(_FullTextScore(c.text, ["swim"], N, W, H) ?? -1)]} AS payload
//	FROM c WHERE (({documentdb-formattableorderbyquery-filter}))
//	ORDER BY _FullTextScore(c.text, ["swim"], N, W, H) DESC

// The texts in component queries that clients replace: by the number of items, by the number of words of the texts of a
// score, and by the list of the numbers of texts that have each of its terms.
const (
	placeDocuments = "{documentdb-formattablehybridsearchquery-totaldocumentcount}"
	placeWords     = "{documentdb-formattablehybridsearchquery-totalwordcount-"
	placeHits      = "{documentdb-formattablehybridsearchquery-hitcountsarray-"
)

// The names of parameters that mark the positions of these texts in a tree. They are replaced after it is printed.
const (
	documentsMark = "__hybridDocuments_"
	wordsMark     = "__hybridWords"
	hitsMark      = "__hybridHits"
)

// hybridInfo tells a client how to order by scores. The fields are those of the service's plan.
type hybridInfo struct {
	statistics string
	components []*queryInfo
	weights    []float64
	skip, take int64 // -1 = null
	global     bool  // the statistics are needed
}

// textTerms are the terms of a score of texts.
type textTerms struct {
	text  syntax.Expr
	terms []syntax.Expr
}

// component is a score as a component query has it.
type component struct {
	expr    syntax.Expr
	missing float64 // in place of the score of an item without one: a client ranks it last
	desc    bool
}

// isHybrid reports whether a query has a plan for ORDER BY RANK. A single distance of vectors is an ordinary order.
func isHybrid(q *syntax.Query) bool {
	if !q.Rank {
		return false
	}
	rank, _, _ := shape.RankOf(q)
	return rank == nil || rank.Fused || shape.IsTextScore(rank.Scores[0])
}

// makeHybrid returns the plan for ORDER BY RANK.
func makeHybrid(r *Request) (*hybridInfo, error) {
	q := r.Query
	rank, _, msg := shape.RankOf(q)
	if rank == nil {
		return nil, syntax.PlainError("%s", msg)
	}
	alias := rootAlias(q)
	if alias == "" || len(q.From.Sources) > 1 {
		return nil, syntax.PlainError("An ORDER BY RANK over several partitions needs the container as its only " +
			"source.")
	}
	h := &hybridInfo{skip: -1, take: -1}
	if q.Limit != nil {
		h.skip = r.Offset
	}
	top := int64(-1)
	if r.Limit >= 0 {
		h.take = r.Limit
		if top = r.Offset + r.Limit; rank.Fused {
			top = shape.Candidates(top)
		}
	}
	if rank.Weights != nil {
		var err error
		if h.weights, err = r.weights(rank); err != nil {
			return nil, err
		}
	}
	var texts []textTerms
	var parts []component
	for i, call := range rank.Scores {
		c := component{desc: len(h.weights) == 0 || h.weights[i] >= 0, missing: -lastScore}
		if shape.IsTextScore(call) {
			t, err := r.terms(call)
			if err != nil {
				return nil, err
			}
			c.expr = textScore(t, len(texts))
			texts = append(texts, t)
			if c.desc {
				c.missing = -1
			}
		} else {
			c.expr = &syntax.Call{Name: "_VectorScore", Args: call.Args}
		}
		if !c.desc {
			c.missing = lastScore
			h.weights[i] = -h.weights[i]
		}
		parts = append(parts, c)
	}
	h.global = len(texts) > 0
	h.statistics = syntax.PrintQuery(statistics(alias, texts))
	for i := range parts {
		h.components = append(h.components, componentQuery(q, alias, parts, i, top))
	}
	return h, nil
}

// lastScore is worse than all distances of vectors, or with a minus better.
const lastScore = 1.79769e+308

// textScore returns the score of the i-th list of terms, with marks in place of the statistics.
func textScore(t textTerms, i int) syntax.Expr {
	n := strconv.Itoa(i) + "_"
	return &syntax.Call{Name: "_FullTextScore", Args: []syntax.Expr{t.text, &syntax.ArrayExpr{Elems: t.terms},
		&syntax.ParamRef{Name: documentsMark}, &syntax.ParamRef{Name: wordsMark + n},
		&syntax.ParamRef{Name: hitsMark + n}}}
}

// statistics returns the statistics query.
func statistics(alias string, texts []textTerms) *syntax.Query {
	call := func(name string, args ...syntax.Expr) syntax.Expr { return &syntax.Call{Name: name, Args: args} }
	list := &syntax.ArrayExpr{}
	for _, t := range texts {
		hits := &syntax.ArrayExpr{}
		for _, term := range t.terms {
			hits.Elems = append(hits.Elems, call("COUNTIF", call("FullTextContains", t.text, term)))
		}
		list.Elems = append(list.Elems, &syntax.ObjectExpr{Keys: []string{"totalWordCount", "hitCounts"},
			Vals: []syntax.Expr{call("SUM", call("_FullTextWordCount", t.text)), hits}})
	}
	return &syntax.Query{
		Items: []syntax.SelectItem{
			{Expr: call("COUNT", &syntax.Lit{Val: value.IntOf(1)}), Alias: "documentCount"},
			{Expr: list, Alias: "fullTextStatistics"},
		},
		From: &syntax.From{Sources: []syntax.Source{{Alias: alias, Path: &syntax.Ident{Name: alias}}}},
	}
}

// componentQuery returns the component query for the i-th score. Each partition gives its best top items; -1: all.
func componentQuery(q *syntax.Query, alias string, parts []component, i int, top int64) *queryInfo {
	r := *q
	r.Rank, r.Star, r.Value, r.Top, r.Offset, r.Limit = false, false, nil, nil, nil, nil
	qi := plainPlan(&r)
	qi.nonStreaming = true
	if qi.top = top; top >= 0 {
		r.Top = &syntax.Count{N: min(top, syntax.MaxCount)}
	}
	scores := &syntax.ArrayExpr{}
	for _, p := range parts {
		scores.Elems = append(scores.Elems, &syntax.Binary{Op: "??", L: p.expr,
			R: &syntax.Lit{Val: value.DoubleOf(p.missing)}})
	}
	qi.orderBy = []string{"Ascending"}
	if parts[i].desc {
		qi.orderBy[0] = "Descending"
	}
	qi.orderByExpressions = []string{marked(syntax.Print(parts[i].expr))}
	r.Items = []syntax.SelectItem{
		{Expr: &syntax.Prop{Base: &syntax.Ident{Name: alias}, Name: "_rid"}},
		{Expr: &syntax.ArrayExpr{Elems: []syntax.Expr{itemOf(parts[i].expr)}}, Alias: "orderByItems"},
		{Expr: &syntax.ObjectExpr{Keys: []string{"payload", "componentScores"},
			Vals: []syntax.Expr{payload(q), scores}}, Alias: "payload"},
	}
	r.Where = filtered(q)
	r.OrderBy = []syntax.OrderItem{{Expr: parts[i].expr, Desc: parts[i].desc}}
	qi.rewritten = marked(syntax.PrintQuery(&r))
	return qi
}

// marked replaces the marks in a printed text by the texts that clients replace.
func marked(s string) string {
	s = strings.ReplaceAll(s, "@"+documentsMark, placeDocuments)
	for i := 0; strings.Contains(s, "@"+wordsMark); i++ {
		n := strconv.Itoa(i)
		s = strings.ReplaceAll(s, "@"+wordsMark+n+"_", placeWords+n+"}")
		s = strings.ReplaceAll(s, "@"+hitsMark+n+"_", placeHits+n+"}")
	}
	return strings.Replace(s, "@"+filterMark, "("+FilterPlaceholder+")", 1)
}

// terms returns the text and the terms of a call of FullTextScore. Parameters are replaced by their values: the
// statistics have a number for each term, and some clients don't send the parameters with the component queries.
func (r *Request) terms(call *syntax.Call) (textTerms, error) {
	t := textTerms{text: call.Args[0]}
	for _, a := range call.Args[1:] {
		t.terms = r.appendTerm(t.terms, a)
	}
	for _, x := range t.terms {
		switch e := x.(type) {
		case *syntax.Lit:
			if e.Val.Kind() == value.String {
				continue
			}
		case *syntax.ObjectExpr:
			continue
		}
		return t, syntax.PlainError("%s", shape.MsgRankTerms)
	}
	if len(t.terms) == 0 {
		return t, syntax.PlainError("%s", shape.MsgRankTerms)
	}
	return t, nil
}

func (r *Request) appendTerm(dst []syntax.Expr, e syntax.Expr) []syntax.Expr {
	switch e := e.(type) {
	case *syntax.ParamRef:
		v := r.param(e.Name)
		if v.Kind() != value.Array {
			return append(dst, literal(v))
		}
		for it := v.Iter(); it.Next(); {
			dst = append(dst, literal(it.Value()))
		}
		return dst
	case *syntax.ArrayExpr:
		for _, x := range e.Elems {
			dst = r.appendTerm(dst, x)
		}
		return dst
	}
	return append(dst, e)
}

func (r *Request) param(name string) value.Value {
	if r.Param == nil {
		return value.Value{}
	}
	return r.Param(name)
}

// literal returns the expression of a value; an array is a list without elements.
func literal(v value.Value) syntax.Expr {
	switch v.Kind() {
	case value.Object:
		o := &syntax.ObjectExpr{}
		for it := v.Iter(); it.Next(); {
			o.Keys, o.Vals = append(o.Keys, string(it.Key())), append(o.Vals, literal(it.Value()))
		}
		return o
	case value.Array:
		return &syntax.ArrayExpr{}
	}
	return &syntax.Lit{Val: v}
}

// weights returns the weights of RRF.
func (r *Request) weights(rank *shape.Rank) (ws []float64, err error) {
	var vs []value.Value
	switch e := rank.Weights.(type) {
	case *syntax.ParamRef:
		if v := r.param(e.Name); v.Kind() == value.Array {
			for it := v.Iter(); it.Next(); {
				vs = append(vs, it.Value())
			}
		}
	case *syntax.ArrayExpr:
		for _, x := range e.Elems {
			vs = append(vs, r.number(x))
		}
	}
	for _, v := range vs {
		if v.IsNumber() {
			ws = append(ws, v.Float())
		}
	}
	if len(ws) != len(rank.Scores) || len(vs) != len(ws) {
		return nil, syntax.PlainError("The weights of RRF must be an array with a number for each of its %d scores.",
			len(rank.Scores))
	}
	return ws, nil
}

// number returns the value of a number or a parameter, with a sign or without.
func (r *Request) number(e syntax.Expr) value.Value {
	switch e := e.(type) {
	case *syntax.Lit:
		return e.Val
	case *syntax.ParamRef:
		return r.param(e.Name)
	case *syntax.Unary:
		if v := r.number(e.X); e.Op == "-" && v.IsNumber() {
			return value.DoubleOf(-v.Float())
		}
	}
	return value.Value{}
}

// appendJSON appends the plan as JSON.
func (h *hybridInfo) appendJSON(dst []byte, ranges []keyRange) []byte {
	dst = append(dst, `{"partitionedQueryExecutionInfoVersion":2,"hybridSearchQueryInfo":{"globalStatisticsQuery":`...)
	dst = json.AppendString(dst, h.statistics)
	dst = append(dst, `,"componentQueryInfos":[`...)
	for i, c := range h.components {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = c.appendInfo(dst)
	}
	dst = append(dst, `],"componentWithoutPayloadQueryInfos":[],"projectionQueryInfo":null,"componentWeights":[`...)
	for i, w := range h.weights {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, w, 'g', -1, 64)
	}
	dst = appendNumber(append(dst, `],"skip":`...), h.skip)
	dst = appendNumber(append(dst, `,"take":`...), h.take)
	dst = append(dst, `,"requiresGlobalStatistics":`...)
	dst = strconv.AppendBool(dst, h.global)
	return appendRanges(append(dst, '}'), ranges)
}
