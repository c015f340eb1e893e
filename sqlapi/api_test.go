package sqlapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/internal/rest"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// api is the whole API over an engine in memory, for tests. Requests are signed as an SDK does.
type api struct {
	t   testing.TB
	srv *Server
}

func newAPI(t testing.TB) *api {
	t.Helper()
	clk := clock.Fake(testNow)
	e, err := core.Open(context.Background(), memkv.New(), core.Options{Clock: clk, MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Wall: clk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return &api{t, s}
}

// reply is a received reply.
type reply struct {
	t    testing.TB
	what string
	code int
	h    http.Header
	body string
}

// do sends a request; headers are "name: value" lines.
func (a *api) do(method, target, body string, headers ...string) *reply {
	a.t.Helper()
	w := httptest.NewRecorder()
	a.srv.ServeHTTP(w, a.request(method, target, body, headers...))
	return &reply{a.t, method + " " + target + " " + strings.Join(headers, " ") + " " + clip(body), w.Code,
		received(w.Header()), w.Body.String()}
}

// request returns a signed request.
func (a *api) request(method, target, body string, headers ...string) *http.Request {
	a.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for _, h := range headers {
		k, v, _ := strings.Cut(h, ": ")
		r.Header.Set(k, v)
	}
	if r.Header.Get("authorization") == "" {
		to := signedOf(tidy(r).URL)
		date := testNow.Format(http.TimeFormat)
		r.Header.Set("x-ms-date", date)
		r.Header.Set("authorization", sign(a.t, testKey, method, to.typ, to.link, date))
	}
	return r
}

// received returns the headers of a reply as a client of net/http gets them: the server writes most names in lower
// case.
func received(sent http.Header) http.Header {
	h := http.Header{}
	for k, v := range sent {
		h[http.CanonicalHeaderKey(k)] = v
	}
	return h
}

// is asserts the status, and the headers that every reply must have.
func (r *reply) is(code int) *reply {
	r.t.Helper()
	if r.code != code {
		r.t.Fatalf("%s: %d, want %d: %s", r.what, r.code, code, clip(r.body))
	}
	if r.h.Get("x-ms-request-charge") == "" || !rest.IsGUID(r.h.Get("x-ms-activity-id")) {
		r.t.Fatalf("%s: no charge or activity id: %v", r.what, r.h)
	}
	if code == 204 && r.h.Get("content-type") != "application/json" {
		r.t.Fatalf("%s: clients that decode every reply as JSON need its type: %v", r.what, r.h)
	}
	if code >= 400 {
		var e struct{ Code, Message string }
		if json.Unmarshal([]byte(r.body), &e) != nil || e.Code == "" || !strings.HasPrefix(e.Message, "Message: {") ||
			!strings.Contains(e.Message, "ActivityId: ") {
			r.t.Fatalf("%s: error body %s", r.what, r.body)
		}
	}
	return r
}

// has asserts a text in the body.
// indexed waits until the index of a container follows its policy, the way a client does.
func (a *api) indexed(link string) {
	a.t.Helper()
	for range 10000 {
		if a.do("GET", link, "").is(200).h.Get("x-ms-documentdb-collection-index-transformation-progress") == "100" {
			return
		}
		time.Sleep(time.Millisecond)
	}
	a.t.Fatal("the index is never done")
}

func (r *reply) has(text string) *reply {
	r.t.Helper()
	if !strings.Contains(r.body, text) {
		r.t.Fatalf("%s: no %s in %s", r.what, text, r.body)
	}
	return r
}

func (r *reply) sub(n string) *reply {
	r.t.Helper()
	if got := r.h.Get("x-ms-substatus"); got != n {
		r.t.Fatalf("%s: sub-status %q, want %q", r.what, got, n)
	}
	return r
}

func (r *reply) json() map[string]any {
	r.t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(r.body), &m); err != nil {
		r.t.Fatalf("%s: %v: %s", r.what, err, r.body)
	}
	return m
}

const docs = "/dbs/db/colls/c/docs"

// withContainer creates /dbs/db/colls/c with partition key /pk.
func withContainer(t testing.TB) *api {
	t.Helper()
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
	return a
}

func key(pk string) string { return `x-ms-documentdb-partitionkey: ["` + pk + `"]` }

func TestAccountEchoesHost(t *testing.T) {
	a := newAPI(t)
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "some.host:1234"
	r.Header.Set("x-ms-date", testNow.Format(http.TimeFormat))
	r.Header.Set("authorization", sign(t, testKey, "GET", "", "", testNow.Format(http.TimeFormat)))
	w := httptest.NewRecorder()
	a.srv.ServeHTTP(w, r)
	var acc struct {
		ID                           string
		WritableLocations            []struct{ Name, DatabaseAccountEndpoint string }
		QueryEngineConfiguration     string
		UserConsistencyPolicy        struct{ DefaultConsistencyLevel string }
		EnableMultipleWriteLocations *bool
	}
	if err := json.Unmarshal(w.Body.Bytes(), &acc); err != nil {
		t.Fatal(err)
	}
	if acc.ID == "localhost" || acc.WritableLocations[0].DatabaseAccountEndpoint != "http://some.host:1234/" ||
		acc.WritableLocations[0].Name != "acct" ||
		acc.UserConsistencyPolicy.DefaultConsistencyLevel != "Session" || acc.EnableMultipleWriteLocations == nil ||
		!json.Valid([]byte(acc.QueryEngineConfiguration)) {
		t.Fatalf("%s", w.Body)
	}
	r.Host = "" // HTTP/1.0
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081}
	w = httptest.NewRecorder()
	a.srv.ServeHTTP(w, r.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, local)))
	if !strings.Contains(w.Body.String(), `"http://127.0.0.1:8081/"`) {
		t.Fatalf("without a host: %s", w.Body)
	}
}

