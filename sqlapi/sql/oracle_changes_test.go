package sql

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
)

// changing is the number of items that are created, changed and deleted between two pages; still is that of unchanged
// ones.
const still, changing = 60, 30

// TestOracleOverChanges: items are created, changed and deleted between the pages of a query. Unchanged items come
// exactly once and in order, with every access path.
func TestOracleOverChanges(t *testing.T) {
	t.Parallel()
	w := &oracleWorld{t: t, g: generator{rand.New(rand.NewPCG(*oracleSeed, 9))}, items: map[string]any{}}
	engines := map[int]*core.Engine{}
	for i, v := range oracleVariants {
		w.cs = append(w.cs, v.container(t, engines, i, nil))
	}
	for i := range still {
		w.put(i)
	}
	took, pages := plans{}, 0
	for n := range *oracleQueries / 8 {
		path := w.g.pick("c.a", "c.b", "c.n", "c.m", "c.u", "c.w", "c.o.x", "c.pk")
		text := "SELECT c.id, " + path + " AS k FROM c WHERE " + w.g.simple(1)
		switch w.g.IntN(6) {
		case 0:
			text = "SELECT c.id, " + path + " AS k FROM c"
		case 1:
			text = "SELECT c.id, " + path + " AS k FROM c WHERE c.n IN (1, 3, 4)"
		}
		order := ""
		if w.g.IntN(2) == 0 {
			order = w.g.pick(" ASC", " DESC")
			text += " ORDER BY " + path + order
			if w.g.IntN(2) == 0 {
				text += ", " + w.g.pick("c.n", "c.m", "c.u") + w.g.pick(" ASC", " DESC")
			}
		}
		want := w.answer(text, false)
		for i, c := range w.cs {
			if (n+i)%3 != 0 {
				continue
			}
			got := w.overChanges(c, took, text)
			pages += len(got)
			rows := slices.Concat(got...)
			rows = slices.DeleteFunc(rows, func(r string) bool {
				return strings.Contains(r, `"id":"i06`) || strings.Contains(r, `"id":"i07`) ||
					strings.Contains(r, `"id":"i08`)
			})
			if order != "" {
				w.sorted(text, rows, order == " DESC")
			}
			for j := range rows {
				rows[j] = naiveText(plainValue(t, rows[j]))
			}
			if slices.Sort(rows); !slices.Equal(rows, want) {
				t.Fatalf("query %d, %s: %s\n got %v\nwant %v", n, oracleVariants[i].name, text, rows, want)
			}
		}
	}
	t.Logf("%d pages: %v", pages, took)
	if pages < *oracleQueries {
		t.Errorf("only %d pages were read", pages)
	}
}

// overChanges reads a query in pages of three rows and changes items of the container after each. At the end the
// container has only the unchanged items again, as the oracle and the other containers always do.
func (w *oracleWorld) overChanges(c *core.Container, took plans, text string) (pages [][]string) {
	defer func(all []*core.Container) {
		for i := range changing {
			w.remove(still + i)
		}
		w.cs = all
	}(w.cs)
	w.cs = []*core.Container{c}
	req := Request{PageSize: 3, Explain: true}
	for {
		pl, err := Compile(text, nil, testEnv)
		if err != nil {
			w.t.Fatalf("%s: %v", text, err)
		}
		out := &Page{}
		if err := pl.Execute(context.Background(), c, req, out); err != nil {
			w.t.Fatalf("%s: %v", text, err)
		}
		took.count(out.Metrics.Explain)
		if out.Count > 0 {
			pages = append(pages, splitRows(string(out.Body)))
		}
		if req.Continuation = out.Continuation; req.Continuation == "" {
			return pages
		}
		if len(pages) > 200 {
			w.t.Fatalf("%s: more than 200 pages", text)
		}
		for range 3 {
			if i := still + w.g.IntN(changing); w.g.IntN(3) == 0 {
				w.remove(i)
			} else {
				w.put(i)
			}
		}
	}
}

// sorted checks that rows come in the order of their member k.
func (w *oracleWorld) sorted(text string, rows []string, desc bool) {
	for i := 1; i < len(rows); i++ {
		a, b := naiveGet(plainValue(w.t, rows[i-1]), "k"), naiveGet(plainValue(w.t, rows[i]), "k")
		if d := naiveCompare(a, b); desc && d < 0 || !desc && d > 0 {
			w.t.Fatalf("%s: %s comes before %s", text, rows[i-1], rows[i])
		}
	}
}
