package sqlapi

import (
	"net/url"
	"testing"
)

// A replace may change the id: by itself, in a transactional batch and in a bulk.
func TestReplaceChangesID(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"uniqueKeyPolicy":`+
		`{"uniqueKeys":[{"paths":["/u"]}]}}`).is(201)
	a.do("POST", docs, `{"id":"1","pk":"a","u":1}`, key("a")).is(201)
	a.do("POST", docs, `{"id":"2","pk":"a","u":2}`, key("a")).is(201)
	etag := a.do("GET", docs+"/1", "", key("a")).is(200).h.Get("etag")
	a.do("PUT", docs+"/1", `{"id":"9","pk":"a"}`, key("a"), `if-match: "x"`).is(412)
	a.do("PUT", docs+"/none", `{"id":"9","pk":"a"}`, key("a")).is(404)
	a.do("PUT", docs+"/1", `{"id":"2","pk":"a","u":1}`, key("a")).is(409)
	a.do("PUT", docs+"/1", `{"id":"9","pk":"a","u":2}`, key("a")).is(409)
	a.do("PUT", docs+"/1", `{"id":"9","pk":"b","u":1}`, key("a")).is(400).sub("1001")
	a.do("GET", docs+"/1", "", key("a")).is(200)
	a.do("PUT", docs+"/1", `{"id":"9","pk":"a","u":1}`, key("a"), "if-match: "+etag).is(200).has(`"id":"9"`)
	a.do("GET", docs+"/1", "", key("a")).is(404)
	a.do("GET", docs+"/9", "", key("a")).is(200).has(`"u":1`)

	const atomic = "x-ms-cosmos-batch-atomic: True"
	const isBatch = "x-ms-cosmos-is-batch-request: True"
	r := a.do("POST", docs, `[{"operationType":"Create","resourceBody":{"id":"3","pk":"a","u":3}},`+
		`{"operationType":"Replace","id":"9","resourceBody":{"id":"1","pk":"a","u":1}},`+
		`{"operationType":"Read","id":"1"}]`, key("a"), isBatch, atomic).is(200)
	r.has(`"statusCode":201`).has(`"statusCode":200`)
	a.do("GET", docs+"/9", "", key("a")).is(404)
	a.do("POST", docs, `[{"operationType":"Create","resourceBody":{"id":"4","pk":"a","u":4}},`+
		`{"operationType":"Replace","id":"1","resourceBody":{"id":"2","pk":"a","u":1}}]`, key("a"), isBatch, atomic).
		is(207).has(`"statusCode":424`).has(`"statusCode":409`)
	a.do("GET", docs+"/4", "", key("a")).is(404)
	a.do("POST", docs, `[{"operationType":"Upsert","partitionKey":"[\"a\"]","resourceBody":{"id":"4","pk":"a","u":4}},`+
		`{"operationType":"Replace","partitionKey":"[\"a\"]","id":"4","resourceBody":{"id":"5","pk":"a","u":4}},`+
		`{"operationType":"Read","partitionKey":"[\"a\"]","id":"5"}]`, isBatch,
		"x-ms-cosmos-batch-ordered: False").is(207)
	a.do("GET", docs+"/4", "", key("a")).is(404)
	a.query("SELECT VALUE c.id FROM c ORDER BY c.id", key("a")).is(200).has(`["1","2","3","5"]`)
	if n := a.do("GET", docs, "", "A-IM: Incremental feed", key("a")).is(200).json()["_count"]; n != 4.0 {
		t.Errorf("the change feed has %v items", n)
	}
}

// A token for one item doesn't rename it: the other id is none of its resource.
func TestTokenRenamesNothing(t *testing.T) {
	a := withUser(t)
	a.do("POST", docs, `{"id":"7","pk":"a"}`, key("a")).is(201)
	made := a.do("POST", perms, `{"id":"p","permissionMode":"All","resource":"dbs/db/colls/c/docs/7",`+
		`"resourcePartitionKey":["a"]}`).is(201).json()
	auth := "authorization: " + url.QueryEscape(made["_token"].(string))
	a.do("PUT", docs+"/7", `{"id":"7","pk":"a","n":1}`, key("a"), auth).is(200)
	a.do("PUT", docs+"/7", `{"id":"8","pk":"a"}`, key("a"), auth).is(403)
}
