package sqlapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

func TestDeleteByPartitionKey(t *testing.T) {
	a := withContainer(t)
	const n = deletePage + 7 // more than one page
	var ops []string
	for i := range n {
		ops = append(ops, fmt.Sprintf(`{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"%d",`+
			`"pk":"a"}}`, i))
	}
	for from := 0; from < n; from += 100 {
		a.do("POST", docs, "["+strings.Join(ops[from:min(n, from+100)], ",")+"]",
			"x-ms-cosmos-is-batch-request: True").is(200)
	}
	a.do("POST", docs, `{"id":"0","pk":"b"}`, key("b")).is(201)
	const op = "/dbs/db/colls/c/operations/partitionkeydelete"
	a.do("POST", op, "").is(400)
	a.do("POST", op, "", `x-ms-documentdb-partitionkey: ["a","b"]`).is(400)
	a.do("POST", "/dbs/db/colls/none/operations/partitionkeydelete", "", key("a")).is(404)
	a.do("POST", "/dbs/db/colls/c/operations/other", "", key("a")).is(400).has("not supported")
	a.do("GET", op, "", key("a")).is(405)
	a.do("GET", docs, "", key("a"), "x-ms-max-item-count: -1").is(200).has(fmt.Sprintf(`"_count":%d`, n))
	// SDKs differ in the type that they sign.
	for _, typ := range []string{"colls", "partitionkey", "operations"} {
		date := testNow.Format(http.TimeFormat)
		r := a.do("POST", op, "", key("a"), "x-ms-date: "+date, "authorization: "+
			sign(t, testKey, "POST", typ, "dbs/db/colls/c", date))
		if typ != "operations" {
			r.is(200)
		}
	}
	a.do("GET", docs, "", key("a")).is(200).has(`"_count":0`)
	a.do("GET", docs, "").is(200).has(`"_count":1`)
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a")).is(201)
}

func TestAccountConsistency(t *testing.T) {
	e, err := core.Open(context.Background(), memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	if _, err := New(e, Options{Key: testKey, Consistency: "session"}); err == nil {
		t.Error("an unknown level is accepted")
	}
	levels := []string{"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}
	for i, account := range append(levels, "") {
		s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clock.Fake(testNow),
			Wall: clock.Fake(testNow), Consistency: account})
		if err != nil {
			t.Fatal(err)
		}
		if account == "" {
			account, i = "Session", 2
		}
		a := &api{t, s}
		a.do("GET", "/", "").is(200).has(`"defaultConsistencyLevel":"` + account + `"`)
		if i == 0 {
			a.do("POST", "/dbs", `{"id":"db"}`).is(201)
			a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
		}
		for j, level := range levels {
			want := 200
			if j < i {
				want = 400
			}
			a.do("GET", docs, "", "x-ms-consistency-level: "+level).is(want)
		}
		a.do("GET", docs, "", "x-ms-consistency-level: session").is(400)
	}
}
