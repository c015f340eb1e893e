package sqlapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// types are the functions by which clients ask for the values of types, in the order of types.
var types = []string{"NOT IS_DEFINED", "IS_NULL", "IS_BOOLEAN", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT"}

// typeOf returns the place of a value's type among types.
func typeOf(v string) int {
	switch {
	case v == "":
		return 0
	case v == "null":
		return 1
	case v == "true" || v == "false":
		return 2
	case v[0] == '"':
		return 4
	}
	return 3
}

// behind is the condition for what comes behind a value in an order, as the client of Java writes it.
func behind(path, v string, desc, inclusive bool) string {
	op, rest := ">", types[typeOf(v)+1:]
	if desc {
		op, rest = "<", types[:typeOf(v)]
	}
	if inclusive {
		op += "="
	}
	out := path + " " + op + " " + v
	if v == "" {
		out = map[string]string{">": "IS_DEFINED(%s)", ">=": "true", "<": "false", "<=": "NOT IS_DEFINED(%s)"}[op]
		out = strings.ReplaceAll(out, "%s", path)
	}
	for _, is := range rest {
		out += " OR " + is + "(" + path + ")"
	}
	return out
}

// continued runs a rewritten query with a filter of a client, and returns the values of its rows and its metrics.
func (a *api) continued(filter, order string, paths []string, headers ...string) (rows []string, metrics string) {
	a.t.Helper()
	var items []string
	for _, p := range paths {
		items = append(items, `{"item":`+p+`}`)
	}
	text := "SELECT c._rid, [" + strings.Join(items, ",") + "] AS orderByItems, c AS payload FROM c " +
		"WHERE ((true) AND (" + filter + ")) ORDER BY " + order
	r := a.do("POST", docs, `{"query":`+strconv.Quote(text)+`}`, append(headers, "x-ms-documentdb-isquery: True",
		"x-ms-documentdb-query-enablecrosspartition: True", "x-ms-documentdb-populatequerymetrics: True",
		"Content-Type: application/query+json")...).is(200)
	for _, row := range strings.Split(r.body, `"orderByItems":[`)[1:] {
		row, _, _ = strings.Cut(row, "]")
		rows = append(rows, row)
	}
	return rows, r.h.Get("x-ms-documentdb-query-metrics")
}

// A client that writes the place where it goes on into the text gets the rows from there, whatever their types are.
func TestContinuedOrders(t *testing.T) {
	for name, vals := range map[string][]string{"all have a value": resumed[1:], "some have none": resumed} {
		a := withContainer(t)
		for i, v := range vals {
			if v != "" {
				v = `,"v":` + v
			}
			a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"%d"%s}`, i, i, v), key(fmt.Sprint(i))).is(201)
		}
		for _, desc := range []bool{false, true} {
			order := "c.v"
			if desc {
				order += " DESC"
			}
			all, _ := a.continued("true", order, []string{"c.v"})
			for i, v := range vals {
				at := i
				if desc {
					at = len(vals) - 1 - i
				}
				got, _ := a.continued(behind("c.v", v, desc, true), order, []string{"c.v"})
				if !slices.Equal(got, all[at:]) {
					t.Errorf("%s, %s from %q: %v, want %v", name, order, v, got, all[at:])
				}
				got, _ = a.continued(behind("c.v", v, desc, false), order, []string{"c.v"})
				if !slices.Equal(got, all[at+1:]) {
					t.Errorf("%s, %s behind %q: %v, want %v", name, order, v, got, all[at+1:])
				}
			}
		}
	}
}

// Going on costs what the page costs, wherever it begins.
func TestContinuedCosts(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"},"indexingPolicy":{
		"includedPaths":[{"path":"/*"}],
		"compositeIndexes":[[{"path":"/k"},{"path":"/v","order":"descending"}]]}}`).is(201)
	for i := range 400 {
		pk, v := fmt.Sprint(i%50), fmt.Sprint(i)
		if i >= 300 {
			v = `"` + v + `"`
		}
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"%s","v":%s,"k":%d}`, i, pk, v, i%2), key(pk)).is(201)
	}
	one, two := []string{"c.v"}, []string{"c.k", "c.v"}
	for _, tc := range []struct {
		filter, order string
		paths         []string
		first         string
	}{
		{"c.v >= 250", "c.v", one, "250"},
		{behind("c.v", "250", false, true), "c.v", one, "250"},
		{behind("c.v", `"350"`, false, false), "c.v", one, `"351"`},
		{behind("c.v", "250", true, true), "c.v DESC", one, "250"},
		{behind("c.v", `"350"`, true, false), "c.v DESC", one, `"349"`},
		{`c.id >= "250"`, "c.id", []string{"c.id"}, `"250"`},
		{behind("c.id", `"350"`, true, true), "c.id DESC", []string{"c.id"}, `"350"`},
		{behind("c._ts", "1", false, true), "c._ts", []string{"c._ts"}, ""},
		{"c.v < 3 OR c.v > 290", "c.v DESC", one, "299"},
		{"(c.k > 0 ) OR (c.k = 0 AND c.v <= 200 )", "c.k, c.v DESC", two, "0"},
		{"((" + behind("c.k", "1", false, false) + ")) OR ((c.k = 1) AND (" + behind("c.v", "151", true, true) + "))",
			"c.k, c.v DESC", two, "1"},
		{"((" + behind("c.k", "1", true, false) + ")) OR ((c.k = 1) AND (" + behind("c.v", "151", false, false) + "))",
			"c.k DESC, c.v", two, "1"},
	} {
		rows, metrics := a.continued(tc.filter, tc.order, tc.paths, "x-ms-max-item-count: 5")
		if len(rows) != 5 || !strings.HasPrefix(rows[0], `{"item":`+tc.first) ||
			!strings.Contains(metrics, "retrievedDocumentCount=5;") {
			t.Errorf("%s ORDER BY %s: %v, %s", tc.filter, tc.order, rows, metrics)
		}
	}
}

// BenchmarkContinuedOrder reads a page deep in an order.
func BenchmarkContinuedOrder(b *testing.B) {
	a := withContainer(b)
	for i := range 5000 {
		pk := fmt.Sprint(i % 50)
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"%s","v":%d}`, i, pk, i), key(pk)).is(201)
	}
	b.ReportAllocs()
	for b.Loop() {
		a.continued(behind("c.v", "4500", false, true), "c.v", []string{"c.v"}, "x-ms-max-item-count: 10")
	}
}
