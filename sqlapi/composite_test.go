package sqlapi

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The explanation of a query that uses a composite index says so, and its rows are those of a container without it, in
// the same order.
func TestCompositeIndexes(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	const composites = `"compositeIndexes":[[{"path":"/g","order":"ascending"},{"path":"/a","order":"descending"}],` +
		`[{"path":"/pk"},{"path":"/a"}],[{"path":"/g"},{"path":"/o/x"},{"path":"/_ts"}]]`
	const def = `{"id":%q,"partitionKey":{"paths":["/pk"],"version":2},` +
		`"indexingPolicy":{"includedPaths":[{"path":"/*"}]%s}}`
	a.do("POST", "/dbs/db/colls", fmt.Sprintf(def, "c", ","+composites)).is(201)
	a.do("POST", "/dbs/db/colls", fmt.Sprintf(def, "plain", "")).is(201)
	vals := []string{`1`, `2`, `3.5`, `"x"`, `"y"`, `null`, `true`}
	for i := range 240 {
		pk, g := fmt.Sprintf("p%d", i%3), vals[i*i%len(vals)]
		field := `,"g":` + g
		if i%11 == 0 {
			field = ""
		}
		for _, c := range []string{"c", "plain"} {
			a.do("POST", "/dbs/db/colls/"+c+"/docs",
				fmt.Sprintf(`{"id":"%d","pk":"%s"%s,"a":%d,"o":{"x":%d}}`, i, pk, field, i*17%60, i%5), key(pk)).is(201)
		}
	}
	run := func(c, text string, headers ...string) *reply {
		t.Helper()
		h := append([]string{"x-ms-documentdb-isquery: True", "x-ms-documentdb-query-enablecrosspartition: True",
			"x-orrery-explain: true", "x-ms-max-item-count: -1"}, headers...)
		return a.do("POST", "/dbs/db/colls/"+c+"/docs", `{"query":"`+text+`"}`, h...).is(200)
	}
	// Both containers got their items in the same order, so ties are equal.
	documents := func(r *reply) string { return r.body[strings.Index(r.body, `"Documents"`):] }
	for _, x := range []struct{ text, access, index, pk string }{
		{`SELECT c.id, c.g, c.a FROM c ORDER BY c.g, c.a DESC`, "ordered index", `["/g ASC","/a DESC"]`, ""},
		{`SELECT c.id, c.g, c.a FROM c ORDER BY c.g DESC, c.a`, "ordered index", `["/g ASC","/a DESC"]`, ""},
		{`SELECT c.id FROM c WHERE c.g = 2 ORDER BY c.a DESC`, "ordered index", `["/g ASC","/a DESC"]`, ""},
		{`SELECT c.id FROM c WHERE c.g = 2 ORDER BY c.a`, "ordered index", `["/g ASC","/a DESC"]`, ""},
		{`SELECT c.id FROM c WHERE c.g = 2 AND c.a > 30 ORDER BY c.g, c.a DESC OFFSET 3 LIMIT 5`, "ordered index",
			`["/g ASC","/a DESC"]`, ""},
		{`SELECT TOP 10 c.id FROM c WHERE c.pk = 'p1' ORDER BY c.pk, c.a`, "ordered index",
			`["/pk ASC","/a ASC"]`, "p1"},
		{`SELECT c.id FROM c ORDER BY c.a DESC`, "ordered index", `["/pk ASC","/a ASC"]`, "p1"},
		{`SELECT * FROM c WHERE c.a < 5`, "index", `["/pk ASC","/a ASC"]`, "p1"},
		{`SELECT c.id FROM c ORDER BY c.g, c.o.x, c._ts`, "ordered index", `["/g ASC","/o/x ASC","/_ts ASC"]`, ""},
		{`SELECT c.id FROM c WHERE c.g = 'y' AND c.o.x = 3`, "index", `["/g ASC","/o/x ASC","/_ts ASC"]`, ""},
	} {
		var h []string
		if x.pk != "" {
			h = append(h, key(x.pk))
		}
		r, plain := run("c", x.text, append(h, "x-ms-cosmos-populateindexmetrics-V2: True")...),
			run("plain", x.text, h...)
		e := explained(t, r)
		if e.Access != x.access || e.Sorted || !reflect.DeepEqual(e.Indexes, []string{x.index}) ||
			!strings.Contains(e.Plan, "on composite /") {
			t.Errorf("%s: %+v", x.text, e)
		}
		if use := strings.ReplaceAll(r.h.Get("x-ms-cosmos-index-utilization"), "%22", `"`); !strings.Contains(
			use, `"CompositeIndexes":[{"IndexSpecs":`+x.index) {
			t.Errorf("%s: %s", x.text, use)
		}
		if p := explained(t, plain); strings.Contains(p.Plan, "composite") {
			t.Errorf("%s without composite indexes: %+v", x.text, p)
		}
		if strings.HasPrefix(e.Access, "ordered") && documents(r) != documents(plain) {
			t.Errorf("%s: %s\nwant %s", x.text, documents(r), documents(plain))
		}
		if e.Rows == 0 || e.Rows != explained(t, plain).Rows {
			t.Errorf("%s: %d rows", x.text, e.Rows)
		}
	}
	// An order that the index doesn't have is sorted.
	for _, text := range []string{`SELECT c.id FROM c ORDER BY c.g, c.a`, `SELECT c.id FROM c ORDER BY c.a, c.g DESC`,
		`SELECT c.id FROM c ORDER BY c.g, c.o.x`} {
		r := a.do("POST", docs, `{"query":"`+text+`"}`, "x-ms-documentdb-isquery: True",
			"x-ms-documentdb-query-enablecrosspartition: True", "x-orrery-explain: true")
		if r.code != 200 {
			continue // the server is strict and refuses it
		}
		if e := explained(t, r); !e.Sorted {
			t.Errorf("%s: %+v", text, e)
		}
	}
}
