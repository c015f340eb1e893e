package sqlapi

import "testing"

// Tuple paths are included paths with their own form. They are stored unchanged, and refused if malformed or excluded.
func TestTuplePathsInPolicies(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	def := func(id, included, excluded string) string {
		return `{"id":"` + id + `","partitionKey":{"paths":["/pk"],"version":2},` +
			`"indexingPolicy":{"includedPaths":[{"path":"/*"}` + included + `],"excludedPaths":[` + excluded + `]}}`
	}
	a.do("POST", "/dbs/db/colls", def("c", `,{"path":"/events/[]/{name, category/sub}/?"}`, "")).is(201).has(
		`{"path":"/events/[]/{name, category/sub}/?"}`)
	a.do("GET", "/dbs/db/colls/c", "").is(200).has(`{"path":"/events/[]/{name, category/sub}/?"}`)
	a.do("POST", "/dbs/db/colls", def("d", `,{"path":"/events/{name, category}/?"}`, "")).is(400)
	a.do("POST", "/dbs/db/colls", def("d", `,{"path":"/events/[]/{name, category}/*"}`, "")).is(400)
	a.do("POST", "/dbs/db/colls", def("d", `,{"path":"/events/[]/{/name}/?"}`, "")).is(400)
	a.do("POST", "/dbs/db/colls", def("d", "", `{"path":"/events/[]/{name, category}/?"}`)).is(400)
}
