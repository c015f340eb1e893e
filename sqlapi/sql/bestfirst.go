package sql

import (
	"context"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/sarg"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
)

// The first rows in the order of a score of texts. Only texts that have a term have a positive score. If there are as
// many of these as the query wants, it needs no others, and a full-text index finds them without reading the rest.
//
// Example: SELECT TOP 10 .. ORDER BY RANK FullTextScore(c.text, "swim") reads the items that have "swim". If these are
// ten or more, they give the answer. If they are fewer, the query starts again and reads all items, because others,
// whose score is 0, are rows of the answer, too. The continuation says which of the two it was.

// bestFirst is the score by which a query is ordered, best first. nil: it is ordered otherwise.
type bestFirst struct {
	score scoring // with its text and terms
	key   evalFn
}

// bestFirst returns the score of texts by which the query is ordered.
func (c *compiler) bestFirst(p *program) *bestFirst {
	if len(p.order) != 1 || !p.top.rootOnly || p.top.grouped || len(p.functions) > 0 {
		return nil
	}
	if p.rank != nil {
		if p.rank.scores[0].text == nil {
			return nil
		}
		return &bestFirst{p.rank.scores[0], p.order[0].key}
	}
	call := shape.ScoreOrder(p.q)
	if call == nil || !p.q.OrderBy[0].Desc || !strings.EqualFold(call.Name, "_FullTextScore") ||
		!shape.IsConstant(call.Args[1]) {
		return nil
	}
	outer := c.scope
	c.scope = &scope{vars: p.top.vars}
	defer func() { c.scope = outer }()
	s := c.textAt(call)
	s.terms = []evalFn{c.expr(call.Args[1]).fn}
	return &bestFirst{s, p.order[0].key}
}

// found returns the condition that a text has one of the terms, nil if no index answers it.
func (b *bestFirst) found(f *frame, c *core.Container) *access.Pred {
	if b.score.path == nil || !c.Indexes(core.TextTerms(*b.score.path)) {
		return nil
	}
	args := make([]value.Value, len(b.score.terms))
	for i, term := range b.score.terms {
		args[i] = term(f)
	}
	wants, err := funcs.Wants(nil, args, true)
	if err != nil {
		return nil
	}
	var of []*access.Pred
	for _, w := range wants {
		p := sarg.Phrase(*b.score.path, b.score.language, w)
		if p == nil {
			return nil
		}
		of = append(of, p)
	}
	return access.Or(of...)
}

// openBest opens the rows of q that have a positive score, if there are as many as the query wants. begin is the state
// of a first page. It returns nil if there aren't.
func (pl *Plan) openBest(ctx context.Context, c *core.Container, req Request, r *runner, q *exec.Query,
	begin state) (*exec.Query, *coreRows, error) {
	b := pl.p.best
	if b == nil || begin.left <= 0 || req.Tx != nil || pl.env.Form != nil || r.st.core != "" && !r.st.best {
		return nil, nil, nil
	}
	pred := b.found(r.f, c)
	if pred == nil {
		return nil, nil, nil
	}
	best := *q
	if best.Pred = pred; q.Pred != nil {
		best.Pred = access.And(pred, q.Pred)
	}
	most := begin.left + begin.skip
	seen := map[uint64]bool{} // of the first most items that match
	best.Match = func(it *core.Item) (bool, error) {
		if q.Match != nil {
			if ok, err := q.Match(it); !ok || err != nil {
				return ok, err
			}
		}
		r.f.setRoot(it.Doc, it)
		v := b.key(r.f)
		ok := v.IsNumber() && v.Float() > 0
		if ok && int64(len(seen)) < most {
			seen[it.Number] = true
		}
		return ok, r.f.err
	}
	rows, err := r.open(ctx, c, &best, nil)
	if err != nil {
		return nil, nil, err
	}
	src := &coreRows{rows: rows}
	if r.st.core != "" { // an earlier page has seen that there are enough
		r.best = true
		return &best, src, nil
	}
	src.peek() // the sort has read all of them
	if int64(len(seen)) >= most && rows.Err() == nil && rows.Stats().Sorted {
		r.best = true
		return &best, src, nil
	}
	return nil, nil, r.readAll(rows, func(*core.Item) {})
}
