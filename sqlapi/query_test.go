package sqlapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

const (
	isQuery = "x-ms-documentdb-isquery: True"
	isPlan  = "x-ms-cosmos-is-query-plan-request: True"
	cross   = "x-ms-documentdb-query-enablecrosspartition: True"
)

// withItems creates /dbs/db/colls/c on two physical partitions with n items: id, pk (p0..p2), n.
func withItems(t testing.TB, n int) *api {
	t.Helper()
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`,
		"x-ms-offer-throughput: 20000").is(201)
	for i := range n {
		pk := fmt.Sprint("p", i%3)
		a.do("POST", docs, fmt.Sprintf(`{"id":"i%d","pk":"%s","n":%d}`, i, pk, i), key(pk)).is(201)
	}
	return a
}

func (a *api) query(text string, headers ...string) *reply {
	a.t.Helper()
	q, _ := json.Marshal(map[string]any{"query": text})
	return a.do("POST", docs, string(q),
		append([]string{isQuery, "content-type: application/query+json"}, headers...)...)
}

func TestQueryReply(t *testing.T) {
	a := withItems(t, 12)
	r := a.query("SELECT VALUE c.n FROM c WHERE c.n < 3 ORDER BY c.n", cross).is(200).has(
		`"Documents":[0,1,2],"_count":3}`)
	if r.h.Get("x-ms-item-count") != "3" || r.h.Get("x-ms-session-token") == "" || r.h.Get("x-ms-continuation") != "" ||
		r.h.Get("x-ms-content-path") == "" {
		t.Errorf("%v", r.h)
	}
	a.query("SELECT * FROM c WHERE c.id = 'i4'", cross).is(200).has(`"_attachments":"attachments/"`).has(
		`"_self":"dbs/`)
	a.query("SELECT * FROM c", key("p1")).is(200).has(`"_count":4`)
	a.query("SELECT c._rid, c._ts, c._etag FROM c WHERE c.id = 'i1'", cross).is(200).has(`"_rid":"`).has(`"_etag":"\"`)
	m := a.query("SELECT * FROM c", cross, "x-ms-documentdb-populatequerymetrics: True").is(200).h.Get(
		"x-ms-documentdb-query-metrics")
	if !strings.Contains(m, "retrievedDocumentCount=12;") || !strings.Contains(m, "outputDocumentCount=12;") {
		t.Errorf("metrics %q", m)
	}
	a.do("POST", docs, `{"query":"SELECT * FROM c WHERE c.n = @n","parameters":[{"name":"@n","value":5}]}`, isQuery,
		cross).is(200).has(`"id":"i5"`)
	a.do("POST", docs, `{"query":"SELECT * FROM c","parameters":null}`, "x-ms-documentdb-query: True", cross).is(
		200).has(`"_count":12`)
}

// A query over partitions needs the header, unless its filter selects one partition key.
func TestCrossPartitionHeader(t *testing.T) {
	a := withItems(t, 6)
	a.query("SELECT * FROM c").is(400).has("Cross partition query is required but disabled")
	a.query("SELECT * FROM c", "x-ms-documentdb-query-enablecrosspartition: False").is(400)
	a.query("SELECT * FROM c WHERE c.pk = 'p1'").is(200).has(`"_count":2`)
}

func TestQueryRanges(t *testing.T) {
	a := withItems(t, 30)
	n := 0
	for _, id := range []string{"0", "1"} {
		r := a.query("SELECT * FROM c", "x-ms-documentdb-partitionkeyrangeid: "+id).is(200)
		n += int(r.json()["_count"].(float64))
		if !strings.HasPrefix(r.h.Get("x-ms-session-token"), id+":-1#") {
			t.Errorf("range %s: token %q", id, r.h.Get("x-ms-session-token"))
		}
	}
	if n != 30 {
		t.Errorf("%d items in both ranges", n)
	}
	a.query("SELECT * FROM c", "x-ms-documentdb-partitionkeyrangeid: 2").is(410).sub("1002")
}

