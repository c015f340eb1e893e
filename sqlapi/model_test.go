package sqlapi

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
)

// An item that MongoDB has created with an ObjectId as _id has its canonical Extended JSON text as id. It is found,
// replaced, patched and deleted by that id.
func TestIdentityOfOtherKinds(t *testing.T) {
	a := newAPI(t)
	ctx := context.Background()
	if _, err := a.srv.core.CreateDatabase(ctx, core.DatabaseSpec{ID: "db"}); err != nil {
		t.Fatal(err)
	}
	ct, err := a.srv.core.CreateContainer(ctx, "db", core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}, Kind: "Hash", Version: 2}, Origin: "mongo"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := doc.FromExtJSON(nil, []byte(`{"_id":{"$oid":"507f1f77bcf86cd799439011"},"id":"own",`+
		`"when":{"$date":"2026-11-21T11:00:00Z"},"big":{"$numberDecimal":"1.5"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ct.Write(ctx, core.Write{Kind: core.Create, Doc: d}); err != nil {
		t.Fatal(err)
	}
	const id = `{"$oid":"507f1f77bcf86cd799439011"}`
	quoted, _ := json.Marshal([]string{id})
	k := "x-ms-documentdb-partitionkey: " + string(quoted)
	u := "/dbs/db/colls/c/docs/%7B%22$oid%22:%22507f1f77bcf86cd799439011%22%7D"
	m := a.do("GET", u, "", k).is(200).json()
	if m["id"] != id || m["when"] != "2026-11-21T11:00:00.000Z" && m["when"] != "2026-11-21T11:00:00Z" {
		t.Errorf("shown as %v", m)
	}
	a.do("PATCH", u, `[{"op":"set","path":"/n","value":1}]`, k).is(200).has(`"n":1`)
	a.do("PUT", u, `{"id":"{\"$oid\":\"507f1f77bcf86cd799439011\"}","n":2}`, k).is(200).has(`"n":2`)
	if n, err := ct.Count(t.Context()); n != 1 || err != nil {
		t.Errorf("%d items after a replace (%v)", n, err)
	}
	q, _ := json.Marshal(map[string]any{
		"query":      "SELECT VALUE c.n FROM c WHERE c.id = @id",
		"parameters": []any{map[string]any{"name": "@id", "value": id}}})
	a.do("POST", "/dbs/db/colls/c/docs", string(q), isQuery, cross).is(200).has(`"Documents":[2]`)
	a.do("DELETE", u, "", k).is(204)
	a.do("GET", u, "", k).is(404)
}

// Expired items disappear at once from reads, feeds and queries, and their ids can be used again.
func TestTimeToLive(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1}`).is(201)
	a.do("POST", docs, `{"id":"short","pk":"a","ttl":30}`, key("a")).is(201)
	a.do("POST", docs, `{"id":"kept","pk":"a"}`, key("a")).is(201)
	a.do("GET", docs+"/short", "", key("a")).is(200)
	a.srv.clock.Advance(31 * time.Second)
	a.do("GET", docs+"/short", "", key("a")).is(404)
	a.do("GET", docs, "").is(200).has(`"_count":1`)
	a.query("SELECT VALUE COUNT(1) FROM c", cross).is(200).has(`[1]`)
	a.do("PUT", docs+"/short", `{"id":"short","pk":"a"}`, key("a")).is(404)
	a.do("POST", docs, `{"id":"short","pk":"a","ttl":30}`, key("a")).is(201)
}

// A container without a partition key accepts items without one.
func TestWithoutPartitionKey(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c"}`, "x-ms-version: 2017-11-15").is(201)
	a.do("GET", "/dbs/db/colls/c", "").is(200).has(`"paths":["/_partitionKey"]`).has(`"systemKey":true`)
	a.do("POST", docs, `{"id":"1"}`).is(201)
	a.do("GET", docs+"/1", "").is(200)
	a.do("GET", docs+"/1", "", "x-ms-documentdb-partitionkey: []").is(200)
	a.do("GET", docs+"/1", "", "x-ms-documentdb-partitionkey: [{}]").is(200)
	a.query("SELECT * FROM c", cross).is(200).has(`"_count":1`)
	a.do("DELETE", docs+"/1", "").is(204)
}

// Hierarchical keys: complete, prefix, null and missing levels.
func TestHierarchicalKeys(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do(
		"POST", "/dbs/db/colls",
		`{"id":"c","partitionKey":{"paths":["/a","/b","/c"],"kind":"MultiHash","version":2}}`).is(201)
	for _, x := range [][2]string{{`{"id":"1","a":"x","b":1,"c":null}`, `["x",1,null]`},
		{`{"id":"2","a":"x","b":2}`, `["x",2,{}]`}, {`{"id":"3","a":"y","b":true,"c":"z"}`, `["y",true,"z"]`}} {
		h := "x-ms-documentdb-partitionkey: " + x[1]
		a.do("POST", docs, x[0], h).is(201)
		a.do("GET", docs+"/"+strings.Split(x[0], `"`)[3], "", h).is(200)
	}
	a.query("SELECT * FROM c", `x-ms-documentdb-partitionkey: ["x"]`).is(200).has(`"_count":2`)
	a.query("SELECT * FROM c", `x-ms-documentdb-partitionkey: ["x",1]`).is(200).has(`"_count":1`)
	a.do("GET", docs, "", `x-ms-documentdb-partitionkey: ["y"]`).is(200).has(`"_count":1`)
	a.do("GET", docs+"/1", "", `x-ms-documentdb-partitionkey: ["x"]`).is(400).sub("1001")
	a.do("POST", docs, `{"id":"4","a":"x","b":1,"c":2}`, `x-ms-documentdb-partitionkey: ["x",1,3]`).is(400).sub("1001")
}
