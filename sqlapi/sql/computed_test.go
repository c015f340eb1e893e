package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/sqlapi/sql/expand"
)

var computedDefs = []expand.Property{
	{Name: "lower", Query: `SELECT VALUE LOWER(c.name) FROM c`},
	{Name: "price", Query: `SELECT VALUE x.n * 2 FROM x`},
	{Name: "stored", Query: `SELECT VALUE c.n FROM c`},
	{Name: "big", Query: `SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t >= c.n) FROM c`},
	{Name: "deep", Query: `SELECT VALUE {"a": [c.n]} FROM c`},
}

// computedRows runs a query with pages of a size and returns its rows.
func computedRows(t *testing.T, text string, page int, comp *expand.Computed) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, c := range containers(t) {
		for i, s := range []string{"Bob", "anna", "CLARA", "bob", "Dora"} {
			d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"%d","name":"%s","n":%d,"tags":[1,3],`+
				`"price":"hidden","big":7}`, i, i%2, s, i), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			insert(t, c, d)
		}
		env := *testEnv
		env.Computed = comp
		pl, err := Compile(text, nil, &env)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var rows []string
		for cont := ""; ; {
			var p Page
			if err := pl.Execute(context.Background(), c, Request{PageSize: page, Continuation: cont}, &p); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if p.Count > 0 {
				rows = append(rows, string(p.Body))
			}
			if cont = p.Continuation; cont == "" {
				break
			}
		}
		out[name] = strings.Join(rows, ",")
	}
	return out
}

// Computed properties are replaced by their expressions wherever a query may read a property, with every index and page
// size.
func TestComputed(t *testing.T) {
	comp, err := NewComputed(computedDefs)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ text, want string }{
		{`SELECT c.lower FROM c WHERE c.n = 2`, `{"lower":"clara"}`},
		{`SELECT VALUE c["lower"] FROM c WHERE c.id = "0"`, `"bob"`},
		{`SELECT c.stored, c.price, LOWER(c.lower) FROM c WHERE c.n = 2`, `{"stored":2,"price":4,"$1":"clara"}`},
		{`SELECT * FROM c WHERE c.lower = "anna"`, `{"id":"1","pk":"1","name":"anna","n":1,"tags":[1,3],` +
			`"price":"hidden","big":7}`},
		{`SELECT VALUE c FROM c WHERE c.stored = 1`, `{"id":"1","pk":"1","name":"anna","n":1,"tags":[1,3],` +
			`"price":"hidden","big":7}`},
		{`SELECT VALUE c.name FROM c WHERE c.lower = "bob" ORDER BY c.n`, `"Bob","bob"`},
		{`SELECT VALUE c.name FROM c WHERE c.lower > "b" AND c.price < 5 ORDER BY c.lower`, `"Bob","CLARA"`},
		{`SELECT VALUE r.n FROM root r ORDER BY r.lower, r.n DESC`, `1,3,0,2,4`},
		{`SELECT VALUE r.n FROM root r ORDER BY r.lower DESC, r.price ASC`, `4,2,0,3,1`},
		{`SELECT VALUE c.price FROM c ORDER BY c.stored DESC OFFSET 1 LIMIT 2`, `6,4`},
		{`SELECT VALUE c.n FROM c WHERE c.price = "hidden"`, ``}, // the expression, not the stored field
		{`SELECT c.lower, COUNT(1) AS n FROM c GROUP BY c.lower ORDER BY c.lower`, `{"lower":"anna","n":1},` +
			`{"lower":"bob","n":2},{"lower":"clara","n":1},{"lower":"dora","n":1}`},
		{`SELECT VALUE SUM(c.price) FROM c`, `20`},
		{`SELECT DISTINCT VALUE c.deep.a[0] FROM c WHERE c.deep.a[0] > 3`, `4`},
		{`SELECT VALUE {"n": c.n, "t": t} FROM c JOIN t IN c.big WHERE c.n = 2`, `{"n":2,"t":3}`},
		{`SELECT VALUE t.big FROM t WHERE t.n = 1`, `[1,3]`}, // an alias in the definition doesn't capture the query's
		{`SELECT VALUE (SELECT VALUE c.lower FROM c IN c.tags) FROM c WHERE c.n = 0`, ``},
		{`SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE z FROM c z WHERE z.lower = "dora")`, `4`},
		{`SELECT VALUE s.l FROM (SELECT c.lower AS l FROM c WHERE c.n = 4) s`, `"dora"`},
	} {
		for _, page := range []int{1, 100} {
			for name, got := range computedRows(t, x.text, page, comp) {
				if got != x.want {
					t.Errorf("%s: %s, pages of %d: %s, want %s", x.text, name, page, got, x.want)
				}
			}
		}
	}
	// A container without computed properties reads the stored fields. Programs of one container are never used for the
	// other.
	for _, got := range computedRows(t, `SELECT VALUE c.n FROM c WHERE c.price = "hidden" AND c.n = 1`, 10, nil) {
		if got != "1" {
			t.Errorf("without computed properties: %s", got)
		}
	}
}

func TestComputedRefused(t *testing.T) {
	for _, x := range []struct{ name, query string }{
		{"", `SELECT VALUE c.a FROM c`}, {"id", `SELECT VALUE c.a FROM c`}, {"_ts", `SELECT VALUE c.a FROM c`},
		{"a\x00b", `SELECT VALUE c.a FROM c`}, {"lower", `SELECT VALUE c.a FROM c`},
		{"x", ``}, {"x", `SELECT VALUE`}, {"x", `SELECT * FROM c`}, {"x", `SELECT c.a FROM c`}, {"x", `SELECT VALUE 1`},
		{"x", `SELECT VALUE c.a FROM c WHERE c.a > 1`}, {"x", `SELECT TOP 1 VALUE c.a FROM c`},
		{"x", `SELECT DISTINCT VALUE c.a FROM c`},
		{"x", `SELECT VALUE c.a FROM c ORDER BY c.a`}, {"x", `SELECT VALUE c.a FROM c OFFSET 0 LIMIT 1`},
		{"x", `SELECT VALUE COUNT(1) FROM c`}, {"x", `SELECT VALUE c.a FROM c GROUP BY c.a`},
		{"x", `SELECT VALUE t FROM t IN c.a`},
		{"x", `SELECT VALUE t FROM c JOIN t IN c.a`}, {"x", `SELECT VALUE c.a + @p FROM c`},
		{"x", `SELECT VALUE EXISTS(SELECT VALUE 1 FROM c) FROM c`},
		{"x", `SELECT VALUE udf.f(c.a) FROM c`}, {"x", `SELECT VALUE d.a FROM c`}, {"x", `SELECT VALUE c.lower FROM c`},
		{"x", `SELECT VALUE NO_SUCH(c.a) FROM c`},
	} {
		if _, err := NewComputed([]expand.Property{computedDefs[0], {Name: x.name, Query: x.query}}); err == nil {
			t.Errorf("%q %s: accepted", x.name, x.query)
		}
	}
	long, err := NewComputed([]expand.Property{
		{Name: "x", Query: `SELECT VALUE [c.a` + strings.Repeat(`, c.a`, 5000) + `] FROM c`}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(`SELECT [c.x`+strings.Repeat(`, c.x`, 50)+`] FROM c`, nil, &Env{Computed: long}); err == nil {
		t.Error("a query that is short and expands to much is accepted")
	}
	if c, err := NewComputed(nil); c != nil || err != nil {
		t.Errorf("%v %v", c, err)
	}
}

// Any definition is refused or valid, and any text compiles or is refused, with and without computed properties.
func FuzzComputed(f *testing.F) {
	f.Add(`SELECT VALUE LOWER(c.name) FROM c`, `SELECT c.x, COUNT(1) FROM c JOIN t IN c.x WHERE c.x = 1 GROUP BY c.x`)
	f.Add(`SELECT VALUE ARRAY(SELECT VALUE t + c.a FROM t IN c.l) FROM c`,
		`SELECT * FROM (SELECT VALUE z FROM z) s ORDER BY s.x`)
	f.Add(`SELECT VALUE c FROM c`, `SELECT TOP 1 c.x FROM c ORDER BY c.x, c.x DESC OFFSET 1 LIMIT 2`)
	f.Fuzz(func(t *testing.T, def, text string) {
		comp, err := NewComputed([]expand.Property{{Name: "x", Query: def}})
		if err != nil {
			comp, _ = NewComputed(computedDefs)
		}
		_, _ = Compile(text, nil, &Env{Computed: comp})
	})
}
