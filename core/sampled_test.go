package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// keyRange is a query in the order of key and id, for the items whose field is at least 1.
func keyRange(field string, page int) *exec.Query {
	one := value.Int32Of(1)
	return &exec.Query{Pred: access.Range(access.NewPath(field), &access.Bound{Value: one, Inclusive: true}, nil),
		Match:   func(it *core.Item) (bool, error) { return value.ObjectOf(it.Doc).Get(field).Int() >= 1, nil },
		OrderBy: []exec.Order{{Path: access.NewPath("pk")}, {Path: access.ID}}, Compare: value.CompareCosmos,
		Page:    page,
		Explain: true}
}

// A walk in key order whose first rows don't satisfy the filter is given up for the names that the index gives. The
// rows, their order and the continuations are the same, wherever it turns.
func TestWalkTurnsToNames(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	e, _ := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	const items = 3000
	fields := map[string]struct {
		has   func(i int) bool
		turns bool
	}{
		"half":   {func(i int) bool { return i%2 == 0 }, false},          // the walk finds rows at once
		"late":   {func(i int) bool { return i >= 2750 }, true},          // 250 at the end of the order
		"many":   {func(i int) bool { return i >= 1000 }, false},         // none at first, but too many to gather
		"middle": {func(i int) bool { return i/250 == 5 }, true},         // a run of 250
		"begin":  {func(i int) bool { return i < 16 || i > 2780 }, true}, // the first pages are in the sample
	}
	var ws []core.Write
	for i := range items {
		d := fmt.Sprintf(`{"id":"%04d","pk":"p%03d"`, i, i/10)
		for name, f := range fields {
			if f.has(i) {
				d += fmt.Sprintf(`,"%s":%d`, name, 1+i%7)
			} else {
				d += fmt.Sprintf(`,"%s":0`, name)
			}
		}
		ws = append(ws, core.Write{Kind: core.Create, Doc: mustDoc(t, d+"}")})
	}
	for _, o := range c.WriteMany(bg, ws, true) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	for name, f := range fields {
		var want []string
		for i := range items {
			if f.has(i) {
				want = append(want, fmt.Sprintf("%04d", i))
			}
		}
		pages := []int{5, 40}
		if len(want) < 300 {
			pages = append(pages, 1)
		}
		for _, page := range pages {
			got, turned := readPages(t, c, keyRange(name, page))
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s, pages of %d: %d rows, want %d:\n%v", name, page, len(got), len(want), got)
			}
			if page == 5 && turned != f.turns {
				t.Errorf("%s, pages of %d: a walk turned: %v, want %v", name, page, turned, f.turns)
			}
		}
	}
	rows := readSome(t, c, keyRange("late", 5), 5)
	text := rows.Explain(true).String()
	rows.Close()
	for _, want := range []string{"KeyOrder (exists /pk) [rows 3000, ",
		"PartitionScan [rows 3000, cost 24000, gave 32]",
		"IndexScan (range /late =1 -) [rows 250, cost 2750, gave 5, entries 250]"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// readSome reads rows of a query, which the caller closes.
func readSome(t *testing.T, c *core.Container, q *exec.Query, most int) *exec.Rows {
	t.Helper()
	rows, err := c.Query(bg, q)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < most && rows.Next(); n++ {
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return rows
}

// readPages reads a query page by page, and reports whether a walk turned in one of the pages.
func readPages(t *testing.T, c *core.Container, q *exec.Query) (ids []string, turned bool) {
	t.Helper()
	for {
		rows, err := c.Query(bg, q)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < q.Page && rows.Next(); n++ {
			ids = append(ids, rows.Item().ID().Str())
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		turned = turned || rows.Stats().Turned > 0
		q.Continuation = rows.Continuation()
		rows.Close()
		if q.Continuation == "" {
			return ids, turned
		}
	}
}