func TestRefusedQueries(t *testing.T) {
	a := withItems(t, 1)
	for _, q := range []string{"", "SELEC", "SELECT * FROM c WHERE c.n = @absent", "SELECT NOSUCH(1)",
		"SELECT * FROM c WHERE c.x = 'open"} {
		a.query(q, cross).is(400)
	}
	a.query("SELECT * FROM c WHERE ;", cross).is(400).has(
		`\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":`)
	for _, b := range []string{``, `{`, `[]`, `{}`, `{"query":5}`, `{"query":"SELECT 1","parameters":{}}`,
		`{"query":"SELECT 1","parameters":[1]}`, `{"query":"SELECT 1","parameters":[{"value":1}]}`,
		`{"query":"SELECT 1","parameters":[{"name":"@a","value":nope}]}`, `{"query":"SELECT \ud800x"} x`} {
		a.do("POST", docs, b, isQuery, cross).is(400)
	}
	for params, text := range map[string]string{
		`{"name":"a","value":1}`: "Parameter names should be in the format of symbol '@' followed by a valid identifier",
		`{"name":"@"}`:           "Parameter names should be in the format of symbol '@'",
		`{"name":"@a","value":1},{"name":"@b"},{"name":"@a","value":1}`: "Specified duplicate parameter name '@a'.",
	} {
		a.do("POST", docs, `{"query":"SELECT * FROM c WHERE c.n = @a","parameters":[`+params+`]}`, isQuery, cross).is(
			400).has(text)
	}
	a.query("SELECT * FROM c", cross, "x-ms-continuation: rubbish").is(400)
	a.query("SELECT '"+strings.Repeat("x", maxBody)+"'", cross).is(413)
}

// A plan has every field that any SDK reads.
func TestPlanReply(t *testing.T) {
	a := withItems(t, 1)
	const features = "x-ms-cosmos-supported-query-features: Aggregate, CompositeAggregate, Distinct, GroupBy, " +
		"MultipleOrderBy, OffsetAndLimit, OrderBy, Top, NonValueAggregate, MultipleAggregates"
	plan := func(text string, headers ...string) *reply {
		q, _ := json.Marshal(map[string]any{"query": text})
		return a.do("POST", docs, string(q), append([]string{isPlan, features}, headers...)...)
	}
	p := plan("SELECT * FROM c").is(200).json()
	qi := p["queryInfo"].(map[string]any)
	if qi["distinctType"] != "None" || qi["top"] != nil || qi["offset"] != nil || qi["limit"] != nil ||
		qi["hasSelectValue"] != false || p["partitionedQueryExecutionInfoVersion"] != 2.0 {
		t.Errorf("%v", p)
	}
	if l, ok := qi["aggregates"].([]any); !ok || len(l) != 0 {
		t.Errorf("aggregates %v", qi["aggregates"])
	}
	r := p["queryRanges"].([]any)[0].(map[string]any)
	if r["min"] != "" || r["max"] != "FF" || r["isMinInclusive"] != true || r["isMaxInclusive"] != false {
		t.Errorf("%v", r)
	}
	r = plan("SELECT * FROM c", key("redmond")).is(200).json()["queryRanges"].([]any)[0].(map[string]any)
	if r["min"] != "22E342F38A486A088463DFF7838A5963" || r["min"] != r["max"] || r["isMaxInclusive"] != true {
		t.Errorf("%v", r)
	}
	plan("SELECT * FROM c ORDER BY c.n").is(200).has("orderByItems").has("{documentdb-formattableorderbyquery-filter}")
	plan("SELECT VALUE COUNT(1) FROM c").is(200).has(`"aggregates":["Count"]`)
	plan("SELEC").is(400)
	a.do("POST", docs, `{"query":"SELECT c.n, COUNT(1) FROM c GROUP BY c.n"}`, isPlan,
		"x-ms-cosmos-supported-query-features: OrderBy").is(400)
}

// The queries that SDKs send to find resources.
func TestMetadataQueries(t *testing.T) {
	a := withItems(t, 0)
	coll := a.do("GET", "/dbs/db/colls/c", "").is(200).json()
	q := func(path, body string) *reply { return a.do("POST", path, body, isQuery) }
	q("/dbs", `{"query":"SELECT * FROM root r WHERE r.id=@id","parameters":[{"name":"@id","value":"db"}]}`).is(200).has(
		`"_count":1`)
	q("/dbs", `{"query":"SELECT * FROM root r WHERE r.id = 'none'"}`).is(200).has(`"Databases":[],"_count":0`)
	q("/dbs/db/colls", `{"query":"SELECT * FROM c"}`).is(200).has(`"_count":1`)
	q("/offers", `{"query":"SELECT * FROM c WHERE c.offerResourceId = '`+coll["_rid"].(string)+`'"}`).is(200).has(
		`"_count":1`)
	q("/offers", `{"query":"SELECT * from root where root.resource = \"`+coll["_self"].(string)+`\""}`).is(200).has(
		`"_count":1`)
	q("/offers", `{"query":"SELECT * FROM c WHERE c.offerResourceId = @r AND c.offerVersion = 'V2'",`+
		`"parameters":[{"name":"@r","value":"`+coll["_rid"].(string)+`"}]}`).is(200).has(`"_count":1`)
	q("/dbs/db/colls/c/pkranges", `{"query":"SELECT * FROM root WHERE root.id = '1'"}`).is(200).has(`"_count":1`)
	q("/dbs/db/colls/c/conflicts", `{"query":"SELECT * FROM c"}`).is(400).has("Cross partition query is required")
	a.do("POST", "/dbs/db/colls/c/conflicts", `{"query":"SELECT * FROM c"}`, "x-ms-documentdb-isquery: True", key("a")).
		is(200).has(`"_count":0`)
	q("/dbs", `{"query":"SELECT * FROM root r WHERE r.id = @absent"}`).is(400)
	q("/dbs", `{"query":"SELEC"}`).is(400)
	q("/dbs/db/colls/c/conflicts", `{"query":"SELEC"}`).is(400)
}

