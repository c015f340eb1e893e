package sqlapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/internal/rest"
)

// explained reads the header x-orrery-explain.
func explained(t *testing.T, r *reply) (e Explanation) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.h.Get("x-orrery-explain")), &e); err != nil {
		t.Fatalf("%v: %s", err, r.h.Get("x-orrery-explain"))
	}
	return e
}

// The metrics of a page are those of the work done: items read and matched, and the indexes that were used or are
// missing.
func TestQueryFigures(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},`+
		`"indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/b/?"},`+
		`{"path":"/odd/\"a b\"/?"}]}}`).is(201)
	for i := range 40 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"b":%d,"tags":["t%d"]}`, i, i, i, i, i),
			key(fmt.Sprintf("p%d", i))).is(201)
	}
	run := func(text string, headers ...string) *reply {
		t.Helper()
		h := append([]string{"x-ms-documentdb-isquery: True", "x-ms-documentdb-query-enablecrosspartition: True"},
			headers...)
		return a.do("POST", docs, `{"query":"`+text+`"}`, h...).is(200)
	}
	const v1, v2, explain, metrics = "x-ms-cosmos-populateindexmetrics: true",
		"x-ms-cosmos-populateindexmetrics-V2: True", "x-orrery-explain: true",
		"x-ms-documentdb-populatequerymetrics: True"
	for _, x := range []struct{ text, plan, use, figures string }{
		{`SELECT * FROM c WHERE c.n = 7`, "index", `{"Utilized":{"SingleIndexes":[{"IndexSpec":"/n/?"}],` +
			`"CompositeIndexes":[]},"Potential":{"SingleIndexes":[],"CompositeIndexes":[]}}`,
			"retrievedDocumentCount=1;"},
		{`SELECT * FROM c WHERE c.b = 7`, "scan", `{"Utilized":{"SingleIndexes":[],"CompositeIndexes":[]},` +
			`"Potential":{"SingleIndexes":[{"IndexSpec":"/b/?"}],"CompositeIndexes":[]}}`,
			"retrievedDocumentCount=40;"},
		{`SELECT * FROM c ORDER BY c.b`, "scan", `{"Utilized":{"SingleIndexes":[],"CompositeIndexes":[]},` +
			`"Potential":{"SingleIndexes":[{"IndexSpec":"/b/?"}],"CompositeIndexes":[]}}`, "outputDocumentCount=40;"},
		{`SELECT * FROM c WHERE c.odd['a b'] > 1 AND c.n = 3`, "index",
			`{"Utilized":{"SingleIndexes":[{"IndexSpec":"/n/?"}],"CompositeIndexes":[]},` +
				`"Potential":{"SingleIndexes":[{"IndexSpec":"/odd/\"a b\"/?"}],` +
				`"CompositeIndexes":[{"IndexSpecs":["/n ASC","/odd/\"a b\" ASC"]}]}}`, "retrievedDocumentCount=1;"},
		{`SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't3')`, "index",
			`{"Utilized":{"SingleIndexes":[{"IndexSpec":"/tags/[]/?"}],"CompositeIndexes":[]},` +
				`"Potential":{"SingleIndexes":[],"CompositeIndexes":[]}}`, "outputDocumentCount=1;"},
		{`SELECT VALUE 1`, "no items", `{"Utilized":{"SingleIndexes":[],"CompositeIndexes":[]},` +
			`"Potential":{"SingleIndexes":[],"CompositeIndexes":[]}}`, "retrievedDocumentCount=0;"},
	} {
		r := run(x.text, v2, explain, metrics)
		if e := explained(t, r); e.Access != x.plan || !strings.HasPrefix(e.Plan, x.plan) ||
			string(rest.AppendCharge(nil, e.RU.Total)) != r.h.Get("x-ms-request-charge") {
			t.Errorf("%s: %+v", x.text, e)
		}
		if got := strings.ReplaceAll(strings.ReplaceAll(r.h.Get("x-ms-cosmos-index-utilization"), "%22", `"`), "%5C",
			`\`); got != x.use {
			t.Errorf("%s: %s", x.text, got)
		}
		if got := r.h.Get("x-ms-documentdb-query-metrics"); !strings.Contains(got, x.figures) {
			t.Errorf("%s: %s", x.text, got)
		}
	}
	// The filter matches half of the items that a scan reads.
	if got := run(`SELECT VALUE COUNT(1) FROM c WHERE c.b < 20`, metrics).h.Get(
		"x-ms-documentdb-query-metrics"); !strings.HasSuffix(got, "indexUtilizationRatio=0.50") {
		t.Error(got)
	}
	want := Explanation{Plan: "index on /n: most selective condition", Access: "index", Why: "most selective condition",
		Indexes: []string{"/n/?"}, Slots: 4,
		Entries: 1, Items: 1, Bytes: 62, Matched: 1, Rows: 1,
		RU: RUParts{Total: 2.3308, Base: 2.3, Entries: 0.01, Items: 0.02, Bytes: 0.0008}, Advice: []string{}}
	tree := "Filter [rows 1, cost 11, gave 1]\n" +
		"  CreationOrder [rows 1, cost 11, gave 1]: few items\n" +
		"    IndexScan (eq /n 7) [rows 1, cost 11, gave 1, entries 1]: most selective condition\n" +
		"rejected Scan [rows 40, cost 66]\n"
	got := explained(t, run(`SELECT * FROM c WHERE c.n = 7`, explain))
	if got.Tree.String() != tree {
		t.Errorf("%s", got.Tree)
	}
	if got.Tree = nil; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	// Entries that the planner counts to choose the plan aren't charged.
	if e := explained(t, run(`SELECT * FROM c WHERE c.n > 5 AND c.n < 8`, explain)); e.RU.Base != 2.3 || e.Entries < 4 {
		t.Errorf("%+v", e)
	}
	// The first version is base64 and has more members. Without the header it isn't sent.
	r := run(`SELECT * FROM c WHERE c.n = 7`, v1)
	text, err := base64.StdEncoding.DecodeString(r.h.Get("x-ms-cosmos-index-utilization"))
	if want := `{"UtilizedSingleIndexes":[{"FilterExpression":"(ROOT.n = 7)","IndexSpec":"/n/?",` +
		`"FilterPreciseSet":true,"IndexPreciseSet":true,"IndexImpactScore":"High"}],"PotentialSingleIndexes":[],` +
		`"UtilizedCompositeIndexes":[],"PotentialCompositeIndexes":[]}`; err != nil || string(text) != want {
		t.Errorf("%v %s", err, text)
	}
	r = run(`SELECT * FROM c`)
	for _, h := range []string{"x-orrery-explain", "x-ms-cosmos-index-utilization", "x-ms-documentdb-query-metrics"} {
		if r.h.Get(h) != "" {
			t.Errorf("%s came unasked", h)
		}
	}
	// Names that a header can't contain are encoded.
	r = run(`SELECT * FROM c WHERE c['\\r\\né😀'] = 1`, explain, v2)
	if got := explained(t, r).Indexes; len(got) != 1 || !strings.Contains(got[0], "\u00e9\U0001f600") {
		t.Errorf("%q", got)
	}
	if got := r.h; strings.ContainsAny(got.Get("x-orrery-explain")+got.Get("x-ms-cosmos-index-utilization"),
		"\r\n\u00e9") {
		t.Error(got)
	}
}

// The index metrics are those that the service documents: all indexed paths of the filter are utilized, and the
// composite indexes are those of all equalities and one range each. The query's key is the first path, without a
// condition.
func TestIndexMetrics(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk","/sub/k"],"kind":"MultiHash"},`+
		`"indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/b/?"}],"compositeIndexes":[`+
		`[{"path":"/x"},{"path":"/y","order":"descending"},{"path":"/z"}]],`+
		`"spatialIndexes":[{"path":"/at/?","types":["Point"]}]}}`).is(201)
	a.do("POST", docs, `{"id":"1","pk":"p","sub":{"k":1}}`, `x-ms-documentdb-partitionkey: ["p",1]`).is(201)
	const full = `x-ms-documentdb-partitionkey: ["p",1]`
	for _, x := range []struct{ text, key, use string }{
		{"SELECT * FROM c", "", "||||"},
		{"SELECT * FROM c", full, "/pk/?;/sub/k/?||||"},
		{"SELECT * FROM c WHERE c.pk = 'p' AND c.id = '1'", full, "/pk/?;/sub/k/?;/id/?||||"},
		{"SELECT TOP 10 c.id FROM c WHERE c.Item = 'value1234' AND c.Price > 2", "",
			"/Item/?;/Price/?|||/Item ASC,/Price ASC|"},
		{"SELECT c.id FROM c WHERE c.name = 'Tim' AND c.age > 15 AND c.town = 'Redmond' AND c.timestamp > 2349230183",
			"", "/name/?;/age/?;/town/?;/timestamp/?|||/name ASC,/town ASC,/age ASC;" +
				"/name ASC,/town ASC,/timestamp ASC|"},
		{"SELECT * FROM p WHERE p.price > 500 AND startsWith(p.name, 'Touring')", "", "/price/?;/name/?||||"},
		{"SELECT * FROM c WHERE c.b = 1 OR c.n > 2 OR ARRAY_CONTAINS(c.tags, 3)", "", "/n/?;/tags/[]/?|/b/?|||"},
		{"SELECT * FROM c WHERE c.y = 1 AND c.x = 2", "", "||/x ASC,/y DESC,/z ASC||"},
		{"SELECT * FROM c WHERE c.x = 2 AND c.y > 2 AND c.n = 3", "", "/x/?;/y/?;/n/?|||/x ASC,/n ASC,/y ASC|"},
		{"SELECT * FROM c ORDER BY c.x DESC, c.y ASC", "", "||/x ASC,/y DESC,/z ASC||"},
		{"SELECT * FROM c ORDER BY c.n", "", "/n/?||||"},
		{"SELECT * FROM c WHERE ST_DISTANCE(c.at, {'type':'Point','coordinates':[1,2]}) < 5", "", "/at/?||||"},
	} {
		h := []string{"x-ms-documentdb-isquery: True", "x-ms-documentdb-query-enablecrosspartition: True",
			"x-orrery-strict: none", "x-ms-cosmos-populateindexmetrics: true"}
		if x.key != "" {
			h = append(h, x.key)
		}
		r := a.do("POST", docs, `{"query":"`+x.text+`"}`, h...).is(200)
		text, err := base64.StdEncoding.DecodeString(r.h.Get("x-ms-cosmos-index-utilization"))
		if err != nil {
			t.Fatal(err)
		}
		type single struct{ IndexSpec, FilterExpression string }
		type composite struct{ IndexSpecs []string }
		var use struct {
			UtilizedSingleIndexes, PotentialSingleIndexes       []single
			UtilizedCompositeIndexes, PotentialCompositeIndexes []composite
		}
		if err := json.Unmarshal(text, &use); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, l := range [][]single{use.UtilizedSingleIndexes, use.PotentialSingleIndexes} {
			for i, s := range l {
				if i > 0 {
					got.WriteString(";")
				}
				got.WriteString(s.IndexSpec)
				if (s.FilterExpression == "") != (!strings.Contains(x.text, "WHERE") || s.IndexSpec == "/sub/k/?") {
					t.Errorf("%s: condition %q on %s", x.text, s.FilterExpression, s.IndexSpec)
				}
			}
			got.WriteString("|")
		}
		for _, l := range [][]composite{use.UtilizedCompositeIndexes, use.PotentialCompositeIndexes} {
			for i, c := range l {
				if i > 0 {
					got.WriteString(";")
				}
				got.WriteString(strings.Join(c.IndexSpecs, ","))
			}
			got.WriteString("|")
		}
		if got.String() != x.use {
			t.Errorf("%s:\n%s\n%s", x.text, got.String(), x.use)
		}
	}
}