func TestDatabaseLife(t *testing.T) {
	a := newAPI(t)
	m := a.do("POST", "/dbs", `{"id":"db"}`).is(201).json()
	rid := m["_rid"].(string)
	if len(rid) != wire.DatabaseRIDLen || m["_self"] != "dbs/"+rid+"/" || m["_colls"] != "colls/" ||
		m["_users"] != "users/" {
		t.Fatalf("%v", m)
	}
	a.do("POST", "/dbs", `{"id":"db"}`).is(409)
	a.do("GET", "/dbs/db", "").is(200).has(rid)
	a.do("GET", "/dbs/"+rid+"/", "").is(200).has(`"id":"db"`)
	a.do("GET", "/dbs", "").is(200).has(`"_count":1`).has(`"Databases":[`)
	a.do("PUT", "/dbs/db", `{"id":"db"}`).is(405)
	for _, bad := range []string{``, `{`, `[]`, `{}`, `{"id":1}`, `{"id":""}`, `{"id":"a/b"}`, `{"id":"a#"}`,
		`{"id":"trailing "}`, `{"id":"` + strings.Repeat("x", 256) + `"}`} {
		a.do("POST", "/dbs", bad).is(400)
	}
	a.do("DELETE", "/dbs/db", "").is(204)
	a.do("GET", "/dbs/db", "").is(404).sub("")
	a.do("GET", "/dbs/db/colls", "").is(404).sub("1003")
	a.do("GET", "/dbs/db/colls/c", "").is(404).sub("1003")
}

