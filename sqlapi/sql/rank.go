package sql

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// ORDER BY RANK. The score of a text (FullTextScore) depends on all texts at its path: how many there are, how long
// they are, and how many have each term. So a query first determines these statistics of the whole container, also if
// it is about one partition, and then orders by the scores. The continuation of a page has the statistics: they are
// determined once, and the scores of items that nobody changes are the same on all pages.
//
// Example: ORDER BY RANK FullTextScore(c.text, "swim") reads all texts, and then sorts the items by their scores and
// keeps the best ones, like ORDER BY VectorDistance. rankrows.go has the order by several scores.

// ranking is the compiled ORDER BY RANK of a query.
type ranking struct {
	scores  []scoring
	fused   bool
	weights evalFn // nil: all are 1
	texts   int    // scores of texts
}

// scoring is one score.
type scoring struct {
	value evalFn // undefined for an item without a score
	// For a score of texts: its number among these, the text, the terms, and the language.
	at       int
	text     evalFn
	terms    []evalFn
	language *text.Language
	path     *access.Path // of the text; nil if no index can have it
}

// rankState is the state of an ORDER BY RANK during an execution.
type rankState struct {
	texts   []rankText
	weights []float64
}

// rankText is the state of one score of texts.
type rankText struct {
	wants   []text.Want
	reader  *text.Reader
	phrases []text.Phrase
	corpus  text.Corpus
	counts  []int
}

// rank compiles ORDER BY RANK.
func (c *compiler) rank(p *program) {
	rank, at, msg := shape.RankOf(p.q)
	if rank == nil {
		code := syntax.CodeRank
		if msg == shape.MsgNestedRRF {
			code = syntax.CodeFunction
		}
		c.failAt(at, code, "%s", msg)
		return
	}
	switch {
	case p.top.grouped:
		c.failAt(p.q.OrderBy[0].Expr, syntax.CodeRank, "Aggregates and GROUP BY are not allowed with the ORDER BY "+
			"RANK clause.")
	case p.top.derived != nil || len(p.top.vars) == 0 || !p.top.vars[0].root:
		c.failAt(p.q.OrderBy[0].Expr, syntax.CodeRank, "The ORDER BY RANK clause needs the container as its source.")
	case rank.Fused && !p.top.rootOnly:
		c.failAt(p.q.OrderBy[0].Expr, syntax.CodeRank, "RRF is not allowed with JOIN.")
	case rank.Fused && len(c.functions) > 0:
		c.failAt(p.q.OrderBy[0].Expr, syntax.CodeRank, "RRF is not allowed with user-defined functions.")
	}
	outer := c.scope
	c.scope = &scope{vars: p.top.vars[:min(1, len(p.top.vars))]}
	defer func() { c.scope = outer }()
	p.rank = &ranking{fused: rank.Fused}
	for _, call := range rank.Scores {
		if shape.IsTextScore(call) {
			p.rank.scores = append(p.rank.scores, c.textScore(p.rank, call))
		} else {
			p.rank.scores = append(p.rank.scores, scoring{value: c.nearness(call)})
		}
	}
	if rank.Weights != nil {
		p.rank.weights = c.expr(rank.Weights).fn
	}
	if !rank.Fused {
		p.order = []orderPath{{key: p.rank.scores[0].value, desc: true}}
	}
}

// textScore compiles a call of FullTextScore.
func (c *compiler) textScore(r *ranking, call *syntax.Call) scoring {
	if len(call.Args) < 2 {
		c.failAt(call, syntax.CodeArity, "The FullTextScore function requires at least 2 argument(s).")
		return scoring{value: konst(value.Value{}).fn}
	}
	s := c.textAt(call)
	s.at = r.texts
	r.texts++
	for _, t := range c.exprs(call.Args[1:]) {
		s.terms = append(s.terms, t.fn)
	}
	i := s.at
	s.value = func(f *frame) value.Value {
		v := s.text(f)
		if v.Kind() != value.String || f.rank == nil {
			return value.Value{}
		}
		t := &f.rank.texts[i]
		words := t.reader.Read(v.Bytes())
		for k, p := range t.phrases {
			t.counts[k] = words.Count(p)
		}
		return value.DoubleOf(t.corpus.Score(t.counts, words.Len()))
	}
	return s
}

// CommonWords reports whether the common words of a language are words for full-text functions. The language has its
// English name.
func CommonWords(language string) bool {
	l, _ := text.LanguageOf(language)
	return l != nil && funcs.TextOptions(l).Common
}

