package sql

import (
	"context"
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
)

// TestDistinctGoesOn: pages of a DISTINCT go on where the last one ended, whether its equal rows are neighbours or a
// continuation lists what was given; with more rows than that it begins anew, and still gives each row once.
func TestDistinctGoesOn(t *testing.T) {
	const items = 600
	c := containers(t)["16 slots, all indexed"]
	for i := range items {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"i%d","pk":"p%d","few":%d,"many":%d}`, i, i%7, i%20, i%300), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		insert(t, c, d)
	}
	for _, q := range []struct {
		text       string
		size, rows int
		reads      int // items that all pages together may read
	}{
		{"SELECT DISTINCT VALUE c.few FROM c", 1, 20, 2 * items},
		{"SELECT DISTINCT c.few, c.pk FROM c", 10, 140, 2 * items},
		{"SELECT DISTINCT VALUE c.many FROM c ORDER BY c.many", 10, 300, 2 * items},
		{"SELECT DISTINCT c.many, c.many AS m FROM c ORDER BY c.many DESC", 10, 300, 2 * items},
		{"SELECT DISTINCT VALUE c.many FROM c ORDER BY c.many OFFSET 20 LIMIT 200", 7, 200, 2 * items},
		{"SELECT DISTINCT TOP 15 VALUE c.few FROM c", 2, 15, 2 * items},
		{"SELECT DISTINCT VALUE c.many FROM c", 50, 300, 8 * items},
	} {
		req, seen, reads := Request{PageSize: q.size}, map[string]bool{}, 0
		for {
			pl, err := Compile(q.text, nil, testEnv)
			if err != nil {
				t.Fatal(err)
			}
			out := &Page{}
			if err := pl.Execute(context.Background(), c, req, out); err != nil {
				t.Fatal(err)
			}
			reads += out.Metrics.ItemsRead
			for _, row := range splitRows(string(out.Body)) {
				if seen[row] {
					t.Errorf("%s: %s came twice", q.text, row)
				}
				seen[row] = true
			}
			if req.Continuation = out.Continuation; req.Continuation == "" {
				break
			}
		}
		if len(seen) != q.rows || reads > q.reads {
			t.Errorf("%s: %d rows, wanted %d; %d items read, wanted at most %d", q.text, len(seen), q.rows, reads, q.reads)
		}
	}
}
