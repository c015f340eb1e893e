package sqlapi

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// The figures of a page are those of what was done: items read and passed, the index that was used and those that miss.
func TestQueryFigures(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/b/?"},{"path":"/odd/\"a b\"/?"}]}}`).is(201)
	for i := range 40 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"b":%d,"tags":["t%d"]}`, i, i, i, i, i), key(fmt.Sprintf("p%d", i))).is(201)
	}
	run := func(text string, headers ...string) *reply {
		t.Helper()
		h := append([]string{"x-ms-documentdb-isquery: True", "x-ms-documentdb-query-enablecrosspartition: True"}, headers...)
		return a.do("POST", docs, `{"query":"`+text+`"}`, h...).is(200)
	}
	const v1, v2, explain, metrics = "x-ms-cosmos-populateindexmetrics: true", "x-ms-cosmos-populateindexmetrics-V2: True", "x-orrery-explain: true", "x-ms-documentdb-populatequerymetrics: True"
	for _, x := range []struct{ text, plan, use, figures string }{
		{`SELECT * FROM c WHERE c.n = 7`, "plan=index", `{"Utilized":{"SingleIndexes":[{"IndexSpec":"/n/?"}],"CompositeIndexes":[]},"Potential":{"SingleIndexes":[],"CompositeIndexes":[]}}`, "retrievedDocumentCount=1;"},
		{`SELECT * FROM c WHERE c.b = 7`, "plan=scan", `{"Utilized":{"SingleIndexes":[],"CompositeIndexes":[]},"Potential":{"SingleIndexes":[{"IndexSpec":"/b/?"}],"CompositeIndexes":[]}}`, "retrievedDocumentCount=40;"},
		{`SELECT * FROM c ORDER BY c.b`, "plan=scan", `{"Utilized":{"SingleIndexes":[],"CompositeIndexes":[]},"Potential":{"SingleIndexes":[{"IndexSpec":"/b/?"}],"CompositeIndexes":[]}}`, "outputDocumentCount=40;"},
		{`SELECT * FROM c WHERE c.odd['a b'] > 1 AND c.n = 3`, "plan=index", `{"Utilized":{"SingleIndexes":[{"IndexSpec":"/n/?"}],"CompositeIndexes":[]},"Potential":{"SingleIndexes":[{"IndexSpec":"/odd/\"a b\"/?"}],"CompositeIndexes":[]}}`, "retrievedDocumentCount=1;"},
		{`SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't3')`, "plan=index", `{"Utilized":{"SingleIndexes":[{"IndexSpec":"/tags/[]/?"}],"CompositeIndexes":[]},"Potential":{"SingleIndexes":[],"CompositeIndexes":[]}}`, "outputDocumentCount=1;"},
		{`SELECT VALUE 1`, "plan=no items", `{"Utilized":{"SingleIndexes":[],"CompositeIndexes":[]},"Potential":{"SingleIndexes":[],"CompositeIndexes":[]}}`, "retrievedDocumentCount=0;"},
	} {
		r := run(x.text, v2, explain, metrics)
		got := r.h.Get("x-orrery-explain")
		if !strings.HasPrefix(strings.ToLower(got), x.plan) || !strings.Contains(got, "; ru="+r.h.Get("x-ms-request-charge")) {
			t.Errorf("%s: %s", x.text, got)
		}
		if got := strings.ReplaceAll(strings.ReplaceAll(r.h.Get("x-ms-cosmos-index-utilization"), "%22", `"`), "%5C", `\`); got != x.use {
			t.Errorf("%s: %s", x.text, got)
		}
		if got := r.h.Get("x-ms-documentdb-query-metrics"); !strings.Contains(got, x.figures) {
			t.Errorf("%s: %s", x.text, got)
		}
	}
	// Half of what a scan reads passes.
	if got := run(`SELECT VALUE COUNT(1) FROM c WHERE c.b < 20`, metrics).h.Get("x-ms-documentdb-query-metrics"); !strings.HasSuffix(got, "indexUtilizationRatio=0.50") {
		t.Error(got)
	}
	if got := run(`SELECT * FROM c WHERE c.n = 7`, explain).h.Get("x-orrery-explain"); !strings.Contains(got, "; entries=1; items=1; bytes=") || !strings.Contains(got, "; matched=1; rows=1; ru=") {
		t.Error(got)
	}
	// The first version is base64 and has more members; without a header there is none.
	r := run(`SELECT * FROM c WHERE c.n = 7`, v1)
	text, err := base64.StdEncoding.DecodeString(r.h.Get("x-ms-cosmos-index-utilization"))
	if want := `{"UtilizedSingleIndexes":[{"FilterExpression":"","IndexSpec":"/n/?","FilterPreciseSet":true,"IndexPreciseSet":true,"IndexImpactScore":"High"}],"PotentialSingleIndexes":[],"UtilizedCompositeIndexes":[],"PotentialCompositeIndexes":[]}`; err != nil || string(text) != want {
		t.Errorf("%v %s", err, text)
	}
	r = run(`SELECT * FROM c`)
	for _, h := range []string{"x-orrery-explain", "x-ms-cosmos-index-utilization", "x-ms-documentdb-query-metrics"} {
		if r.h.Get(h) != "" {
			t.Errorf("%s came unasked", h)
		}
	}
	// Names that no header can hold are encoded.
	if got := run(`SELECT * FROM c WHERE c['\\r\\n\u00e9'] = 1`, explain, v2).h; strings.ContainsAny(got.Get("x-orrery-explain")+got.Get("x-ms-cosmos-index-utilization"), "\r\n\u00e9") {
		t.Error(got)
	}
}
