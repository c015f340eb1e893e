package sqlapi

import (
	"fmt"
	"testing"
)

// An array or object at the path of the partition key counts as a missing value, as in the service. So the item is read
// by the key of items without one, and its own value is shown and found.
func TestComposedPartitionKeys(t *testing.T) {
	const composite = `,"indexingPolicy":{"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/pk"},` +
		`{"path":"/n"}]]}`
	for _, x := range []struct{ def, none, text string }{
		{`{"paths":["/pk"]}`, `[{}]`, `["x"]`},
		{`{"paths":["/pk"],"version":2}` + composite, `[{}]`, `["x"]`},
		{`{"paths":["/pk","/sub/k"],"kind":"MultiHash"}`, `[{},"s"]`, `["x","s"]`},
		{`{"paths":["/sub/k","/pk"],"kind":"MultiHash"}`, `["s",{}]`, `["s","x"]`},
	} {
		t.Run(x.def, func(t *testing.T) {
			a := newAPI(t)
			a.do("POST", "/dbs", `{"id":"db"}`).is(201)
			a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":`+x.def+`}`).is(201)
			none, text := "x-ms-documentdb-partitionkey: "+x.none, "x-ms-documentdb-partitionkey: "+x.text
			for i, v := range []string{`{"a":1}`, `[1,"b"]`, `{}`, `[]`} {
				a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":%s,"n":%[1]d,"sub":{"k":"s"}}`, i, v), none).is(201)
			}
			a.do("POST", docs, `{"id":"4","n":4,"sub":{"k":"s"}}`, none).is(201)
			a.do("POST", docs, `{"id":"5","pk":"x","n":5,"sub":{"k":"s"}}`, text).is(201)
			a.do("GET", docs+"/0", "", none).is(200).has(`"pk":{"a":1}`)
			a.do("PUT", docs+"/0", `{"id":"0","pk":[{"a":2}],"n":0,"sub":{"k":"s"}}`, none).is(200)
			a.do("POST", docs, `{"id":"0","sub":{"k":"s"}}`, none).is(409)
			a.do("PUT", docs+"/0", `{"id":"0","pk":"x","sub":{"k":"s"}}`, none).is(400).sub("1001")
			a.do("POST", docs, `{"id":"6","pk":{"a":1},"sub":{"k":"s"}}`, text).is(400).sub("1001")
			a.do("PATCH", docs+"/1", `[{"op":"add","path":"/n","value":1}]`, none).is(200)
			for _, q := range []struct{ text, rows string }{
				{"SELECT VALUE c.id FROM c WHERE c.n >= 0 ORDER BY c.n", `["0","1","2","3","4"]`},
				{"SELECT VALUE c.id FROM c WHERE c.n = 1", `["1"]`},
				{"SELECT VALUE c.pk FROM c WHERE c.n < 2 ORDER BY c.n", `[[{"a":2}],[1,"b"]]`},
				{"SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.pk)", `["4"]`},
				{"SELECT VALUE c.id FROM c WHERE c.pk = {}", `["2"]`},
				{`SELECT VALUE c.id FROM c WHERE c.pk = [1, "b"]`, `["1"]`},
				{"SELECT VALUE COUNT(c.pk) FROM c", `[4]`},
				{"SELECT VALUE COUNT(1) FROM c", `[5]`},
			} {
				a.do("POST", docs, `{"query":`+fmt.Sprintf("%q", q.text)+`}`, none, "x-ms-documentdb-isquery: true",
					"content-type: application/query+json").is(200).has(`"Documents":` + q.rows)
			}
			a.do("POST", docs, `{"query":"SELECT VALUE c.id FROM c WHERE c.pk = {}"}`, "x-ms-documentdb-isquery: true",
				"content-type: application/query+json", "x-ms-documentdb-query-enablecrosspartition: true").is(200).
				has(`["2"]`)
			a.do("DELETE", docs+"/1", "", none).is(204)
			a.do("POST", "/dbs/db/colls/c/operations/partitionkeydelete", "", none).is(200)
			a.do("GET", docs, "").is(200).has(`"_count":1`)
		})
	}
}
