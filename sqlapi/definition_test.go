package sqlapi

import (
	"bytes"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/status"
)

// FuzzDefinition: any bytes are a definition or a 400. Sending back what was stored changes nothing.
func FuzzDefinition(f *testing.F) {
	for _, s := range []string{`{"id":"c"}`, `{"id":"c","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash"}}`,
		`{"id":"c","indexingPolicy":{"includedPaths":[{"path":"/\"a b\"/[]/?"}],"excludedPaths":[{"path":"/*"}]}}`,
		`{"id":"c","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]},"defaultTtl":5,"computedProperties":[]}`,
		`{"id":"c","indexingPolicy":{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}]]}}`,
		`{"id":"c","geospatialConfig":{"type":"Geometry"},"indexingPolicy":{"includedPaths":[{"path":"/*"}],` +
			`"spatialIndexes":[{"path":"/a/?","types":["Point"],"boundingBox":{"xmin":-1e9,"ymin":0,"xmax":0.1,` +
			`"ymax":1e100}}]}}`, `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		spec, err := parseDefinition(body, nil, true)
		if err != nil {
			if code := status.CodeOf(err); code != status.BadRequest && code != status.NotFound {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		again, err := normalIndexing(spec.IndexingPolicy)
		if err != nil || !bytes.Equal(again, spec.IndexingPolicy) {
			t.Fatalf("%s comes back as %s, %v", spec.IndexingPolicy, again, err)
		}
	})
}

// FuzzPartitionKey: any header is a key or a 400.
func FuzzPartitionKey(f *testing.F) {
	for _, s := range []string{`["a"]`, `[{}]`, `[null,1,true]`, `["\U0001f600\x7f\a"]`, `[]`, `["\U`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := parsePartitionKey(nil, s); err != nil && !status.Is(err, status.BadRequest) {
			t.Fatalf("%q: %v", s, err)
		}
	})
}

