package sqlapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// resumed are the values in the order of ORDER BY, as members of a resume filter. Empty: the property is absent.
var resumed = []string{"", "null", "false", "true", "-1.5", "0", "2", "7", `""`, `"a"`, `"b"`}

// shownOrder returns the values of the rows of a rewritten query, as text. A resume filter may be empty.
func (a *api) shownOrder(order, filter string, headers ...string) (out []string, token string) {
	a.t.Helper()
	keys := strings.NewReplacer(" DESC", "", " ASC", "").Replace(order)
	var items []string
	for k := range strings.SplitSeq(keys, ", ") {
		items = append(items, `{\"item\":`+k+`}`)
	}
	body := `{"query":"SELECT c._rid, [` + strings.Join(items, ",") + `] AS orderByItems, c AS payload FROM c ` +
		`WHERE ((true)) ORDER BY ` + order + `"`
	if filter != "" {
		body += `,"resumeFilter":` + filter
	}
	r := a.do("POST", docs, body+"}", append(headers, "x-ms-documentdb-isquery: True",
		"x-ms-documentdb-query-enablecrosspartition: True", "Content-Type: application/query+json")...).is(200)
	var rows struct {
		Documents []struct {
			OrderByItems []struct{ Item json.RawMessage }
		}
	}
	if err := json.Unmarshal([]byte(r.body), &rows); err != nil {
		a.t.Fatal(err)
	}
	for _, d := range rows.Documents {
		var row []string
		for _, it := range d.OrderByItems {
			row = append(row, string(it.Item))
		}
		out = append(out, strings.Join(row, " "))
	}
	return out, r.h.Get("x-ms-continuation")
}

// resumeFilter is the member resumeFilter for values.
func resumeFilter(exclude bool, vals ...string) string {
	for i, v := range vals {
		if v == "" {
			vals[i] = "[]"
		}
	}
	return fmt.Sprintf(`{"value":[%s],"rid":null,"exclude":%t}`, strings.Join(vals, ","), exclude)
}

// A client that goes on in the middle of an order gets the rows from there, whatever the types of the values are.
func TestResumedOrders(t *testing.T) {
	a := withContainer(t)
	for i, v := range resumed {
		for j := range 2 { // two rows of each value
			item := fmt.Sprintf(`{"id":"%d-%d","pk":"%d"`, i, j, i)
			if v != "" {
				item += `,"v":` + v
			}
			a.do("POST", docs, item+"}", key(fmt.Sprint(i))).is(201)
		}
	}
	for _, order := range []string{"c.v", "c.v DESC"} {
		all, _ := a.shownOrder(order, "")
		if len(all) != 2*len(resumed) {
			t.Fatalf("%s: %q", order, all)
		}
		for _, v := range resumed {
			from := slices.Index(all, v)
			got, _ := a.shownOrder(order, resumeFilter(false, v))
			if !slices.Equal(got, all[from:]) {
				t.Errorf("%s from %q: %q", order, v, got)
			}
			if got, _ = a.shownOrder(order, resumeFilter(true, v)); !slices.Equal(got, all[from+2:]) {
				t.Errorf("%s behind %q: %q", order, v, got)
			}
		}
	}
}

