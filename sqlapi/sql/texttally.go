package sql

import (
	"context"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// A query that only counts items, the words of texts, and the texts that have a phrase, is answered from full-text
// indexes, like the statistics of ORDER BY RANK. Clients send such a query to each partition (gateway.makeHybrid).
//
// Example: SELECT COUNT(1) AS n, SUM(_FullTextWordCount(c.text)) AS words, COUNTIF(FullTextContains(c.text, "swim")) AS
// hits FROM c.

// textTallies are the aggregates of such a query.
type textTallies struct {
	texts []scoring // the texts, with the phrases that are counted
	aggs  []textTally
}

// textTally is one aggregate: of the items if text is -1, of the words of a text if term is -1, or of a phrase.
type textTally struct{ text, term int }

// textTallies returns the aggregates of a query if it only counts items, words and phrases, and some of these; else
// nil.
func (c *compiler) textTallies(p *program) *textTallies {
	q := p.q
	if !p.top.grouped || !p.top.rootOnly || q.Where != nil || len(q.GroupBy) > 0 || q.Distinct || len(q.OrderBy) > 0 {
		return nil
	}
	out := &textTallies{}
	at := map[string]int{}
	outer := c.scope
	c.scope = &scope{vars: p.top.vars}
	defer func() { c.scope = outer }()
	for _, a := range p.top.group.aggs {
		if lit, ok := a.of.Args[0].(*syntax.Lit); ok && a.fn.Name == "COUNT" && lit.Val.IsDefined() {
			out.aggs = append(out.aggs, textTally{-1, -1})
			continue
		}
		call, ok := a.of.Args[0].(*syntax.Call)
		words := ok && !call.UDF && a.fn.Name == "SUM" && strings.EqualFold(call.Name, "_FullTextWordCount")
		phrase := ok && !call.UDF && a.fn.Name == "COUNTIF" && strings.EqualFold(call.Name, "FullTextContains") &&
			len(call.Args) == 2 && shape.IsConstant(call.Args[1])
		if !words && !phrase {
			return nil
		}
		key := call.Language + "\x00" + syntax.Print(call.Args[0])
		i, ok := at[key]
		if !ok {
			s := c.textAt(call)
			if s.path == nil {
				return nil
			}
			i = len(out.texts)
			at[key] = i
			out.texts = append(out.texts, s)
		}
		if words {
			out.aggs = append(out.aggs, textTally{i, -1})
			continue
		}
		s := &out.texts[i]
		out.aggs = append(out.aggs, textTally{i, len(s.terms)})
		s.terms = append(s.terms, c.expr(call.Args[1]).fn)
	}
	if len(out.texts) == 0 {
		return nil
	}
	return out
}

// tallyTexts answers the query of a page from indexes. ok is false if they can't.
func (pl *Plan) tallyTexts(ctx context.Context, c *core.Container, req Request, r *runner) (ok bool, err error) {
	if req.Tx != nil || req.PK != nil || pl.env.Form != nil || c.HasTTL() { // a logical partition is read once
		return false, nil
	}
	f, tallies := r.f, pl.p.tallies
	texts, finds := make([]rankText, len(tallies.texts)), make([][]termFind, len(tallies.texts))
	for i := range tallies.texts {
		s, t := &tallies.texts[i], &texts[i]
		t.reader = f.ctx.Reader(s.language)
		for _, term := range s.terms {
			if t.wants, err = funcs.Wants(t.wants, []value.Value{term(f)}, false); err != nil {
				return false, nil // the function reports it
			}
			t.phrases = append(t.phrases, t.reader.Phrase(t.wants[len(t.wants)-1]))
		}
		t.corpus.With = make([]float64, len(t.phrases))
		if finds[i], ok = s.indexed(c, t); !ok {
			return false, nil
		}
	}
	n, charge, ok, err := countOf(ctx, c, req)
	if !ok || err != nil {
		return false, err
	}
	r.out.Charge += charge
	for i, s := range tallies.texts {
		if err := r.countTexts(ctx, c, req, s, &texts[i], finds[i]); err != nil {
			return false, err
		}
	}
	cq := pl.p.top
	st := &f.subs[cq.id]
	st.groups = &groupSet{newSet(f, cq.keyed, false)}
	cq.oneGroup(st)
	st.group = &st.groups.List()[0].State
	r.f.sink = r.take
	for i, a := range tallies.aggs {
		switch {
		case a.text < 0:
			st.group.aggs[i].SetCount(n)
		case a.term < 0:
			st.group.aggs[i].SetSum(texts[a.text].corpus.Words)
		default:
			st.group.aggs[i].SetCount(int64(texts[a.text].corpus.With[a.term]))
		}
	}
	r.emit(f)
	return true, f.err
}

// textAt compiles the text of a call of a full-text function, and its language.
func (c *compiler) textAt(call *syntax.Call) scoring {
	s := scoring{text: c.expr(call.Args[0]).fn}
	name := call.Language
	if name == "" {
		name = "english"
	}
	s.language, _ = text.LanguageOf(name)
	steps, base := shape.SplitPath(call.Args[0])
	if _, ok := base.(*syntax.Ident); ok {
		if path, element, ok := shape.StoredPath(steps, false); ok && !element {
			s.path = &path
		}
	}
	return s
}