// Resources other than items are queried with the whole language, in pages.
func TestMetadataLanguage(t *testing.T) {
	a := withItems(t, 0)
	for _, d := range []string{"e", "f", "g"} {
		a.do("POST", "/dbs", `{"id":"`+d+`"}`).is(201)
	}
	a.do("POST", "/dbs/db/colls", `{"id":"d","partitionKey":{"paths":["/pk"]},"defaultTtl":60}`,
		"x-ms-offer-throughput: 1000").is(201)
	for _, u := range []string{"u1", "u2"} {
		a.do("POST", "/dbs/db/users", `{"id":"`+u+`"}`).is(201)
		a.do("POST", "/dbs/db/users/"+u+"/permissions",
			`{"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"}`).is(201)
	}
	rows := func(path, name, query string, headers ...string) (out []string) {
		t.Helper()
		for token, pages := "", 0; ; pages++ {
			h := append([]string{isQuery}, headers...)
			if token != "" {
				h = append(h, "x-ms-continuation: "+token)
			}
			r := a.do("POST", path, `{"query":"`+query+`"}`, h...).is(200)
			var body map[string]json.RawMessage
			var list []json.RawMessage
			if json.Unmarshal([]byte(r.body), &body) != nil || json.Unmarshal(body[name], &list) != nil ||
				string(body["_count"]) != strconv.Itoa(len(list)) ||
				r.h.Get("x-ms-item-count") != string(body["_count"]) {
				t.Fatal(r.body)
			}
			for _, x := range list {
				out = append(out, string(x))
			}
			if token = r.h.Get("x-ms-continuation"); token == "" || pages > 20 {
				return out
			}
		}
	}
	for _, x := range []struct{ path, name, query, want string }{
		{"/dbs", "Databases", "SELECT VALUE r.id FROM root r WHERE r.id > 'db'", `"e" "f" "g"`},
		{"/dbs", "Databases", "SELECT r.id FROM root r ORDER BY r.id DESC OFFSET 1 LIMIT 2", `{"id":"f"} {"id":"e"}`},
		{"/dbs", "Databases", "SELECT VALUE COUNT(1) FROM r WHERE IS_DEFINED(r._rid) AND IS_NUMBER(r._ts) AND " +
			"STARTSWITH(r._self, 'dbs/')", `4`},
		{"/dbs", "Databases", "SELECT TOP 1 VALUE r._colls FROM r", `"colls/"`},
		{"/dbs/db/colls", "DocumentCollections", "SELECT VALUE {i: r.id, t: r.defaultTtl, p: p} FROM r JOIN p IN " +
			"r.partitionKey.paths", `{"i":"c","p":"/pk"} {"i":"d","t":60,"p":"/pk"}`},
		{"/dbs/db/colls", "DocumentCollections", "SELECT r.partitionKey.version AS v, COUNT(1) AS n FROM r GROUP BY " +
			"r.partitionKey.version", `{"v":2,"n":1} {"n":1}`},
		{"/offers", "Offers", "SELECT VALUE o.content.offerThroughput FROM o ORDER BY o.content.offerThroughput",
			`1000 20000`},
		{"/dbs/db/colls/c/pkranges", "PartitionKeyRanges", "SELECT VALUE r.id FROM r WHERE r._lsn = r.lsn AND r.id " +
			"IN ('0', '1')", `"0" "1"`},
		{"/dbs/db/users", "Users", "SELECT VALUE u.id FROM u WHERE u.id LIKE 'u%' ORDER BY u._ts DESC, u.id DESC",
			`"u2" "u1"`},
		{"/dbs/db/users/u1/permissions", "Permissions", "SELECT p.id, p.permissionMode, LENGTH(p._token) > 40 AS " +
			"tok FROM p", `{"id":"p","permissionMode":"Read","tok":true}`},
	} {
		for _, size := range []string{"1", "2", "-1"} {
			if got := strings.Join(rows(x.path, x.name, x.query, "x-ms-max-item-count: "+size), " "); got != x.want {
				t.Errorf("%s %s, pages of %s: %s", x.path, x.query, size, got)
			}
		}
	}
	// A page continues after the last row of the previous one, whatever was dropped or created in between.
	r := a.do("POST", "/dbs", `{"query":"SELECT VALUE r.id FROM r"}`, isQuery, "x-ms-max-item-count: 2").is(200)
	token := "x-ms-continuation: " + r.h.Get("x-ms-continuation")
	a.do("DELETE", "/dbs/db", "").is(204)
	a.do("POST", "/dbs", `{"query":"SELECT VALUE r.id FROM r"}`, isQuery, token).is(200).has(`"Databases":["f","g"]`)
	a.do("DELETE", "/dbs/e", "").is(204)
	a.do("POST", "/dbs", `{"query":"SELECT VALUE r.id FROM r"}`, isQuery, token).is(200).has(`"_count":`)
	// Its token isn't valid for another query, another list, or as a text.
	a.do("POST", "/dbs", `{"query":"SELECT VALUE r.id FROM r WHERE true"}`, isQuery, token).is(400)
	a.do("POST", "/offers", `{"query":"SELECT VALUE r.id FROM r"}`, isQuery, token).is(400)
	a.do("POST", "/dbs", `{"query":"SELECT VALUE r.id FROM r"}`, isQuery, "x-ms-continuation: x").is(400)
	// A query that reads the whole row returns the resource as a read shows it.
	one := a.do("GET", "/dbs/f", "").is(200).body
	a.do("POST", "/dbs", `{"query":"SELECT * FROM r WHERE r.id = 'f'"}`, isQuery).is(200).has(`[` + one + `]`)
	a.do("POST", "/dbs", `{"query":"SELECT r FROM r WHERE r.id = 'f'"}`, isQuery).is(200).has(`[{"r":` + one + `}]`)
}