func TestContainerDefinitions(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	for i, c := range []struct{ in, want string }{
		{`"partitionKey":{"paths":["/pk"],"kind":"Hash"}`,
			`"partitionKey":{"paths":["/pk"],"kind":"Hash"}`},
		{`"partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}`, `"kind":"MultiHash","version":2`},
		{`"partitionKey":{"paths":["/a/b"],"kind":"Range"}`, `"kind":"Hash"`},
		{`"partitionKey":{"paths":["/\"a b\"/c"]}`, `"paths":["/\"a b\"/c"]`},
		{`"partitionKey":{"paths":["/a"],"kind":"Hash","version":"V2"}`, `"kind":"Hash","version":2`},
		{`"defaultTtl":-1`, `"defaultTtl":-1`},
		{`"indexingPolicy":null`, `"indexingPolicy":` + core.DefaultIndexing},
		{`"indexingPolicy":{"indexingMode":"Lazy"}`, `"indexingMode":"lazy","automatic":true,` +
			`"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]`},
		{`"indexingPolicy":{"indexingMode":"none","automatic":false}`, `{"indexingMode":"none","automatic":false,` +
			`"includedPaths":[],"excludedPaths":[]}`},
		{`"indexingPolicy":{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`,
			`"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"},{"path":"/\"_etag\"/?"}]`},
		{`"indexingPolicy":{"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/a"},{"path":"/b",` +
			`"order":"Descending"}]]}`, `"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b",` +
			`"order":"descending"}]]`},
		{`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b/c"]}]}`,
			`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b/c"]}]}`},
		{`"conflictResolutionPolicy":{"mode":"Custom","conflictResolutionProcedure":"dbs/db/colls/c/sprocs/s"}`,
			`"mode":"Custom"`},
		{`"geospatialConfig":{"type":"Geometry"}`, `"geospatialConfig":{"type":"Geometry"}`},
		{`"computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.name) FROM c"}]`,
			`"computedProperties":[{"name":"low"`},
		{`"vectorEmbeddingPolicy":{"vectorEmbeddings":[]}, "unknown":1`,
			`"vectorEmbeddingPolicy":{"vectorEmbeddings":[]}`},
	} {
		id := fmt.Sprint("c", i)
		def := `{"id":"` + id + `",` + c.in + `}`
		a.do("POST", "/dbs/db/colls", def).is(201).has(c.want)
		a.do("GET", "/dbs/db/colls/"+id, "").is(200).has(c.want).has(`"_docs":"docs/"`)
		a.do("PUT", "/dbs/db/colls/"+id, def).is(200).has(c.want)
	}
	for _, bad := range []string{
		`"partitionKey":{"paths":[]}`, `"partitionKey":{"paths":["pk"]}`, `"partitionKey":{"paths":["/"]}`,
		`"partitionKey":{"paths":["/a//b"]}`, `"partitionKey":{"paths":["/a/*"]}`,
		`"partitionKey":{"paths":["/a","/b"],"kind":"Hash"}`, `"partitionKey":{"paths":["/a","/a"],"kind":"MultiHash"}`,
		`"partitionKey":{"paths":["/a"],"version":3}`, `"partitionKey":{"paths":["/a"],"version":[]}`,
		`"partitionKey":{"paths":["/a"],"kind":"List"}`,
		`"partitionKey":{"paths":["/a","/b","/c","/d"],"kind":"MultiHash"}`, `"partitionKey":{"paths":["/_etag"]}`,
		`"partitionKey":7`,
		`"defaultTtl":0`, `"defaultTtl":-2`, `"defaultTtl":1.5`, `"defaultTtl":"1"`, `"defaultTtl":99999999999`,
		`"indexingPolicy":7`, `"indexingPolicy":{"indexingMode":"x"}`,
		`"indexingPolicy":{"indexingMode":"none","automatic":true}`,
		`"indexingPolicy":{"includedPaths":[{"path":"/a"}]}`,
		`"indexingPolicy":{"includedPaths":[{"path":"/a/?"}]}`, `"indexingPolicy":{"includedPaths":[{}]}`,
		`"indexingPolicy":{"includedPaths":[{"path":"/*"},{"path":"/*"}]}`,
		`"indexingPolicy":{"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/a"}]]}`,
		`"indexingPolicy":{"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/a/*"},{"path":"/b"}]]}`,
		`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":[]}]}`, `"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["a"]}]}`,
		`"conflictResolutionPolicy":{"mode":"Never"}`, `"geospatialConfig":{"type":"Flat"}`,
		`"computedProperties":[{"name":"x"}]`, `"vectorEmbeddingPolicy":[]`, `"analyticalStorageTtl":"x"`,
	} {
		a.do("POST", "/dbs/db/colls", `{"id":"bad",`+bad+`}`).is(400)
	}
	a.do("GET", "/dbs/db/colls/bad", "").is(404)
	a.do("POST", "/dbs/none/colls", `{"id":"c"}`).is(404).sub("1003")
}

func TestContainerReplaceKeepsWhatIsFixed(t *testing.T) {
	a := withContainer(t)
	a.do("PUT", "/dbs/db/colls/c", `{"id":"c","defaultTtl":60}`).is(200).has(`"paths":["/pk"]`).has(`"defaultTtl":60`)
	a.do("PUT", "/dbs/db/colls/c", `{"id":"c","partitionKey":{"paths":["/other"],"version":2}}`).is(400)
	a.do("PUT", "/dbs/db/colls/c", `{"id":"c","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]}}`).is(403).has(
		"The unique index cannot be modified.")
	a.do("PUT", "/dbs/db/colls/absent", `{"id":"absent"}`).is(404)
	a.do("PUT", "/dbs/db/colls/c", `{"id":"other"}`).is(400)
	a.do("PUT", "/dbs/db/colls/c", `{"id":"c"}`, `If-Match: "stale"`).is(412)
	r := a.do("GET", "/dbs/db/colls/c", "", "x-ms-documentdb-populatequotainfo: true").is(200)
	if !strings.Contains(r.h.Get("x-ms-resource-usage"), "documentsCount=0") || r.h.Get("x-ms-resource-quota") == "" {
		t.Fatalf("%v", r.h)
	}
	a.do("GET", "/dbs/db/colls/c", "", "If-None-Match: "+r.h.Get("etag")).is(304)
}

