package sql

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
)

// sortingQueries are queries with orders that no index has.
var sortingQueries = []string{
	`SELECT * FROM c ORDER BY c.k`,
	`SELECT c.id, c.n FROM c WHERE c.n > 100 ORDER BY c.k DESC, c.n`,
	`SELECT VALUE c.n FROM c ORDER BY c.m OFFSET 40 LIMIT 900`,
	`SELECT TOP 700 VALUE c.id FROM c ORDER BY c.m DESC`,
	`SELECT c.id, x FROM c JOIN x IN c.k ORDER BY c.n DESC`,
}

// The rows of a sort are the same in one page, in pages that continue with the kept state, in memory and in files, and
// in pages after the state is lost.
func TestSortedRowsAreKept(t *testing.T) {
	const items = 2000
	_, plain, _ := grouped(t, items, budget.New(64<<20, 0), spill.Options{})
	e, tight, files := grouped(t, items, budget.New(300<<10, 0), spill.Options{})
	roomy, wide, _ := grouped(t, items, budget.New(64<<20, 0), spill.Options{})
	for _, text := range sortingQueries {
		want, _ := allPages(t, plain, text, Request{}, nil)
		for name, tc := range map[string]struct {
			e       *core.Engine
			c       *core.Container
			size    int
			between func()
		}{
			"spilled":              {e, tight, 0, nil},
			"spilled, by pages":    {e, tight, 70, nil},
			"spilled, one is lost": {e, tight, 300, e.Kept().Drop},
			"by pages":             {roomy, wide, 70, nil},
			"kept is lost":         {roomy, wide, 300, roomy.Kept().Drop},
		} {
			if got, _ := allPages(t, tc.c, text, Request{PageSize: tc.size}, tc.between); got != want {
				t.Errorf("%s, %s:\n got %.300s\nwant %.300s", text, name, got, want)
			}
			if n := tc.e.Kept().Len(); n != 0 {
				t.Errorf("%s, %s: %d states are kept behind the last page", text, name, n)
			}
		}
	}
	if files.Written() == 0 {
		t.Error("nothing was written")
	}
}

// All pages of a sort cost about as much as the first two: the second one sorts all remaining rows.
func TestSortedPagesCostTwoPasses(t *testing.T) {
	for _, limit := range []int64{300 << 10, 64 << 20} {
		_, c, _ := grouped(t, 3000, budget.New(limit, 0), spill.Options{})
		for _, text := range sortingQueries[:2] {
			_, charges := allPages(t, c, text, Request{PageSize: 100}, nil)
			all := 0.0
			for _, n := range charges {
				all += n
			}
			if len(charges) < 25 || all > 2*charges[0]+float64(len(charges))*2.5 {
				t.Errorf("%s: %d pages cost %.1f, the first one %.1f", text, len(charges), all, charges[0])
			}
		}
	}
}

// Items that are too large to be written with their rows are fetched when their rows are returned. The state of such a
// sort isn't kept, and a page holds only its own items.
func TestSortsOfLargeItemsAreNotKept(t *testing.T) {
	e, c, _ := grouped(t, 40, budget.New(64<<20, 0), spill.Options{})
	for i := range 300 {
		insertJSON(t, c, `{"id":"large `+strings.Repeat("i", i+1)+`","k":5,"text":"`+strings.Repeat("x", 200<<10)+`"}`)
	}
	want, _ := allPages(t, c, `SELECT VALUE c.id FROM c ORDER BY c.k`, Request{}, nil)
	got, charges := allPages(t, c, `SELECT VALUE c.id FROM c ORDER BY c.k`, Request{PageSize: 30}, func() {
		if e.Kept().Len() > 0 {
			t.Error("the rows are kept")
		}
	})
	if got != want || len(charges) != 12 {
		t.Errorf("%d pages:\n got %.300s\nwant %.300s", len(charges), got, want)
	}
}
