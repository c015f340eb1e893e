package sqlapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

func strictAPI(t *testing.T, strict bool) *api {
	t.Helper()
	clk := clock.Fake(testNow)
	e, err := core.Open(context.Background(), memkv.New(), core.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Wall: clk, Strict: strict})
	if err != nil {
		t.Fatal(err)
	}
	a := &api{t, s}
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`,
		"x-ms-offer-throughput: 30000").is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"h","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}}`).is(
		201)
	for _, pk := range []string{"a", "b", "c"} {
		a.do("POST", docs, `{"id":"1","pk":"`+pk+`","n":1}`, key(pk)).is(201)
	}
	return a
}

// The queries that strictness refuses over several partitions. Without it all are answered.
func TestStrict(t *testing.T) {
	loose, strict := strictAPI(t, false), strictAPI(t, true)
	query, cross := "x-ms-documentdb-isquery: True", "x-ms-documentdb-query-enablecrosspartition: True"
	for _, x := range []struct {
		text    string
		refused bool
	}{
		{`SELECT * FROM c`, false}, {`SELECT VALUE c.n + 1 FROM c WHERE c.n > 0`, false}, {`SELECT VALUE 1`, false},
		{`SELECT VALUE ARRAY(SELECT DISTINCT TOP 2 VALUE x FROM x IN c.l) FROM c`, false},
		{`SELECT * FROM c ORDER BY c.n`, true}, {`SELECT VALUE COUNT(1) FROM c`, true},
		{`SELECT DISTINCT c.n FROM c`, true}, {`SELECT c.n FROM c GROUP BY c.n`, true},
		{`SELECT * FROM c OFFSET 0 LIMIT 1`, true}, {`SELECT TOP 1 * FROM c`, true},
		{`SELECT * FROM c WHERE c.pk = 'a' ORDER BY c.n`, false},
		{`SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'a'`, false},
		{`SELECT * FROM c WHERE c.pk IN ('a', 'b') ORDER BY c.n`, true},
	} {
		body := `{"query":"` + x.text + `"}`
		loose.do("POST", docs, body, query, cross).is(200)
		r := strict.do("POST", docs, body, query, cross)
		if !x.refused {
			r.is(200)
			continue
		}
		r.is(400).sub("1004").has("cross partition query can not be directly served by the gateway")
		var e struct{ Code, AdditionalErrorInfo string }
		var plan struct {
			Version int             `json:"partitionedQueryExecutionInfoVersion"`
			Info    json.RawMessage `json:"queryInfo"`
		}
		if json.Unmarshal([]byte(r.body), &e) != nil || json.Unmarshal([]byte(e.AdditionalErrorInfo), &plan) != nil ||
			e.Code != "BadRequest" || plan.Version != 2 || len(plan.Info) == 0 {
			t.Errorf("%s: %s", x.text, r.body)
		}
		// A query is served if it is restricted to one partition, or to the ranges that a client with a plan requests
		// one by one.
		strict.do("POST", docs, body, query, key("a")).is(200)
		for _, id := range []string{"0", "1", "2"} {
			strict.do("POST", docs, body, query, cross, "x-ms-documentdb-partitionkeyrangeid: "+id).is(200)
		}
	}
	// Aggregates without VALUE are refused with other words, and without the plan, which clients ask for then.
	for _, text := range []string{`SELECT MAX(c.n) AS m FROM c`, `SELECT COUNT(1), AVG(c.n) FROM c WHERE c.n > 0`,
		`SELECT c.n, COUNT(1) AS x FROM c GROUP BY c.n`, `SELECT TOP 1 SUM(c.n) FROM c`} {
		body := `{"query":"` + text + `"}`
		loose.do("POST", docs, body, query, cross).is(200)
		r := strict.do("POST", docs, body, query, cross).is(400).has(msgNotValue)
		if r.h.Get("x-ms-substatus") != "" || strings.Contains(r.body, "additionalErrorInfo") {
			t.Errorf("%s: %v %s", text, r.h, r.body)
		}
		strict.do("POST", docs, body, query, key("a")).is(200)
		strict.do("POST", docs, body, query, cross, "x-ms-documentdb-partitionkeyrangeid: 1").is(200)
	}
	// A query that can't be planned is refused with the reason, and answered without strictness.
	const whole = `{"query":"SELECT VALUE s FROM (SELECT DISTINCT c.n FROM c) s"}`
	loose.do("POST", docs, whole, query, cross).is(200)
	if r := strict.do("POST", docs, whole, query, cross).is(400); strings.Contains(r.body, "additionalErrorInfo") {
		t.Error(r.body)
	}
	// A prefix of a key is in one partition here.
	strict.do("POST", "/dbs/db/colls/h/docs", `{"query":"SELECT * FROM c ORDER BY c.n"}`, query,
		`x-ms-documentdb-partitionkey: ["x"]`).is(200)
	strict.do("POST", "/dbs/db/colls/h/docs", `{"query":"SELECT * FROM c ORDER BY c.n"}`, query, cross).is(
		400).sub("1004")
}

