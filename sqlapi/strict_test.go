package sqlapi

import (
	"context"
	"encoding/json"
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
	s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Strict: strict})
	if err != nil {
		t.Fatal(err)
	}
	a := &api{t, s}
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`, "x-ms-offer-throughput: 30000").is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"h","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}}`).is(201)
	for _, pk := range []string{"a", "b", "c"} {
		a.do("POST", docs, `{"id":"1","pk":"`+pk+`","n":1}`, key(pk)).is(201)
	}
	return a
}

// Which queries are refused over several partitions under strictness; without it all are answered.
func TestStrict(t *testing.T) {
	loose, strict := strictAPI(t, false), strictAPI(t, true)
	query, cross := "x-ms-documentdb-isquery: True", "x-ms-documentdb-query-enablecrosspartition: True"
	for _, x := range []struct {
		text    string
		refused bool
	}{
		{`SELECT * FROM c`, false}, {`SELECT VALUE c.n + 1 FROM c WHERE c.n > 0`, false}, {`SELECT VALUE 1`, false},
		{`SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.l ORDER BY x) FROM c`, false},
		{`SELECT * FROM c ORDER BY c.n`, true}, {`SELECT VALUE COUNT(1) FROM c`, true}, {`SELECT MAX(c.n) AS m FROM c`, true},
		{`SELECT DISTINCT c.n FROM c`, true}, {`SELECT c.n FROM c GROUP BY c.n`, true}, {`SELECT * FROM c OFFSET 0 LIMIT 1`, true}, {`SELECT TOP 1 * FROM c`, true},
		{`SELECT * FROM c WHERE c.pk = 'a' ORDER BY c.n`, false}, {`SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'a'`, false},
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
		if json.Unmarshal([]byte(r.body), &e) != nil || json.Unmarshal([]byte(e.AdditionalErrorInfo), &plan) != nil || e.Code != "BadRequest" || plan.Version != 2 || len(plan.Info) == 0 {
			t.Errorf("%s: %s", x.text, r.body)
		}
		// What binds the query to one partition makes it servable; so do the ranges that a client that plans asks one by one.
		strict.do("POST", docs, body, query, key("a")).is(200)
		for _, id := range []string{"0", "1", "2"} {
			strict.do("POST", docs, body, query, cross, "x-ms-documentdb-partitionkeyrangeid: "+id).is(200)
		}
	}
	// A query that can't be planned is refused with the reason, and answered without strictness.
	const whole = `{"query":"SELECT VALUE s FROM (SELECT DISTINCT c.n FROM c) s"}`
	loose.do("POST", docs, whole, query, cross).is(200)
	if r := strict.do("POST", docs, whole, query, cross).is(400); strings.Contains(r.body, "additionalErrorInfo") {
		t.Error(r.body)
	}
	// A prefix of a key lies in one partition here.
	strict.do("POST", "/dbs/db/colls/h/docs", `{"query":"SELECT * FROM c ORDER BY c.n"}`, query, `x-ms-documentdb-partitionkey: ["x"]`).is(200)
	strict.do("POST", "/dbs/db/colls/h/docs", `{"query":"SELECT * FROM c ORDER BY c.n"}`, query, cross).is(400).sub("1004")
}
