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
	preds := make([]*access.Pred, rank.texts)
	for _, s := range rank.scores {
		if s.text == nil {
			continue
		}
		if preds[s.at] = s.indexed(c, &f.rank.texts[s.at]); preds[s.at] == nil {
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
		if err := r.lengths(ctx, c, s, t); err != nil {
			return false, err
		}
		if err := r.hits(ctx, c, s, t, preds[s.at]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// indexed returns the condition that a text has one of the terms, if an index answers it; else nil.
func (s *scoring) indexed(c *core.Container, t *rankText) *access.Pred {
	if s.path == nil || !c.Indexes(core.TextTerms(*s.path)) || !c.Indexes(core.TextLength(*s.path)) {
		return nil
	}
	var of []*access.Pred
	for _, w := range t.wants {
		p := sarg.Phrase(*s.path, s.language, w)
		if p == nil {
			return nil
		}
		of = append(of, p)
	}
	return access.Or(of...)
}

// lengths adds up the numbers of words of all texts.
func (r *runner) lengths(ctx context.Context, c *core.Container, s scoring, t *rankText) error {
	path := core.TextLength(*s.path)
	rows, err := c.Query(ctx, &exec.Query{Compare: value.CompareCosmos, Collation: access.JSONOrder, Whole: true,
		Pred: access.Exists(path), Needs: []access.Path{path}})
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

// hits counts the texts that have each term. pred is the condition that a text has one of them.
func (r *runner) hits(ctx context.Context, c *core.Container, s scoring, t *rankText, pred *access.Pred) error {
	rows, err := c.Query(ctx, &exec.Query{Compare: value.CompareCosmos, Collation: access.JSONOrder, Whole: true,
		Pred: pred})
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
		for i, p := range t.phrases {
			if words.Has(p) {
				t.corpus.With[i]++
			}
		}
	})
}