// A strict server takes a replacement without the unique keys for one that removes them, as the service does.
func TestContainerReplaceKeepsUniqueKeys(t *testing.T) {
	const def = `{"id":"u","partitionKey":{"paths":["/pk"],"version":2}`
	const keys = `,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]}`
	for _, strict := range []bool{false, true} {
		a := strictAPI(t, strict)
		a.do("POST", "/dbs/db/colls", def+keys+`}`).is(201)
		a.do("PUT", "/dbs/db/colls/u", def+keys+`,"defaultTtl":60}`).is(200).has(`"paths":["/a"]`)
		a.do("PUT", "/dbs/db/colls/u", def+strings.Replace(keys, "/a", "/b", 1)+`}`).is(403)
		a.do("PUT", "/dbs/db/colls/u", def+`,"uniqueKeyPolicy":{"uniqueKeys":[]}}`).is(403)
		if r := a.do("PUT", "/dbs/db/colls/u", def+`}`); strict {
			r.is(403).has("The unique index cannot be modified. To change the unique index, remove the collection " +
				"and re-create a new one.")
		} else {
			r.is(200).has(`"paths":["/a"]`)
		}
		a.do("GET", "/dbs/db/colls/u", "").is(200).has(`"paths":["/a"]`)
	}
}

func TestRIDAddressing(t *testing.T) {
	a := withContainer(t)
	item := a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a")).is(201).json()
	self := "/" + item["_self"].(string)
	a.do("GET", self, "", key("a")).is(200).has(`"id":"1"`)
	a.do("GET", self, "").is(200).has(`"id":"1"`)
	coll := a.do("GET", "/dbs/db/colls/c", "").is(200).json()["_self"].(string)
	a.do("GET", "/"+coll, "").is(200).has(`"id":"c"`)
	a.do("GET", "/"+coll+"pkranges", "").is(200).has(`"PartitionKeyRanges":[`)
	a.do("PUT", self, `{"id":"1","pk":"a","n":1}`).is(200).has(`"n":1`)
	a.do("DELETE", self, "").is(204)
	a.do("GET", self, "").is(404)
}

func TestItemHeaders(t *testing.T) {
	a := withContainer(t)
	r := a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"),
		"x-ms-activity-id: 01234567-89ab-cdef-0123-456789abcdef").is(201)
	rid := a.do("GET", "/dbs/db/colls/c", "").is(200).json()["_rid"].(string)
	for k, want := range map[string]string{"x-ms-activity-id": "01234567-89ab-cdef-0123-456789abcdef", "x-ms-content-path": rid, "x-ms-alt-content-path": "dbs/db/colls/c",
		"x-ms-documentdb-partitionkeyrangeid": "0", "etag": r.json()["_etag"].(string), "content-type": "application/json"} {
		if got := r.h.Get(k); got != want {
			t.Errorf("%s: %q, want %q", k, got, want)
		}
	}
	if tok := r.h.Get("x-ms-session-token"); tok != "0:-1#"+r.h.Get("lsn") {
		t.Errorf("session token %q, lsn %q", tok, r.h.Get("lsn"))
	}
	a.do("GET", docs+"/1", "", key("a"), "x-ms-session-token: "+r.h.Get("x-ms-session-token")).is(200)
	a.do("GET", docs+"/1", "", key("a"), "x-ms-session-token: 7:-1#1,"+r.h.Get("x-ms-session-token")).is(200)
	a.do("GET", docs+"/1", "", key("a"), "x-ms-session-token: 0:-1#9000000000000000").is(404).sub("1002")
	a.do("GET", docs+"/1", "", key("a"), "x-ms-session-token: rubbish").is(400)
	a.do("GET", docs+"/1", "", key("a"), "x-ms-consistency-level: Strong").is(400)
	a.do("GET", docs+"/1", "", key("a"), "x-ms-consistency-level: Eventual").is(200)
	a.do("GET", docs+"/1", "", key("a"), "x-ms-cosmos-intended-collection-rid: "+rid).is(200)
	a.do("GET", docs+"/1", "", key("a"), "x-ms-cosmos-intended-collection-rid: AAAAAAAAAAA=").is(400).sub("1024")
	etag := r.h.Get("etag")
	a.do("GET", docs+"/1", "", key("a"), "If-None-Match: "+etag).is(304)
	a.do("GET", docs+"/1", "", key("a"), `If-None-Match: "other"`).is(200)
	m := a.do("POST", docs, `{"id":"2","pk":"a"}`, key("a"), "Prefer: return=minimal").is(201)
	if m.body != "" || m.h.Get("etag") == "" {
		t.Errorf("minimal reply %q", m.body)
	}
	if r = a.do("GET", docs+"/none", "", key("a")).is(404); r.h.Get("x-ms-session-token") == "" {
		t.Error("a 404 without a session token")
	}
}

// The path headers name the owner of what a reply shows: the container of an item, the database of a container.
func TestOwnerHeaders(t *testing.T) {
	a := withContainer(t)
	db := a.do("GET", "/dbs/db", "").is(200)
	if r := a.do("GET", "/dbs/db/colls/c", "").is(200); r.h.Get("x-ms-alt-content-path") != "dbs/db" ||
		r.h.Get("x-ms-content-path") != db.json()["_rid"] {
		t.Errorf("%v", r.h)
	}
	if r := a.do("GET", "/dbs/db/colls/c/pkranges", "").is(200); r.h.Get("x-ms-alt-content-path") != "dbs/db/colls/c" {
		t.Errorf("%v", r.h)
	}
	if db.h.Get("x-ms-alt-content-path") != "" {
		t.Errorf("%v", db.h)
	}
}