func TestComputedProperties(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	def := func(computed string) string {
		return `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"computedProperties":` + computed + `}`
	}
	lower := `[{"name":"lower","query":"SELECT VALUE LOWER(c.name) FROM c"}]`
	for _, bad := range []string{
		`{}`, `[1]`, `[{"name":"x"}]`, `[{"query":"SELECT VALUE c.a FROM c"}]`,
		`[{"name":"id","query":"SELECT VALUE c.a FROM c"}]`,
		`[{"name":"x","query":"SELECT c.a FROM c"}]`, `[{"name":"pk","query":"SELECT VALUE c.a FROM c"}]`,
		`[` + strings.Repeat(`{"name":"x","query":"SELECT VALUE c.a FROM c"},`, 20) +
			`{"name":"y","query":"SELECT VALUE c.a FROM c"}]`,
	} {
		a.do("POST", "/dbs/db/colls", def(bad)).is(400)
	}
	a.do("POST", "/dbs/db/colls", def(lower)).is(201).has(`"computedProperties":` + lower)
	a.do("POST", docs, `{"id":"1","pk":"a","name":"Anna"}`, key("a")).is(201)
	query := func(text string) *reply {
		t.Helper()
		return a.do("POST", docs, `{"query":"`+text+`"}`, "x-ms-documentdb-isquery: True",
			"x-ms-documentdb-query-enablecrosspartition: True").is(200)
	}
	query(`SELECT c.lower FROM c WHERE c.lower = 'anna' ORDER BY c.lower`).has(`[{"lower":"anna"}]`)
	if r := query(`SELECT * FROM c`); strings.Contains(r.body, "lower") {
		t.Error(r.body)
	}
	// A replaced definition applies at once. The plan for a client that merges contains the names, which the server
	// then expands.
	a.do("PUT", "/dbs/db/colls/c", def(`[{"name":"lower","query":"SELECT VALUE UPPER(c.name) FROM c"}]`)).is(200)
	query(`SELECT VALUE c.lower FROM c`).has(`["ANNA"]`)
	a.do("POST", docs, `{"query":"SELECT VALUE c.lower FROM c ORDER BY c.lower"}`,
		"x-ms-cosmos-is-query-plan-request: True").is(200).has(`c.lower`)
	a.do("PUT", "/dbs/db/colls/c", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`).is(200)
	query(`SELECT VALUE c.lower FROM c`).has(`"_count":0`)
}

// Stored members are checked as the service documents them.
func TestKeptMembers(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	vectors := `"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":600,` +
		`"distanceFunction":"cosine"}]}`
	index := func(kind string) string {
		return `,"indexingPolicy":{"includedPaths":[{"path":"/*"}],"vectorIndexes":[{"path":"/v","type":"` +
			kind + `"}]}`
	}
	const texts = `"fullTextPolicy":{"fullTextPaths":[{"path":"/t"}]}`
	for _, x := range []struct {
		members string
		code    int
	}{
		{vectors, 201},
		{vectors + index("diskANN"), 201},
		{vectors + index("quantizedFlat"), 201},
		{vectors + index("flat"), 400}, // more than 505 dimensions
		{vectors + index("btree"), 400},
		{`"defaultTtl":5` + index("flat"), 400}, // no embedding
		{`"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float99"}]}`, 400},
		{`"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","distanceFunction":"manhattan"}]}`, 400},
		{`"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dimensions":0}]}`, 400},
		{`"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v"},{"path":"/v"}]}`, 400},
		{`"vectorEmbeddingPolicy":[]`, 400},
		{`"fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/t","language":"en-US"}]}`, 201},
		{`"fullTextPolicy":{"fullTextPaths":[{"path":"t"}]}`, 400},
		{`"fullTextPolicy":{"defaultLanguage":"fr-FR","fullTextPaths":[{"path":"/t"},` +
			`{"path":"/u","language":"de-AT"}]}`, 201},
		{`"fullTextPolicy":{"defaultLanguage":"spa-SPA"}`, 400},
		{`"fullTextPolicy":{"defaultLanguage":""}`, 400},
		{`"fullTextPolicy":{"fullTextPaths":[{"path":"/t","language":"xx-YY"}]}`, 400},
		{`"fullTextPolicy":{"fullTextPaths":[{"path":"/t"},{"path":"/t"}]}`, 400},
		{`"fullTextPolicy":{"fullTextPaths":[{"path":"/t/[]/u"}]}`, 400},
		{`"fullTextPolicy":[]`, 400},
		{texts + `,"indexingPolicy":{"fullTextIndexes":[{"path":"/t"}]}`, 201},
		{`"indexingPolicy":{"fullTextIndexes":[{"path":"/t"}]}`, 400}, // no policy
		{texts + `,"indexingPolicy":{"fullTextIndexes":[{"path":"/u"}]}`, 400},
		{texts + `,"indexingPolicy":{"fullTextIndexes":[{"path":"t"}]}`, 400},
		{texts + `,"indexingPolicy":{"fullTextIndexes":[{"not_path":"/t"}]}`, 400},
		{`"changeFeedPolicy":{"retentionDuration":10}`, 201},
		{`"changeFeedPolicy":{"retentionDuration":-1}`, 400},
		{`"clientEncryptionPolicy":{"policyFormatVersion":2,"includedPaths":[{"path":"/s",` +
			`"clientEncryptionKeyId":"k","encryptionType":"Randomized"}]}`, 201},
		{`"clientEncryptionPolicy":{"includedPaths":[{"path":"/s","clientEncryptionKeyId":"k",` +
			`"encryptionType":"Rot13"}]}`, 400},
		{`"clientEncryptionPolicy":{"policyFormatVersion":9}`, 400},
	} {
		r := a.do("POST", "/dbs/db/colls", `{"id":"c",`+x.members+`}`)
		if r.code != x.code {
			t.Errorf("%s: %d, want %d: %s", x.members, r.code, x.code, r.body)
		}
		if r.code == 201 {
			a.do("DELETE", "/dbs/db/colls/c", "").is(204)
		}
	}
}