// FuzzRequest sends arbitrary headers and bodies to the item path: never a 5xx, never a panic.
func FuzzRequest(f *testing.F) {
	for _, s := range []struct{ body, pk, kind, extra string }{
		{`{"id":"1","pk":"a"}`, `["a"]`, "", ""}, {`{"query":"SELECT * FROM c"}`, ``, "q", "x"},
		{`[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}}]`, `["a"]`, "b", "*"},
		{`{"query":"SELECT VALUE COUNT(1) FROM c"}`, `[{}]`, "p", `"etag"`},
	} {
		f.Add(s.body, s.pk, s.kind, s.extra)
	}
	a := withItems(f, 3)
	f.Fuzz(func(t *testing.T, body, pk, kind, extra string) {
		h := []string{cross}
		switch kind {
		case "q":
			h = append(h, isQuery)
		case "p":
			h = append(h, isPlan, "x-ms-cosmos-supported-query-features: "+extra)
		case "b":
			h = append(h, isBatch, isAtomic)
		case "u":
			h = append(h, "x-ms-documentdb-is-upsert: true")
		}
		if pk != "" {
			h = append(h, "x-ms-documentdb-partitionkey: "+pk)
		}
		h = append(h, "If-Match: "+extra, "x-ms-continuation: "+extra, "x-ms-session-token: "+extra)
		a := &api{t, a.srv}
		if r := a.do("POST", docs, body, h...); r.code >= 500 {
			t.Fatalf("%s: %d %s", r.what, r.code, r.body)
		}
	})
}