func TestPartitionKeyHeader(t *testing.T) {
	a := withContainer(t)
	for i, k := range []struct{ header, field string }{
		{`["a"]`, `"pk":"a"`}, {`["\u00e4\"\\"]`, `"pk":"ä\"\\"`}, {`[1]`, `"pk":1.0`}, {`[-0.5]`, `"pk":-0.5`},
		{`[true]`, `"pk":true`}, {`[null]`, `"pk":null`}, {`[{}]`, `"x":0`}, {`[]`, `"x":0`},
		{` [ "a b" ] `, `"pk":"a b"`}, {`["\U0001f600\x7f\a\v"]`, `"pk":"\ud83d\ude00\u007f\u0007\u000b"`},
	} {
		h := "x-ms-documentdb-partitionkey: " + k.header
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d",%s}`, i, k.field), h).is(201)
		a.do("GET", fmt.Sprintf("%s/%d", docs, i), "", h).is(200)
	}
	for _, bad := range []string{`a`, `"a"`, `{}`, `["a"`, `["a","b"]`, `[["a"]]`, `[{"a":1}]`, `[1e999]`, `["\U00"]`,
		`["\UFFFFFFFF"]`, `["\x"`, `["` + strings.Repeat("x", 70<<10) + `"]`} {
		a.do("POST", docs, `{"id":"x","pk":"a"}`, "x-ms-documentdb-partitionkey: "+bad).is(400)
	}
	a.do("POST", docs, `{"id":"x","pk":"a"}`).is(400)
	a.do("POST", docs, `{"id":"x","pk":"a"}`, key("b")).is(400).sub("1001").has(msgPKMismatch)
	a.do("GET", docs+"/x", "").is(400)
}

func TestItemBodies(t *testing.T) {
	a := withContainer(t)
	for _, bad := range []string{``, `nope`, `{"id":"x","pk":"a"`, `[]`, `{"pk":"a"}`, `{"id":null,"pk":"a"}`,
		`{"id":5,"pk":"a"}`, `{"id":"","pk":"a"}`, `{"id":"x","pk":"a","ttl":0}`,
		`{"id":"x","pk":"a","ttl":"1"}`, `{"id":"x","pk":"a","ttl":1.5}`, "{\"id\":\"x\",\"pk\":\"a\",\"a\\u0000b\":1}",
		`{"id":"` + strings.Repeat("i", 1024) + `","pk":"a"}`} {
		a.do("POST", docs, bad, key("a")).is(400)
	}
	a.do("POST", docs, `{"id":"x","pk":"a","v":"`+strings.Repeat("x", maxBody)+`"}`, key("a")).is(413)
	a.do("POST", docs, `{"id":"x","pk":"a","_rid":"?","_etag":null,"_ts":"x","_self":[],"_lsn":{},"ttl":-1}`, key("a")).
		is(201).has(`"ttl":-1`)
	a.do("POST", docs, `{"id":"z","pk":"a"}`, key("a"), "x-ms-indexing-directive: Exclude").is(201)
	a.do("POST", docs, `{"id":"z2","pk":"a"}`, key("a"), "x-ms-indexing-directive: Perhaps").is(400)
	a.do("POST", docs, `{"id":"z2","pk":"a"}`, key("a"), "x-ms-documentdb-pre-trigger-include: t").is(400)
	a.do("GET", docs+"/z2", "", key("a")).is(404)
	a.do("PATCH", docs+"/x", `[]`, key("a")).is(400)
}

