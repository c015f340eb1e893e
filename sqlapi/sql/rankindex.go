package sql

import (
	"context"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/sarg"
)

// The statistics of ORDER BY RANK from full-text indexes. The index of a path has the number of words of each text, and
// finds the items that have a word. So only the items with a term of the query are read.
//
// Example: FullTextScore(c.text, "swim", "deep sea") takes the number of items from a counter, adds up the entries of
// the lengths of all texts, and reads the items that have "swim", or both "deep" and "sea".

// indexedStats determines the statistics of a ranking from indexes. ok is false if there is no index for one of its
// texts, or a term needs no exact word.
func (pl *Plan) indexedStats(ctx context.Context, c *core.Container, req Request, r *runner) (ok bool, err error) {
	rank, f := pl.p.rank, r.f
	if req.Tx != nil || req.Statistics != nil || pl.env.Form != nil || c.HasTTL() {
		return false, nil
	}
	finds := make([][]termFind, rank.texts)
	for _, s := range rank.scores {
		if s.text == nil {
			continue
		}
		if finds[s.at], ok = s.indexed(c, &f.rank.texts[s.at]); !ok {
			return false, nil
		}
	}
	n, charge, ok, err := countOf(ctx, c, Request{})
	if !ok || err != nil {
		return false, err
	}
	r.out.Charge += charge
	for _, s := range rank.scores {
		if s.text == nil {
			continue
		}
		t := &f.rank.texts[s.at]
		t.corpus.Texts = float64(n)
		if err := r.countTexts(ctx, c, Request{}, s, t, finds[s.at]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// termFind finds the texts that have some terms: pred is satisfied by those that have one of them.
type termFind struct {
	pred  *access.Pred
	terms []int // their numbers
}

// indexed returns how an index finds the texts that have the terms: all terms of one word together, so that no text is
// read twice for them, and each phrase by its rarest word. ok is false if there is no index, or it can't find a term.
func (s *scoring) indexed(c *core.Container, t *rankText) (finds []termFind, ok bool) {
	if s.path == nil || !c.Indexes(core.TextTerms(*s.path)) || !c.Indexes(core.TextLength(*s.path)) {
		return nil, false
	}
	var single termFind
	var of []*access.Pred
	for i, w := range t.wants {
		switch p := sarg.Phrase(*s.path, s.language, w); {
		case p == nil:
			return nil, false
		case p.Op == access.OpIn:
			of = append(of, p)
			single.terms = append(single.terms, i)
		default:
			finds = append(finds, termFind{p, []int{i}})
		}
	}
	if len(of) > 0 {
		single.pred = access.Or(of...)
		finds = append(finds, single)
	}
	return finds, true
}

// countTexts determines the statistics of the texts at a path in the part of the container that req names.
func (r *runner) countTexts(ctx context.Context, c *core.Container, req Request, s scoring, t *rankText,
	finds []termFind) error {
	err := r.lengths(ctx, c, req, s, t)
	for _, find := range finds {
		if err == nil {
			err = r.hits(ctx, c, req, s, t, find)
		}
	}
	return err
}

// whole returns a query that reads what req names to its end.
func whole(req Request, pred *access.Pred) *exec.Query {
	q := &exec.Query{PK: req.PK, Compare: value.CompareCosmos, Collation: access.JSONOrder, Whole: true, Pred: pred}
	for _, rg := range req.Ranges {
		q.Ranges = append(q.Ranges, struct{ Min, Max string }(rg))
	}
	return q
}

// lengths adds up the numbers of words of all texts.
func (r *runner) lengths(ctx context.Context, c *core.Container, req Request, s scoring, t *rankText) error {
	path := core.TextLength(*s.path)
	q := whole(req, access.Exists(path))
	q.Needs = []access.Path{path}
	rows, err := c.Query(ctx, q)
	if err != nil {
		return err
	}
	names := append([]string{strings.TrimPrefix(path.Segs[0], "\x00")}, path.Segs[1:]...)
	return r.readAll(rows, func(it *core.Item) {
		v := value.ObjectOf(it.Doc)
		if !v.Get("_id").IsDefined() { // it is made of an entry
			for _, name := range names {
				v = v.Get(name)
			}
			t.corpus.Words += v.Float()
			return
		}
		r.f.setRoot(it.Doc, it)
		if v = s.text(r.f); v.Kind() == value.String {
			t.corpus.Words += float64(t.reader.Read(v.Bytes()).Len())
		}
	})
}

// hits counts the texts that have each of some terms.
func (r *runner) hits(ctx context.Context, c *core.Container, req Request, s scoring, t *rankText,
	find termFind) error {
	rows, err := c.Query(ctx, whole(req, find.pred))
	if err != nil {
		return err
	}
	return r.readAll(rows, func(it *core.Item) {
		r.f.setRoot(it.Doc, it)
		v := s.text(r.f)
		if v.Kind() != value.String {
			return
		}
		words := t.reader.Read(v.Bytes())
		for _, i := range find.terms {
			if words.Has(t.phrases[i]) {
				t.corpus.With[i]++
			}
		}
	})
}