// begin prepares the ranking for an execution.
func (r *ranking) begin(f *frame) error {
	st := &rankState{texts: make([]rankText, r.texts)}
	for _, s := range r.scores {
		if s.text == nil {
			continue
		}
		t := &st.texts[s.at]
		t.reader = f.ctx.Reader(s.language)
		args := make([]value.Value, len(s.terms))
		for i, term := range s.terms {
			args[i] = term(f)
		}
		wants, err := funcs.Wants(nil, args, true)
		switch {
		case funcs.IsNoWant(err) || err == nil && len(wants) == 0:
			return syntax.PlainError("%s", shape.MsgRankTerms)
		case err != nil:
			return err
		}
		t.wants = wants
		for _, w := range wants {
			t.phrases = append(t.phrases, t.reader.Phrase(w))
		}
		t.counts = make([]int, len(t.phrases))
		t.corpus.With = make([]float64, len(t.phrases))
	}
	if r.weights != nil {
		w := r.weights(f)
		for it := w.Iter(); w.Kind() == value.Array && it.Next(); {
			if n := it.Value(); n.IsNumber() && !math.IsNaN(n.Float()) && !math.IsInf(n.Float(), 0) {
				st.weights = append(st.weights, n.Float())
			}
		}
		if w.Kind() != value.Array || len(st.weights) != len(r.scores) || w.Len() != len(r.scores) {
			return syntax.PlainError("The weights of RRF must be an array with a number for each of its %d scores.",
				len(r.scores))
		}
	}
	f.rank = st
	return f.err
}

// count adds the current item to the statistics.
func (r *ranking) count(f *frame) {
	for _, s := range r.scores {
		if s.text == nil {
			continue
		}
		t := &f.rank.texts[s.at]
		t.corpus.Texts++
		v := s.text(f)
		if v.Kind() != value.String {
			continue
		}
		words := t.reader.Read(v.Bytes())
		t.corpus.Words += float64(words.Len())
		for i, p := range t.phrases {
			if words.Has(p) {
				t.corpus.With[i]++
			}
		}
	}
}

// startRank prepares the ranking of a page: its statistics come from the continuation, or are determined.
func (pl *Plan) startRank(ctx context.Context, c *core.Container, req Request, r *runner) error {
	rank, f := pl.p.rank, r.f
	if err := rank.begin(f); err != nil || rank.texts == 0 {
		return err
	}
	if r.st.stats != "" && f.rank.decode(r.st.stats) {
		r.stats = r.st.stats
		return nil
	}
	if ok, err := pl.indexedStats(ctx, c, req, r); ok || err != nil {
		r.stats = f.rank.encode()
		return err
	}
	q := &exec.Query{Compare: value.CompareCosmos, Collation: access.JSONOrder, Whole: true,
		Match: func(it *core.Item) (bool, error) {
			f.setRoot(it.Doc, it)
			rank.count(f)
			return false, f.err
		}}
	var rows *exec.Rows
	var err error
	if req.Tx != nil { // it sees one logical partition
		q.PK = req.PK
		rows, err = c.QueryTx(ctx, req.Tx, q)
	} else {
		q.PK = req.Statistics
		rows, err = c.Query(ctx, q)
	}
	if err != nil {
		return err
	}
	err = r.readAll(rows, func(*core.Item) {})
	r.stats = f.rank.encode()
	return err
}

// readAll calls f with all rows, closes them, and adds what they cost to the page.
func (r *runner) readAll(rows *exec.Rows, f func(*core.Item)) error {
	defer rows.Close()
	for rows.Next() {
		f(rows.Item())
	}
	s := rows.Stats()
	r.out.Charge += s.Charge()
	r.out.Metrics.ItemsRead += s.Items
	r.out.Metrics.BytesRead += s.Bytes
	r.out.Metrics.IndexReads += s.Entries
	r.out.Metrics.Counted += s.Counted
	return rows.Err()
}

// maxStats bounds the statistics in a continuation, in bytes. Longer ones are determined again for each page.
const maxStats = 512

// encode returns the statistics for a continuation: for each score of texts the number of texts, that of words, and for
// each term that of the texts that have it, as uvarints. It returns "" if there are too many.
func (st *rankState) encode() string {
	var b []byte
	for i := range st.texts {
		c := &st.texts[i].corpus
		b = binary.AppendUvarint(b, uint64(c.Texts))
		b = binary.AppendUvarint(b, uint64(c.Words))
		for _, n := range c.With {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	if len(b) > maxStats {
		return ""
	}
	return string(b)
}

// decode takes the statistics of a continuation. It returns false if they are those of another query.
func (st *rankState) decode(s string) bool {
	b := []byte(s)
	ok := true
	next := func() float64 {
		n, w := binary.Uvarint(b)
		if ok = ok && w > 0; ok {
			b = b[w:]
		}
		return float64(n)
	}
	for i := range st.texts {
		c := &st.texts[i].corpus
		c.Texts, c.Words = next(), next()
		for k := range c.With {
			c.With[k] = next()
		}
	}
	return ok && len(b) == 0
}