// A chunked body without a length is limited too.
func TestUnboundedBody(t *testing.T) {
	a := withContainer(t)
	r := httptest.NewRequest("POST", docs, neverEnding{})
	r.ContentLength = -1
	date := testNow.Format(http.TimeFormat)
	r.Header.Set("x-ms-date", date)
	r.Header.Set("authorization", sign(t, testKey, "POST", "docs", "dbs/db/colls/c", date))
	r.Header.Set("x-ms-documentdb-partitionkey", `["a"]`)
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() { a.srv.ServeHTTP(w, r); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the body is read without end")
	}
	if w.Code != 413 {
		t.Fatal(w.Code)
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestReadFeed(t *testing.T) {
	a := withContainer(t)
	for i := range 25 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i%3), key(fmt.Sprint("p", i%3))).is(201)
	}
	seen, token, pages := map[string]bool{}, "", 0
	for {
		h := []string{"x-ms-max-item-count: 4"}
		if token != "" {
			h = append(h, "x-ms-continuation: "+token)
		}
		r := a.do("GET", docs, "", h...).is(200)
		for _, d := range r.json()["Documents"].([]any) {
			id := d.(map[string]any)["id"].(string)
			if seen[id] {
				t.Fatalf("%s twice", id)
			}
			seen[id] = true
		}
		pages++
		if token = r.h.Get("x-ms-continuation"); token == "" {
			break
		}
	}
	if len(seen) != 25 || pages != 7 {
		t.Fatalf("%d items in %d pages", len(seen), pages)
	}
	a.do("GET", docs, "", key("p1")).is(200).has(`"_count":8`)
	a.do("GET", docs, "", "x-ms-documentdb-partitionkeyrangeid: 0").is(200).has(`"_count":25`)
	a.do("GET", docs, "", "x-ms-documentdb-partitionkeyrangeid: 9").is(410).sub("1002")
	a.do("GET", docs, "", "x-ms-start-epk: 00", "x-ms-end-epk: FF", "x-ms-read-key-type: EffectivePartitionKeyRange").
		is(200).has(`"_count":25`)
	a.do("GET", docs, "", "x-ms-start-epk: 00", "x-ms-end-epk: 1fffffffffffffffffffffffffffffff").
		is(200).has(`"_count":17`)
	a.do("GET", docs, "", "x-ms-start-epk: 0A", "x-ms-end-epk: 0a").is(200).has(`"_count":0`)
	a.do("GET", docs, "", "x-ms-start-epk: zz").is(400)
	a.do("GET", docs, "", "x-ms-start-epk: 1A", "x-ms-end-epk: 05").is(400)
	a.do("GET", docs, "", "x-ms-continuation: rubbish").is(400)
	a.do("GET", docs, "", "x-ms-max-item-count: 0").is(200)
	for _, bad := range []string{"-2", "abc", "1.5", "99999999999"} {
		a.do("GET", docs, "", "x-ms-max-item-count: "+bad).is(400).has("The input PageSize " + bad + " is invalid.")
	}
	a.do("GET", docs, "", "x-ms-max-item-count: many").is(400)
}

func TestRanges(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`,
		"x-ms-offer-throughput: 20000").is(201)
	const u = "/dbs/db/colls/c/pkranges"
	r := a.do("GET", u, "", "A-IM: Incremental Feed", "x-ms-max-item-count: -1").is(200)
	var f struct {
		PartitionKeyRanges []struct {
			ID, MinInclusive, MaxExclusive, Status string
			Parents                                []string
			RIDPrefix, TS, LSN                     int64
			ThroughputFraction                     float64
		}
		Count int `json:"_count"`
	}
	if err := json.Unmarshal([]byte(r.body), &f); err != nil {
		t.Fatal(err)
	}
	if g := f.PartitionKeyRanges; f.Count != 2 || g[0].MinInclusive != "" || g[1].MaxExclusive != "FF" ||
		g[0].MaxExclusive != g[1].MinInclusive || g[0].Status != "online" ||
		g[0].ThroughputFraction != 0.5 || g[0].Parents == nil || g[0].ID != "0" || g[1].ID != "1" {
		t.Fatalf("%s", r.body)
	}
	etag := r.h.Get("etag")
	for _, aim := range []string{"Incremental Feed", "Incremental feed"} {
		if r = a.do("GET", u, "", "A-IM: "+aim, "If-None-Match: "+etag).is(304); r.h.Get("etag") != etag {
			t.Errorf("304 with etag %q", r.h.Get("etag"))
		}
	}
	a.do("GET", u, "", "A-IM: Incremental Feed", `If-None-Match: "foreign"`).is(200).has(`"_count":2`)
	a.do("GET", u, "", "If-None-Match: "+etag).is(200).has(`"_count":2`)
	a.do("GET", u+"/1", "").is(200).has(`"id":"1"`)
	a.do("GET", u+"/5", "").is(404)
	a.do("POST", u, `{}`).is(405)
	a.do("GET", "/dbs/db/colls/none/pkranges", "").is(404).sub("1003")
}

func TestOffers(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"]}}`).is(201)
	var f struct {
		Offers []struct {
			ID      string
			Self    string `json:"_self"`
			Content struct{ OfferThroughput int }
		}
	}
	if err := json.Unmarshal([]byte(a.do("GET", "/offers", "").is(200).body), &f); err != nil || len(f.Offers) != 1 ||
		f.Offers[0].Content.OfferThroughput != 400 {
		t.Fatalf("%v %+v", err, f)
	}
	u := "/" + f.Offers[0].Self
	a.do("GET", u, "").is(200).has(`"offerResourceId":"`)
	put := func(content string, headers ...string) *reply {
		return a.do("PUT", u, `{"content":`+content+`}`, append(headers, "Prefer: return=minimal")...)
	}
	put(`{"offerThroughput":1000}`).is(200).has(`"offerThroughput":1000`)
	put(`{"offerThroughput":1050}`).is(400)
	put(`{"offerThroughput":100}`).is(400)
	put(`{"offerAutopilotSettings":{"maxThroughput":4000}}`).is(400).has("x-ms-cosmos-migrate-offer-to-autopilot")
	put(`{"offerThroughput":-1}`, "x-ms-cosmos-migrate-offer-to-autopilot: true").is(200).has(
		`"offerAutopilotSettings":{"maxThroughput":1000}`)
	put(`{"offerAutopilotSettings":{"maxThroughput":5000}}`).is(200).has(`"offerThroughput":500`)
	a.do("PUT", u, `{"offerAutopilotSettings":{"maxThroughput":8000}}`).is(200).has(`"maxThroughput":8000`)
	put(`{"offerAutopilotSettings":{"maxThroughput":1}}`, "x-ms-cosmos-migrate-offer-to-manual-throughput: true").is(
		200).has(`"offerThroughput":8000`)
	a.do("PUT", u, `nope`).is(400)
	a.do("PUT", u, `{}`).is(400)
	a.do("GET", "/offers/AAAA", "").is(404)
	a.do("GET", "/offers/x", "").is(404)
	for _, h := range []string{"x-ms-offer-throughput: 50", "x-ms-offer-throughput: x",
		`x-ms-cosmos-offer-autopilot-settings: {"maxThroughput":10}`, `x-ms-cosmos-offer-autopilot-settings: x`} {
		a.do("POST", "/dbs/db/colls", `{"id":"d"}`, h).is(400)
	}
}