// Following each advice makes the query use the index, and leaves no advice.
func TestAdvice(t *testing.T) {
	const def = `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":`
	for _, x := range []struct{ query, policy, advice, better string }{
		{"SELECT * FROM c WHERE c.a = 7", `{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`,
			"add /a/? to includedPaths",
			`{"includedPaths":[{"path":"/n/?"},{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`},
		{"SELECT * FROM c WHERE c.a = 7", `{"excludedPaths":[{"path":"/a/?"}]}`,
			"remove /a/? from excludedPaths", `{}`},
		{"SELECT * FROM c WHERE c.o.x = 7", `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/o/*"}]}`,
			"add /o/x/? to includedPaths",
			`{"includedPaths":[{"path":"/*"},{"path":"/o/x/?"}],"excludedPaths":[{"path":"/o/*"}]}`},
		{"SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't7')", `{"includedPaths":[{"path":"/n/?"}],` +
			`"excludedPaths":[{"path":"/*"}]}`, "add /tags/* to includedPaths",
			`{"includedPaths":[{"path":"/n/?"},{"path":"/tags/*"}],"excludedPaths":[{"path":"/*"}]}`},
		{"SELECT * FROM c WHERE c.a = 7", `{"indexingMode":"none","automatic":false}`, "set indexingMode to consistent",
			`{"indexingMode":"consistent"}`},
		{"SELECT * FROM c ORDER BY c.g, c.a DESC", `{}`, "add composite [/g asc,/a desc] to compositeIndexes",
			`{"compositeIndexes":[[{"path":"/g","order":"ascending"},{"path":"/a","order":"descending"}]]}`},
		{"SELECT * FROM c WHERE c.g = 3 ORDER BY c.a", `{}`, "add composite [/g asc,/a asc] to compositeIndexes",
			`{"compositeIndexes":[[{"path":"/g"},{"path":"/a"}]]}`},
		{"SELECT * FROM c WHERE c.g = 3 AND c.o.x > 770", `{}`, "add composite [/g asc,/o/x asc] to compositeIndexes",
			`{"compositeIndexes":[[{"path":"/g"},{"path":"/o/x"}]]}`},
	} {
		a := newAPI(t)
		a.do("POST", "/dbs", `{"id":"db"}`).is(201)
		a.do("POST", "/dbs/db/colls", def+x.policy+"}").is(201)
		for i := range 800 {
			pk := fmt.Sprintf("p%d", i%47)
			a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"%s","a":%d,"g":%d,"n":1,"o":{"x":%d},"tags":["t%d"]}`, i,
				pk, i, i%10, i, i), key(pk)).is(201)
		}
		run := func() Explanation {
			t.Helper()
			return explained(t, a.do("POST", docs, `{"query":"`+x.query+`"}`, "x-ms-documentdb-isquery: True",
				"x-ms-documentdb-query-enablecrosspartition: True", "x-orrery-explain: true",
				"x-ms-max-item-count: -1").is(200))
		}
		before := run()
		if !slices.Equal(before.Advice, []string{x.advice}) {
			t.Errorf("%s: %+v", x.query, before)
		}
		a.do("PUT", "/dbs/db/colls/c", def+x.better+"}").is(200)
		a.indexed("/dbs/db/colls/c")
		after := run()
		if len(after.Advice) > 0 || after.Rows != before.Rows || after.Access == "scan" || after.Sorted ||
			!before.Sorted && after.Items+after.Entries >= before.Items+before.Entries {
			t.Errorf("%s, with the advice: %+v", x.query, after)
		}
	}
	// There is no advice where no index helps.
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", def+`{}}`).is(201)
	a.do("POST", docs, `{"id":"1","pk":"a","s":"x"}`, key("a")).is(201)
	for _, q := range []string{"SELECT * FROM c WHERE CONTAINS(c.s, 'y')", "SELECT * FROM c WHERE LENGTH(c.s) = 2",
		"SELECT * FROM c WHERE c.pk = 'b'", "SELECT * FROM c"} {
		e := explained(t, a.do("POST", docs, `{"query":"`+q+`"}`, "x-ms-documentdb-isquery: True",
			"x-ms-documentdb-query-enablecrosspartition: True", "x-orrery-explain: true").is(200))
		if len(e.Advice) > 0 {
			t.Errorf("%s: %+v", q, e)
		}
	}
}