// ORDER BY and OFFSET LIMIT in sub-queries are refused as in the service: with all of them and their places, for
// queries and plans, whatever partitions are asked for. Without strictness they are answered.
func TestStrictSubqueries(t *testing.T) {
	loose, strict := strictAPI(t, false), strictAPI(t, true)
	const order, limit = `\"code\":\"SC2202\",\"message\":\"'ORDER BY' is not supported in subqueries.\"`,
		`\"code\":\"SC2204\",\"message\":\"'OFFSET LIMIT' clause is not supported in subqueries.\"`
	at := func(start, end int) string {
		return fmt.Sprintf(`{\"severity\":\"Error\",\"location\":{\"start\":%d,\"end\":%d},`, start, end)
	}
	for text, want := range map[string]string{
		"SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.l ORDER BY x DESC) FROM c": at(48, 63) + order + "}]}",
		"SELECT VALUE s FROM (SELECT VALUE c FROM c ORDER BY c.n ASC OFFSET 0 LIMIT 5) s": at(43, 59) + order +
			"}," + at(60, 76) + limit + "}]}",
		"SELECT * FROM c WHERE EXISTS(SELECT 1 FROM x IN c.l OFFSET 1 LIMIT 2)": at(52, 68) + limit + "}]}",
		"SELECT FIRST(SELECT VALUE x FROM x IN c.l ORDER BY x) AS f FROM c JOIN (SELECT VALUE y FROM y IN c.l " +
			"ORDER BY y.a, y.b) z": at(42, 52) + order + "}," + at(101, 118) + order + "}]}",
	} {
		for _, h := range []string{key("a"), "x-ms-documentdb-query-enablecrosspartition: True",
			"x-ms-cosmos-is-query-plan-request: True"} {
			strict.do("POST", docs, `{"query":"`+text+`"}`, "x-ms-documentdb-isquery: True", h).is(400).has(want)
		}
		loose.do("POST", docs, `{"query":"`+text+`"}`, "x-ms-documentdb-isquery: True", key("a")).is(200)
	}
}

// A client of a version that merges by the plan of the refusal gets none that it can't merge by.
func TestStrictForClientsWithoutFeatures(t *testing.T) {
	strict := strictAPI(t, true)
	for text, missing := range map[string]string{
		"SELECT * FROM c ORDER BY c.n":             "",
		"SELECT TOP 1 * FROM c":                    "",
		"SELECT VALUE COUNT(1) FROM c":             "",
		"SELECT MAX(c.n) AS m FROM c":              "NonValueAggregate",
		"SELECT * FROM c OFFSET 1 LIMIT 1":         "OffsetAndLimit",
		"SELECT DISTINCT c.n FROM c":               "Distinct",
		"SELECT c.n, COUNT(1) FROM c GROUP BY c.n": "GroupBy",
	} {
		for _, version := range []string{"2017-11-15", "2018-09-17", "2018-12-31", "2020-07-15"} {
			r := strict.do("POST", docs, `{"query":"`+text+`"}`, "x-ms-documentdb-isquery: True",
				"x-ms-documentdb-query-enablecrosspartition: True", "x-ms-version: "+version).is(400)
			switch plans := version >= asksForPlans; {
			case plans && (missing == "NonValueAggregate" || missing == "GroupBy"):
				r.has(msgNotValue)
			case plans || missing == "":
				r.sub("1004").has("additionalErrorInfo")
			default:
				r.has("Query contained " + missing + ", which the calling client does not support")
				if strings.Contains(r.body, "additionalErrorInfo") {
					t.Errorf("%s: %s", text, r.body)
				}
			}
		}
	}
}

