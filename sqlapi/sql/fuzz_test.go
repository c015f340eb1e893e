package sql

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/gateway"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// seeds are the queries of all scripts.
func seeds(t testing.TB) (out []string) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			if strings.HasPrefix(line, "> ") {
				text := line[2:]
				if !strings.HasPrefix(strings.ToUpper(text), "SELECT") {
					text = "SELECT VALUE " + text + " FROM c"
				}
				out = append(out, text)
			}
		}
	}
	return out
}

var fuzzDocs = func() []doc.Doc {
	var out []doc.Doc
	for _, s := range []string{
		`{"id":"1","pk":"a","n":10,"s":"one","tags":["x","y"],"o":{"p":{"q":1}},"kids":[{"g":"m","age":3}]}`,
		`{"id":"2","pk":"b","n":null,"s":"","tags":[],"o":[1,[2]]}`,
	} {
		d, err := doc.FromJSON(nil, []byte(s), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			panic(err)
		}
		out = append(out, d)
	}
	return out
}()

// checkText passes a text through everything that a client can reach. It must be answered or refused as a bad request.
// A printed tree must parse again, and the text of a query plan must compile.
func checkText(t testing.TB, text string) {
	params := []Param{{Name: "@p", Value: value.StringOf("a")}, {Name: "@n", Value: value.IntOf(1)}}
	q, err := syntax.Parse(text, syntax.DefaultLimits())
	if err != nil {
		refused(t, text, err)
		return
	}
	printed := syntax.PrintQuery(q)
	_, err = syntax.Parse(printed, syntax.DefaultLimits())
	if err != nil && !strings.Contains(err.Error(), "nested") && !strings.Contains(err.Error(), "exceeded") {
		t.Fatalf("%q prints as %q, which is refused: %v", text, printed, err)
	}
	rows, err := evalDocs(text, params, fuzzDocs, 0)
	if err != nil {
		refused(t, text, err)
	}
	for _, r := range rows {
		if strings.HasPrefix(r, "bad JSON") {
			t.Fatalf("%q gives %s", text, r)
		}
	}
	plan, err := QueryPlan(text, params, nil, core.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2})
	if err != nil {
		refused(t, text, err)
		return
	}
	v, err := doc.ValueFromJSON(plan)
	if err != nil {
		t.Fatalf("%q: plan is no JSON: %s", text, plan)
	}
	if re := v.Get("queryInfo").Get("rewrittenQuery").Str(); re != "" {
		re = strings.ReplaceAll(re, gateway.FilterPlaceholder, "true")
		if _, err := Compile(re, params, nil); err != nil && !strings.Contains(err.Error(), "nested") {
			t.Fatalf("%q is rewritten to %q, which is refused: %v", text, re, err)
		}
	}
}

// refused checks that an error is the client's.
func refused(t testing.TB, text string, err error) {
	var e *syntax.Error
	if errors.As(err, &e) {
		if e.Start > e.End || e.End > len(text) {
			t.Fatalf("%q: positions %d-%d of %q", text, e.Start, e.End, e.Msg)
		}
	}
	if c := status.CodeOf(err); c != status.BadRequest && c != status.Timeout {
		t.Fatalf("%q: %v is no bad request but %d", text, err, c)
	}
}

// FuzzQuery finds texts that panic, hang or cause an internal error.
func FuzzQuery(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tm := time.AfterFunc(10*time.Second, func() { panic("no answer in time: " + text) })
		defer tm.Stop()
		checkText(t, text)
	})
}

// TestRandomTokens tries 10,000 random token sequences, and mutations of known queries.
func TestRandomTokens(t *testing.T) {
	words := strings.Fields(
		`SELECT FROM WHERE ORDER BY GROUP JOIN IN c t c.a c.tags c["x"] [ ] ( ) { } , . : ? ?? = != < > <= >= + - * / %
		| || & ^ ~ << >> >>> AND OR NOT BETWEEN LIKE ESCAPE EXISTS ARRAY ALL FIRST LAST VALUE DISTINCT TOP OFFSET LIMIT AS ASC DESC
		1 2.5 1e9 "s" 's' @p @n null true undefined COUNT(1) SUM(c.n) MAX(c.s) LENGTH(c.s) udf.f( ARRAY_CONTAINS( "k": -- RANK LEFT( RIGHT(`)
	r := rand.New(rand.NewPCG(1, 2))
	known := seeds(t)
	start := time.Now()
	for i := range 10000 {
		var parts []string
		if i%2 == 0 {
			parts = append(parts, "SELECT")
			for range r.IntN(25) {
				parts = append(parts, words[r.IntN(len(words))])
			}
		} else {
			parts = strings.Fields(known[r.IntN(len(known))])
			for range 1 + r.IntN(3) {
				parts[r.IntN(len(parts))] = words[r.IntN(len(words))]
			}
		}
		checkText(t, strings.Join(parts, " "))
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("10,000 texts took %v", d)
	}
}

// TestDeepNesting: deeply nested texts are refused quickly, and long flat ones are answered.
func TestDeepNesting(t *testing.T) {
	for _, piece := range []string{"(", "[", "NOT ", "-", "~", "{\"a\":", "(SELECT VALUE ", "EXISTS(SELECT VALUE ",
		"true ? true : ", "c.a[", "ABS(", "LEFT("} {
		checkText(t, "SELECT VALUE "+strings.Repeat(piece, 100000/len(piece)))
	}
	for _, piece := range []string{" + 1", " - 1", " = 1", " || 'a'", " ?? 1", ".a", "[0]", " IN (1)", " LIKE 'a'",
		" BETWEEN 1 AND 2", " AND c.a", " OR c.a = 1", " ? 1 : 2"} {
		checkText(t, "SELECT VALUE c.a"+strings.Repeat(piece, 200000/len(piece))+" FROM c")
	}
	terms := make([]string, 1000)
	for i := range terms {
		terms[i] = `(c.id = "1" AND c.pk = "a")`
	}
	rows, err := evalDocs("SELECT * FROM c WHERE "+strings.Join(terms, " OR "), nil, fuzzDocs, 0)
	if err != nil || len(rows) != 1 {
		t.Errorf("1000 alternatives: %v %v", rows, err)
	}
	if _, err := syntax.Parse(strings.Repeat(" ", 600<<10), syntax.DefaultLimits()); err == nil {
		t.Error("a text above the limit was accepted")
	}
	long := "SELECT VALUE 1 IN (" + strings.Repeat("1,", 16000) + "1)"
	if _, err := syntax.Parse(long, syntax.DefaultLimits()); err == nil {
		t.Error("an IN list above the limit was accepted")
	}
	if _, err := syntax.Parse("SELECT * FROM c"+strings.Repeat(" JOIN c", 11), syntax.DefaultLimits()); err == nil {
		t.Error("more joins than allowed were accepted")
	}
}