const isAtomic = "x-ms-cosmos-batch-atomic: True"
const isBatch = "x-ms-cosmos-is-batch-request: True"

func TestBatchReplies(t *testing.T) {
	a := withContainer(t)
	b := a.do("POST", docs, `[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}},{"operationType":"Read",`+
		`"id":"1"},{"operationType":"Delete","id":"1","ifMatch":null}]`, isBatch, isAtomic, key("a")).is(200)
	b.has(`[{"statusCode":201,"requestCharge":`).has(`"eTag":"\"`).has(`"resourceBody":{"id":"1"`).has(
		`{"statusCode":204,`)
	a.do("POST", docs, `[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}},{"operationType":"Read",`+
		`"id":"none"}]`, isBatch, isAtomic, key("a")).is(207).has(`"statusCode":424`).has(`"statusCode":404`)
	a.do("GET", docs+"/1", "", key("a")).is(404)
	min := a.do("POST", docs, `[{"operationType":"Upsert","resourceBody":{"id":"1","pk":"a"}},`+
		`{"operationType":"Read","id":"1"}]`, isBatch, isAtomic, key("a"), "Prefer: return=minimal").is(200)
	if n := strings.Count(min.body, "resourceBody"); n != 1 {
		t.Errorf("%d bodies in a minimal reply: %s", n, min.body)
	}
	for _, bad := range []string{``, `{}`, `[]`, `[1]`, `[{"operationType":"Dance"}]`, `[{"id":"1"}]`,
		"\x81\xff hybrid row", `[` + strings.Repeat(`{"operationType":"Read","id":"1"},`, 100) +
			`{"operationType":"Read","id":"1"}]`} {
		a.do("POST", docs, bad, isBatch, isAtomic, key("a")).is(400)
	}
	a.do("POST", docs, `[{"operationType":"Create","resourceBody":{"id":"9","pk":"a"}}]`, isBatch, isAtomic).is(400)
	for _, key2 := range []string{`[\"b\"]`, `[1]`, `[\"a\",\"a\"]`, `a`, `[{}]`} { // the operation is for another item
		a.do("POST", docs, `[{"operationType":"Delete","id":"1","partitionKey":"`+key2+`"}]`, isBatch, isAtomic,
			key("a")).is(400).has("have a different partition key value than the request.")
	}
	a.do("POST", docs, `[{"operationType":"Read","id":"1","partitionKey":"[\"a\"]"}]`, isBatch, isAtomic,
		key("a")).is(200)
	for _, op := range []string{`{"operationType":"Patch","id":"1","resourceBody":{"operations":[]}}`,
		`{"operationType":"Patch","id":"1"}`, `{"operationType":"Create"}`, `{"operationType":"Delete"}`,
		`{"operationType":"Create","resourceBody":[1]}`} {
		a.do("POST", docs, `[`+op+`]`, isBatch, isAtomic, key("a")).is(207).has(`"statusCode":400`)
	}
}