// The queries that strictness refuses because an index is missing. Without it all are answered.
func TestStrictIndexes(t *testing.T) {
	const (
		composite = "does not have a corresponding composite index that it can be served from."
		excluded  = "The index path corresponding to the specified order-by item is excluded."
		noScan    = "with filters against path(s) excluded from indexing. Consider adding allow scan header"
		scan      = "x-ms-documentdb-query-enable-scan: True"
		force     = "x-ms-documentdb-force-query-scan: true"
	)
	containers := map[string]string{
		"d": ``,
		"p": `{"includedPaths":[{"path":"/*"},{"path":"/low/?"}],"excludedPaths":[{"path":"/x/?"},{"path":"/deep/*"}],"compositeIndexes":[
			[{"path":"/a"},{"path":"/b","order":"descending"}],[{"path":"/a"},{"path":"/b"},{"path":"/n/\"odd one\""}],[{"path":"/x"},{"path":"/a"}]]}`,
		"n": `{"indexingMode":"none","automatic":false}`,
		"e": `{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`,
	}
	loose, strict := strictAPI(t, false), strictAPI(t, true)
	for _, a := range []*api{loose, strict} {
		for name, policy := range containers {
			def := `{"id":"` + name + `","partitionKey":{"paths":["/pk"],"version":2},` +
				`"computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.s) FROM c"},{"name":"up","query":"SELECT VALUE UPPER(c.s) FROM c"}]`
			if policy != "" {
				def += `,"indexingPolicy":` + policy
			}
			a.do("POST", "/dbs/db/colls", def+"}").is(201)
			a.do("POST", "/dbs/db/colls/"+name+"/docs", `{"id":"1","pk":"a","a":1,"b":2,"x":3,"s":"S",`+
				`"n":{"odd one":1}}`, key("a")).is(201)
		}
	}
	for _, x := range []struct{ coll, query, want, header string }{
		{"d", "SELECT * FROM c ORDER BY c.a, c.b", composite, ""},
		{"d", "SELECT * FROM c ORDER BY c.a, c.a", composite, ""},
		{"d", "SELECT * FROM c ORDER BY c.a", "", ""},
		{"d", "SELECT VALUE ARRAY(SELECT VALUE i FROM i IN c.l) FROM c ORDER BY c.a", "", ""},
		{"d", "SELECT * FROM c ORDER BY c._etag", excluded, ""},
		{"d", "SELECT * FROM c ORDER BY c._ts", "", ""},
		{"d", "SELECT * FROM c ORDER BY c.low", excluded, ""}, // "/*" doesn't cover computed properties

		{"p", "SELECT * FROM c ORDER BY c.a, c.b DESC", "", ""},
		{"p", "SELECT * FROM c ORDER BY c.a DESC, c.b", "", ""},
		{"p", "SELECT * FROM c ORDER BY c.a, c.b", composite, ""},
		{"p", "SELECT * FROM c ORDER BY c.b DESC, c.a", composite, ""},
		{"p", "SELECT * FROM c ORDER BY c.a, c.b, c.n['odd one']", "", ""},
		{"p", "SELECT * FROM c ORDER BY c.a DESC, c.b DESC, c.n['odd one'] DESC", "", ""},
		{"p", "SELECT * FROM c ORDER BY c.a, c.b, c.n['odd one'] DESC", composite, ""},
		{"p", "SELECT * FROM c WHERE c.a = 1 ORDER BY c.a, c.b DESC", "", ""},
		{"p", "SELECT * FROM c ORDER BY c.x", excluded, ""},
		{"p", "SELECT * FROM c ORDER BY c.deep.er", excluded, ""},
		{"p", "SELECT * FROM c WHERE c.x = 3", "", ""}, // excluded paths are scanned
		{"p", "SELECT * FROM c ORDER BY c.low", "", ""},
		{"p", "SELECT * FROM c ORDER BY c.up", excluded, ""},

		{"e", "SELECT * FROM c ORDER BY c.a", "", ""},
		{"e", "SELECT * FROM c ORDER BY c.id", "", ""},
		{"e", "SELECT * FROM c ORDER BY c._ts DESC", "", ""},
		{"e", "SELECT * FROM c ORDER BY c.pk", excluded, ""},
		{"e", "SELECT * FROM c WHERE c.b = 2 AND CONTAINS(c.s, 'S')", "", ""},

		{"n", "SELECT * FROM c", "", ""},
		{"n", "SELECT * FROM c WHERE true", "", ""},
		{"n", "SELECT * FROM c WHERE c.id = '1'", "", ""},
		{"n", "SELECT * FROM c WHERE c.pk = 'a' AND c.id IN ('1', '2')", "", ""},
		{"n", "SELECT * FROM c WHERE c.a = 1", noScan, ""},
		{"n", "SELECT * FROM c WHERE c.a = 1", "", scan},
		{"n", "SELECT * FROM c WHERE c.a = 1", "", force},
		{"n", "SELECT * FROM c WHERE c.id = '1' AND ABS(c.a) = 1", noScan, ""},
		{"n", "SELECT * FROM c WHERE EXISTS(SELECT VALUE i FROM i IN c.l)", noScan, ""},
		{"n", "SELECT * FROM c WHERE {'k': c.s}.k = 'S'", noScan, ""},
		{"n", "SELECT VALUE i FROM c JOIN i IN c.l WHERE i = 1", noScan, ""},
		{"n", "SELECT * FROM c ORDER BY c.id", excluded, ""},
		{"n", "SELECT * FROM c ORDER BY c.a, c.b", excluded, scan},
	} {
		headers := []string{"x-ms-documentdb-isquery: True", key("a")}
		if x.header != "" {
			headers = append(headers, x.header)
		}
		path, body := "/dbs/db/colls/"+x.coll+"/docs", `{"query":"`+x.query+`"}`
		loose.do("POST", path, body, headers...).is(200)
		if r := strict.do("POST", path, body, headers...); x.want == "" {
			r.is(200)
		} else {
			r.is(400).has(x.want)
		}
	}
}

