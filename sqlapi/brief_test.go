package sqlapi

import "testing"

func TestBrief(t *testing.T) {
	for _, tc := range []struct {
		line, header string
		want         bool
	}{
		{"GET /dbs/d/colls/c/docs/i HTTP/1.1", "", true},
		{"PUT /dbs/d/colls/c/docs/i HTTP/1.1", "", true},
		{"PATCH /dbs/d/colls/c/docs/i HTTP/1.1", "", true},
		{"DELETE /dbs/d/colls/c/docs/i HTTP/1.1", "", true},
		{"POST /dbs/d/colls/c/docs HTTP/1.1", "x-ms-documentdb-is-upsert: True", true},
		{"POST /dbs/d/colls/c/docs HTTP/1.1", "x-ms-cosmos-is-batch-request: True", true},
		{"POST /dbs/d/colls/c/docs HTTP/1.1", "x-ms-documentdb-isQuery: True", false},
		{"POST /dbs/d/colls/c/docs HTTP/1.1", "Content-Type: application/query+json", false},
		{"GET /dbs/d/colls/c/docs HTTP/1.1", "", false},
		{"PUT /dbs/d/colls/c HTTP/1.1", "", false},
		{"POST /dbs/d/colls/c/operations/partitionkeydelete HTTP/1.1", "", false},
		{"PRI * HTTP/2.0", "", false},
		{"", "", false},
	} {
		if got := Brief([]byte(tc.line + "\r\nHost: h\r\n" + tc.header + "\r\n")); got != tc.want {
			t.Errorf("%s %s: %v", tc.line, tc.header, got)
		}
	}
}
