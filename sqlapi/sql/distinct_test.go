package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
)

// TestDistinctGoesOn: pages of a DISTINCT continue where the previous one ended, if equal rows are neighbours or if the
// continuation lists the rows. With more rows than it can list, each page runs from the start and still returns each
// row once.
func TestDistinctGoesOn(t *testing.T) {
	const items = 600
	c := containers(t)["16 slots, all indexed"]
	for i := range items {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"i%d","pk":"p%d","few":%d,"many":%d}`, i, i%7, i%20, i%300),
			doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		insert(t, c, d)
	}
	for _, q := range []struct {
		text       string
		size, rows int
		reads      int // number of items that all pages together may read
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
			t.Errorf("%s: %d rows, wanted %d; %d items read, wanted at most %d", q.text, len(seen), q.rows,
				reads, q.reads)
		}
	}
}

// TestOneNumber: if equal numbers are combined, the result doesn't depend on which one came first.
func TestOneNumber(t *testing.T) {
	texts := []string{`{"id":"1","n":1,"o":{"x":2.0}}`, `{"id":"2","n":1.0,"o":{"x":2}}`,
		`{"id":"3","n":100.0,"o":{"x":[3.0]}}`}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		var docs []doc.Doc
		for _, i := range order {
			d, err := doc.FromJSON(nil, []byte(texts[i]), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, d)
		}
		for text, want := range map[string]string{
			`SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n`:                        `1 100`,
			`SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n ORDER BY c.n`:           `{"n":1,"k":2} {"n":100,"k":1}`,
			`SELECT VALUE [MIN(c.n), MAX(c.n)] FROM c`:                             `[1,100]`,
			`SELECT DISTINCT VALUE c.o FROM c WHERE c.n = 1`:                       `{"x":2}`,
			`SELECT VALUE ARRAY(SELECT DISTINCT VALUE c.o.x) FROM c ORDER BY c.id`: `[2] [2] [[3]]`,
			`SELECT VALUE MAKESET(c.o.x) FROM c WHERE c.n = 1`:                     `[2]`,
		} {
			rows, err := evalDocs(text, nil, docs, 0)
			if err != nil || strings.Join(rows, " ") != want {
				t.Errorf("%s gives %v %v, wanted %s", text, rows, err, want)
			}
		}
	}
}

// TestListLimit: a list that grows beyond its limit is refused, not cut.
func TestListLimit(t *testing.T) {
	d, err := doc.FromJSON(nil, []byte(`{"id":"1","s":"`+strings.Repeat("x", 1<<20)+`"}`),
		doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	docs := []doc.Doc{d, d, d, d, d}
	if _, err := evalDocs(`SELECT VALUE ARRAY_LENGTH(MAKELIST(c.s)) FROM c`, nil, docs[:3], 0); err != nil {
		t.Error(err)
	}
	if _, err := evalDocs(`SELECT VALUE ARRAY_LENGTH(MAKELIST(c.s)) FROM c`, nil, docs, 0); status.CodeOf(err) !=
		status.BadRequest {
		t.Errorf("five megabytes in one list: %v", err)
	}
	if rows, err := evalDocs(`SELECT VALUE ARRAY_LENGTH(MAKESET(c.s)) FROM c`, nil, docs, 0); err != nil ||
		rows[0] != "1" {
		t.Errorf("a set of equal strings: %v %v", rows, err)
	}
}

// TestSlowPattern: a pattern with endless backtracking ends the query, for constant and other patterns.
func TestSlowPattern(t *testing.T) {
	d, err := doc.FromJSON(nil, []byte(`{"id":"1","s":"`+strings.Repeat("a", 40)+`"}`),
		doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`SELECT VALUE REGEXMATCH(c.s, "(?=a)(a+)+$b") FROM c`,
		`SELECT * FROM c WHERE REGEXMATCH("` + strings.Repeat("a", 40) + `", "(?=a)(a+)+$b")`} {
		if _, err := evalDocs(text, nil, []doc.Doc{d, d, d}, 0); status.CodeOf(err) != status.Timeout {
			t.Errorf("%s: %v, wanted a timeout", text, err)
		}
	}
}

// TestPatternMemory: a pattern may keep many alternatives to go back to, as it needs for a long text, but not any
// number.
func TestPatternMemory(t *testing.T) {
	for length, want := range map[int]status.Code{40_000: 0, 2_000_000: status.Timeout} {
		d, err := doc.FromJSON(nil, []byte(`{"id":"1","s":"`+strings.Repeat("ab", length/2)+`c"}`),
			doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := evalDocs(`SELECT VALUE REGEXMATCH(c.s, "(?=a)(?:a|b|ab)*c") FROM c`, nil, []doc.Doc{d}, 0)
		if want == 0 && (err != nil || rows[0] != "true") || want != 0 && status.CodeOf(err) != want {
			t.Errorf("a text of %d: %v %v", length, rows, err)
		}
	}
}