// The same by two values.
func TestResumedOrdersOfTwo(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},`+
		`"indexingPolicy":{"compositeIndexes":[[{"path":"/v","order":"ascending"},`+
		`{"path":"/w","order":"descending"}]]}}`).is(201)
	vals := []string{"1", "2", `"a"`}
	for i, v := range vals {
		for j, w := range vals {
			a.do("POST", docs, fmt.Sprintf(`{"id":"%d-%d","pk":"p","v":%s,"w":%s}`, i, j, v, w), key("p")).is(201)
		}
	}
	for _, order := range []string{"c.v ASC, c.w DESC", "c.v DESC, c.w ASC"} {
		all, _ := a.shownOrder(order, "")
		for i, row := range all {
			v, w, _ := strings.Cut(row, " ")
			if got, _ := a.shownOrder(order, resumeFilter(false, v, w)); !slices.Equal(got, all[i:]) {
				t.Errorf("%s from %s: %q, want %q", order, row, got, all[i:])
			}
			if got, _ := a.shownOrder(order, resumeFilter(true, v, w)); !slices.Equal(got, all[i+1:]) {
				t.Errorf("%s behind %s: %q, want %q", order, row, got, all[i+1:])
			}
		}
	}
}

// Going on costs what the page costs, wherever it begins.
func TestResumedCosts(t *testing.T) {
	a := withContainer(t)
	for i := range 500 {
		pk := fmt.Sprint(i % 50)
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"%s","v":%d}`, i, pk, i), key(pk)).is(201)
	}
	for _, order := range []string{"c.v", "c.v DESC"} {
		for _, v := range []string{"10", "250", "490"} {
			r := a.do("POST", docs, `{"query":"SELECT c._rid, [{\"item\":c.v}] AS orderByItems, c AS payload `+
				`FROM c WHERE ((true)) ORDER BY `+order+`","resumeFilter":`+resumeFilter(false, v)+`}`,
				"x-ms-max-item-count: 5", "x-ms-documentdb-isquery: True",
				"x-ms-documentdb-query-enablecrosspartition: True",
				"x-ms-documentdb-populatequerymetrics: True", "Content-Type: application/query+json").is(200)
			if got := r.h.Get("x-ms-documentdb-query-metrics"); !strings.Contains(got, "retrievedDocumentCount=5;") {
				t.Errorf("%s from %s: %s", order, v, got)
			}
		}
	}
}

// The order of ids, which a partition is stored in, has places as well.
func TestResumedOrderOfIDs(t *testing.T) {
	a := withContainer(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		a.do("POST", docs, `{"id":"`+id+`","pk":"p"}`, key("p")).is(201)
	}
	for order, want := range map[string]string{"c.id": `["c" "d"]`, "c.id DESC": `["a"]`} {
		got, _ := a.shownOrder(order, resumeFilter(order != "c.id", `"b"`), key("p"))
		if order == "c.id" {
			got = got[1:] // b itself
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", order, got, want)
		}
	}
}

// A continuation is of a page of the same query without the filter, or with another one.
func TestResumedContinuations(t *testing.T) {
	a := withContainer(t)
	for i := range 9 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"p","v":%d}`, i, i), key("p")).is(201)
	}
	_, token := a.shownOrder("c.v", "", "x-ms-max-item-count: 4")
	got, _ := a.shownOrder("c.v", resumeFilter(false, "5"), "x-ms-continuation: "+token)
	if fmt.Sprint(got) != "[5 6 7 8]" {
		t.Error(got)
	}
}

func TestBadResumeFilters(t *testing.T) {
	a := withContainer(t)
	const ordered, plain = `"SELECT * FROM c ORDER BY c.v"`, `"SELECT * FROM c"`
	for _, x := range [][2]string{
		{ordered, `{}`}, {ordered, `{"value":[]}`}, {ordered, `{"value":[1,2]}`}, {ordered, `{"value":1}`},
		{ordered, `1`},
		{ordered, `[]`}, {ordered, `{"value":[[1]]}`}, {ordered, `{"value":[{"type":"array","low":1,"high":2}]}`},
		{ordered, `{"value":[1],"rid":"x","exclude":true}`}, {ordered, `{"value":[1`}, {plain, `{"value":[1]}`},
		{`"SELECT * FORM c"`, `{"value":[1]}`},
	} {
		a.do("POST", docs, `{"query":`+x[0]+`,"resumeFilter":`+x[1]+`}`, "x-ms-documentdb-isquery: True",
			"x-ms-documentdb-query-enablecrosspartition: True", "Content-Type: application/query+json").is(400)
	}
	a.do("POST", docs, `{"query":`+plain+`,"resumeFilter":null}`, "x-ms-documentdb-isquery: True",
		"x-ms-documentdb-query-enablecrosspartition: True", "Content-Type: application/query+json").is(200)
}