func TestBulkReplies(t *testing.T) {
	a := withContainer(t)
	const ops = `[{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"1","pk":"a"}},` +
		`{"operationType":"Create","partitionKey":"[\"b\"]","resourceBody":{"id":"1","pk":"b"}},{"operationType":"Read","partitionKey":"[\"c\"]","id":"none"}]`
	h := []string{isBatch, "x-ms-cosmos-batch-atomic: False", "x-ms-cosmos-batch-continue-on-error: True",
		"x-ms-documentdb-partitionkeyrangeid: 0"}
	r := a.do("POST", docs, ops, h...).is(207)
	r.has(`{"statusCode":201`).has(`{"statusCode":404`)
	a.do("GET", docs+"/1", "", key("b")).is(200)
	// Each result shows its own item, also with a read between the writes. Without continue-on-error the rest isn't
	// done.
	const more = `[{"operationType":"Upsert","partitionKey":"[\"a\"]","resourceBody":{"id":"1","pk":"a","n":1}},` +
		`{"operationType":"Upsert","partitionKey":"[\"b\"]","resourceBody":{"id":"1","pk":"b","n":2}},{"operationType":"Read","partitionKey":"[\"a\"]","id":"1"},{"operationType":"Delete","partitionKey":"[\"z\"]","id":"1"},{"operationType":"Upsert","partitionKey":"[\"b\"]","resourceBody":{"id":"9","pk":"b"}}]`
	r = a.do("POST", docs, more, h...).is(207)
	r.has(`"resourceBody":{"id":"1","pk":"a","n":1,`).has(`"resourceBody":{"id":"1","pk":"b","n":2,`).has(
		`"resourceBody":{"id":"9","pk":"b",`)
	if n := strings.Count(r.body, `"n":1,`); n != 2 {
		t.Errorf("%d times n=1: %s", n, r.body)
	}
	a.do("DELETE", docs+"/9", "", key("b")).is(204)
	a.do("POST", docs, more, isBatch, "x-ms-cosmos-batch-atomic: False", "x-ms-cosmos-batch-continue-on-error: False").
		is(207).has(`"statusCode":404`).has(`"statusCode":424`)
	a.do("GET", docs+"/9", "", key("b")).is(404)
	a.do("POST", docs, ops, append(h[:3:3], "x-ms-documentdb-partitionkeyrangeid: 7")...).is(410).sub("1002")
}

func TestUnknownAndUnsupported(t *testing.T) {
	a := withContainer(t)
	a.do("POST", "/dbs/db/colls/c/schemas", `{"id":"x"}`).is(400).has("not supported")
	a.do("GET", "/dbs/db/colls/c/schemas", "").is(400)
	a.do("GET", "/dbs/db/colls/c/conflicts", "").is(200).has(`"Conflicts":[]`)
	a.do("GET", "/dbs/db/colls/c/conflicts/x", "").is(404)
	a.do("PUT", "/dbs", `{}`).is(405)
	a.do("PATCH", "/dbs/db", `{}`).is(405)
	for _, u := range []string{"/nothing", "/dbs/db/nothing", "/colls", "/dbs/db/colls/c/docs/a/b/c/d/e"} {
		r := httptest.NewRequest("GET", u, nil)
		w := httptest.NewRecorder()
		a.srv.ServeHTTP(w, r)
		if w.Code != 401 {
			t.Errorf("%s: %d", u, w.Code)
		}
	}
}

// Every path refuses a request with an invalid signature.
func TestEveryRouteIsGuarded(t *testing.T) {
	a := withContainer(t)
	for _, rt := range a.srv.lines {
		u := strings.ReplaceAll(rt.path, ":", "")
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if r := a.do(m, u, `{"id":"x"}`,
				"authorization: type%3dmaster%26ver%3d1.0%26sig%3dAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3d",
				"x-ms-date: "+testNow.Format(http.TimeFormat)); r.code != 401 {
				t.Errorf("%s %s: %d", m, u, r.code)
			}
		}
	}
}

// The protocol's header names are sent in lower case, like by the service: not every client ignores case.
func TestHeaderNamesOnTheWire(t *testing.T) {
	a := withItems(t, 3)
	r := httptest.NewRequest("GET", docs, nil)
	date := testNow.Format(http.TimeFormat)
	r.Header.Set("x-ms-date", date)
	r.Header.Set("x-ms-max-item-count", "1")
	r.Header.Set("authorization", sign(t, testKey, "GET", "docs", "dbs/db/colls/c", date))
	w := httptest.NewRecorder()
	a.srv.ServeHTTP(w, r)
	sent := map[string][]string(w.Header())
	if w.Code != 200 || len(sent["x-ms-continuation"]) == 0 || len(sent["x-ms-request-charge"]) == 0 {
		t.Errorf("%d %v", w.Code, sent)
	}
	for k := range sent {
		if strings.HasPrefix(k, "X-Ms-") {
			t.Errorf("%s is not in lower case", k)
		}
	}
}