// The account's limits apply only with strictness.
func TestStrictLimits(t *testing.T) {
	loose, strict := strictAPI(t, false), strictAPI(t, true)
	long := strings.Repeat("x", 2049)
	for _, a := range []*api{loose, strict} {
		isStrict := a == strict
		refused := func(r *reply, ok, code int, sub string) {
			t.Helper()
			if isStrict {
				r.is(code).sub(sub)
			} else {
				r.is(ok)
			}
		}
		refused(a.do("POST", docs, `{"id":"1","pk":"`+long+`"}`, key(long)), 201, 400, "")
		a.do("POST", docs, `{"id":"1","pk":"`+long[:2048]+`"}`, key(long[:2048])).is(201)
		refused(a.do("POST", docs, `[{"operationType":"Read","id":"1","partitionKey":"[\"`+long+`\"]"}]`,
			"x-ms-cosmos-is-batch-request: True", "x-ms-cosmos-batch-atomic: False"), 200, 207, "")

		a.do("POST", "/dbs", `{"id":"shared"}`, "x-ms-offer-throughput: 400").is(201)
		for i := range 25 {
			a.do("POST", "/dbs/shared/colls",
				fmt.Sprintf(`{"id":"c%d","partitionKey":{"paths":["/pk"],"version":2}}`, i)).is(201)
		}
		refused(a.do("POST", "/dbs/shared/colls", `{"id":"more","partitionKey":{"paths":["/pk"],"version":2}}`), 201,
			403, "1019")
		a.do("POST", "/dbs/shared/colls", `{"id":"own","partitionKey":{"paths":["/pk"],"version":2}}`,
			"x-ms-offer-throughput: 400").is(201)
		have := 2 + 2 + 26 // databases, containers of strictAPI, containers here
		if !isStrict {
			have++
		}
		for i := have; i < 500; i++ {
			a.do("POST", "/dbs", fmt.Sprintf(`{"id":"d%d"}`, i)).is(201)
		}
		refused(a.do("POST", "/dbs", `{"id":"more"}`), 201, 403, "1005")
		refused(a.do("POST", "/dbs/db/colls", `{"id":"more","partitionKey":{"paths":["/pk"],"version":2}}`), 201,
			403, "1005")
	}
}

// The newest policy decides what is refused, also while the index is rebuilt for it: what it allows is answered at
// once, and what it excludes is refused at once.
func TestStrictIndexesDuringRebuild(t *testing.T) {
	a := strictAPI(t, true)
	const head = `{"id":"r","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":`
	all := head + `{"includedPaths":[{"path":"/*"}],"excludedPaths":[]}}`
	none := head + `{"includedPaths":[],"excludedPaths":[{"path":"/*"}]}}`
	a.do("POST", "/dbs/db/colls", none).is(201)
	for i := range 20000 {
		a.do("POST", "/dbs/db/colls/r/docs", fmt.Sprintf(`{"id":"%d","pk":"a","n":%d}`, i, i), key("a")).is(201)
	}
	query := func() *reply {
		const text = `{"query":"SELECT VALUE c.n FROM c WHERE c.n > 19998 ORDER BY c.n"}`
		return a.do("POST", "/dbs/db/colls/r/docs", text, "x-ms-documentdb-isquery: True", key("a"))
	}
	for range 3 {
		a.do("PUT", "/dbs/db/colls/r", all).is(200)
		query().is(200).has("[19999]")
		a.do("PUT", "/dbs/db/colls/r", none).is(200)
		query().is(400)
	}
}