// VectorDistance uses the function of the container's vector embedding policy, unless the query names another one. The
// plan does the same.
func TestVectorDistanceOfPolicy(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do(
		"POST", "/dbs/db/colls",
		`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"vectorEmbeddingPolicy":{"vectorEmbeddings":[
		{"path":"/deep/v","dataType":"float32","dimensions":2,"distanceFunction":"Euclidean"},
		{"path":"/w","dimensions":2,"distanceFunction":"dotproduct"}]}}`).is(201)
	for i := range 10 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"a","deep":{"v":[%d,0]},"w":[%d,0],"x":[%d,1]}`, i, i, i, i),
			key("a")).is(201)
	}
	query := func(text string) *reply {
		t.Helper()
		return a.do("POST", docs, `{"query":"`+strings.ReplaceAll(text, `"`, `\"`)+`"}`,
			"x-ms-documentdb-isquery: True", key("a")).is(200)
	}
	query(`SELECT VALUE VectorDistance(c.deep.v, [5, 0]) FROM c WHERE c.id = '2'`).has(`[3]`)
	query(`SELECT VALUE VectorDistance([5, 0], d.deep["v"], true) FROM d WHERE d.id = '2'`).has(`[3]`)
	query(`SELECT VALUE VectorDistance(c.w, [5, 0], false, {"dataType": "float32"}) FROM c WHERE c.id = '2'`).has(
		`[10]`)
	query(`SELECT VALUE VectorDistance(c.w, [5, 0], false, {"distanceFunction": "euclidean"}) FROM c WHERE c.id = '2'`).
		has(`[3]`)
	query(`SELECT VALUE VectorDistance(c.x, [0, 3]) FROM c WHERE c.id = '0'`).has(`[1]`) // no embedding: cosine
	query(`SELECT TOP 3 VALUE c.id FROM c ORDER BY VectorDistance(c.deep.v, [6.2, 0])`).has(`["6","7","5"]`)
	query(`SELECT TOP 2 VALUE c.id FROM c ORDER BY VectorDistance(c.w, [1, 0])`).has(`["9","8"]`)
	plan := func(text string) *reply {
		t.Helper()
		return a.do("POST", docs, `{"query":"`+text+`"}`, "x-ms-cosmos-is-query-plan-request: True").is(200)
	}
	plan(`SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.deep.v, [6, 0])`).has(`"orderBy":["Ascending"]`).has(
		`distanceFunction`)
	plan(`SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.w, [6, 0])`).has(`"orderBy":["Descending"]`)
	plan(`SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.x, [6, 0])`).has(`"orderBy":["Descending"]`)
}

// Clients that merge an ORDER BY resume each partition's part with another filter and its continuation. Every page may
// be the last of an iterator. The continuation of any other query is refused.
func TestResumedOrder(t *testing.T) {
	a := withItems(t, 0)
	for i := range 60 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"l":[1,2]}`, i, i%3, i/4),
			key(fmt.Sprintf("p%d", i%3))).is(201)
	}
	const text = `SELECT c._rid, [{\"item\": c.%s}] AS orderByItems, {\"id\": c.id,` +
		` \"x\": x} AS payload FROM c JOIN x IN c.l WHERE ((%s)) ORDER BY c.%s%s`
	for _, x := range []struct{ field, desc string }{{"n", ""}, {"n", " DESC"}, {"pk", ""}, {"pk", " DESC"}} {
		whole, _ := a.pages(fmt.Sprintf(text, x.field, "true", x.field, x.desc), "x-ms-max-item-count: 1000")
		var got []string
		filter, token := "true", ""
		for {
			h := []string{isQuery, cross, "x-ms-max-item-count: 7"}
			if token != "" {
				h = append(h, "x-ms-continuation: "+token)
			}
			r := a.do("POST", docs, `{"query":"`+fmt.Sprintf(text, x.field, filter, x.field, x.desc)+`"}`, h...).is(200)
			var f struct{ Documents []json.RawMessage }
			var last struct {
				OrderByItems []struct{ Item json.RawMessage }
			}
			if err := json.Unmarshal([]byte(r.body), &f); err != nil ||
				json.Unmarshal(f.Documents[len(f.Documents)-1], &last) != nil {
				t.Fatal(err, r.body)
			}
			for _, d := range f.Documents {
				got = append(got, string(d))
			}
			op := ">="
			if x.desc != "" {
				op = "<="
			}
			filter = "c." + x.field + " " + op + " " + strings.ReplaceAll(string(last.OrderByItems[0].Item), `"`, `'`)
			if token = r.h.Get("x-ms-continuation"); token == "" {
				break
			}
		}
		if strings.Join(got, " ") != strings.Join(whole, " ") || len(got) != 120 {
			t.Errorf("ORDER BY %s%s: %d rows, want %d", x.field, x.desc, len(got), len(whole))
		}
	}
	token := a.do("POST", docs, `{"query":"SELECT c.id FROM c WHERE true ORDER BY c.n"}`, isQuery, cross,
		"x-ms-max-item-count: 7").is(200).h.Get("x-ms-continuation")
	a.do("POST", docs, `{"query":"SELECT c.id FROM c WHERE c.n > 3 ORDER BY c.n"}`, isQuery, cross,
		"x-ms-continuation: "+token).is(400)

}
