package hostile

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// deep returns a text nested n levels deep.
func deep(open, middle, shut string, n int) string {
	return strings.Repeat(open, n) + middle + strings.Repeat(shut, n)
}

// bodies are JSON bodies with a wrong shape, type, size or depth. They never contain %s.
func bodies() []string {
	list := []string{
		"", " ", "{", "}", "[", "null", "true", "1", `"x"`, "[]", "{}", "{\"id\":}", `{"id":1}`, `{"id":null}`,
		`{"id":{}}`, `{"id":[]}`, `{"id":""}`,
		`{"id":"a/b"}`, `{"id":"x","id":"y"}`, "{\"id\":\"\xff\xfe\"}", "\xef\xbb\xbf{}", "\x00\x01\x02",
		`{"id":"\ud800"}`, `{"id":"x","pk":1e999}`,
		`{"id":"x","pk":` + strings.Repeat("9", 5000) + `}`, `{"id":"x","pk":{"a":1}}`, `{"id":"x","pk":["p"]}`,
		`{"id":"` + strings.Repeat("i", 2000) + `","pk":"p"}`,
		`{"id":"x","pk":"` + strings.Repeat("k", 200_000) + `"}`,
		`{"id":"x","pk":"p","v":` + deep("[", "1", "]", 100_000) + `}`,
		`{"id":"x","pk":"p","v":` + deep(`{"a":`, "1", "}", 100_000) + `}`,
		strings.Repeat("[", 1_000_000), strings.Repeat(`{"a":`, 300_000),
		`{"id":"x","pk":"p","v":"` + strings.Repeat("v", 5<<20) + `"}`,
		`{"query":1}`, `{"query":null}`, `{"query":""}`, `{"query":"SELECT"}`,
		`{"query":"SELECT * FROM c","parameters":1}`,
		`{"query":"SELECT * FROM c","parameters":[1]}`, `{"query":"SELECT * FROM c","parameters":[{"name":1}]}`,
		`{"query":"SELECT * FROM c WHERE c.x=@a","parameters":[{"name":"@a","value":` +
			deep("[", "", "]", 50_000) + `}]}`,
		`{"operations":1}`, `{"operations":[]}`, `{"operations":[1]}`, `{"operations":[{"op":"set"}]}`,
		`{"operations":[{"op":"incr","path":"/n","value":"x"}]}`,
		`{"operations":[{"op":"add","path":"n"}]}`, `{"operations":[{"op":"add","path":"` +
			strings.Repeat("/a", 50_000) + `","value":1}]}`,
		`{"operations":[{"op":"move","from":1,"path":2}]}`,
		`{"condition":1,"operations":[{"op":"set","path":"/n","value":2}]}`,
		`[{"operationType":1}]`, `[{"operationType":"Create"}]`,
		`[{"operationType":"Patch","id":"a","resourceBody":[]}]`, `[1]`, `[[]]`,
		`{"id":"x","partitionKey":1}`, `{"id":"x","partitionKey":{"paths":[]}}`,
		`{"id":"x","partitionKey":{"paths":["a"]}}`,
		`{"id":"x","partitionKey":{"paths":[1],"kind":2,"version":"x"}}`, `{"id":"x","partitionKey":{"paths":["` +
			strings.Repeat("/a", 20_000) + `"]}}`,
		`{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash"},"indexingPolicy":[]}`,
		`{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash"},"indexingPolicy":{"includedPaths":[{"path":"///"}]}}`,
		`{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash"},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":[]}]}}`,
		`{"PartitionKey":1,"RowKey":2}`, `{"PartitionKey":"p"}`,
		`{"PartitionKey":"p","RowKey":"r","x@odata.type":"Edm.Int64","x":1}`,
		`{"PartitionKey":"p","RowKey":"r","x@odata.type":1}`,
		`{"PartitionKey":"p","RowKey":"r","x@odata.type":"Edm.Nope","x":"1"}`,
		`{"PartitionKey":"p","RowKey":"r","x":[1]}`, `{"PartitionKey":"p","RowKey":"r","x":{}}`, `{"TableName":1}`,
		`{"TableName":""}`, `{"TableName":"1"}`,
	}
	for _, q := range queries() {
		list = append(list, fmt.Sprintf(`{"query":%q}`, q))
	}
	return list
}

// queries are SQL texts that are deeply nested, repetitive or incomplete.
func queries() []string {
	return []string{
		"SELECT " + deep("(", "1", ")", 50_000), "SELECT " + strings.Repeat("(", 100_000), "SELECT VALUE " +
			deep("[", "1", "]", 50_000),
		"SELECT VALUE " + deep("{a:", "1", "}", 50_000), "SELECT VALUE " + strings.Repeat("NOT ", 50_000) + "true",
		"SELECT VALUE " + strings.Repeat("-", 50_001) + "1",
		"SELECT VALUE " + strings.Repeat("1+", 50_000) + "1", "SELECT * FROM c WHERE " +
			strings.Repeat("c.a=1 OR ", 20_000) + "c.a=1",
		"SELECT * FROM c WHERE " + strings.Repeat("(c.a=1 AND ", 100) + "true" + strings.Repeat(")", 100),
		"SELECT VALUE c" + strings.Repeat(".a", 50_000) + " FROM c",
		"SELECT VALUE c" + strings.Repeat("[0]", 50_000) + " FROM c", "SELECT VALUE " + deep("ABS(", "1", ")", 50_000),
		"SELECT * FROM " + deep("(SELECT * FROM ", "c", ")", 10_000),
		"SELECT VALUE " + strings.Repeat("c.a ? 1 : ", 30_000) + "1 FROM c", "SELECT VALUE " +
			strings.Repeat("c.a ?? ", 30_000) + "1 FROM c",
		"SELECT * FROM c" + strings.Repeat(" JOIN x IN c.tags", 200),
		"SELECT * FROM c JOIN a IN c.tags JOIN b IN c.tags" + strings.Repeat(" JOIN a IN b", 100),
		"SELECT VALUE REPLICATE('x', 1000000000)",
		"SELECT VALUE REPLICATE(REPLICATE(REPLICATE('xxxxxxxxxx',10000),10000),10000)",
		"SELECT VALUE StringToArray('" + strings.Repeat("[", 50_000) + "')", "SELECT VALUE StringToObject('" +
			strings.Repeat(`{"a":`, 20_000) + "')",
		"SELECT VALUE REGEXMATCH('" + strings.Repeat("a", 20_000) + "!', '^(a+)+$')", "SELECT VALUE REGEXMATCH('a', '" +
			strings.Repeat("(", 5000) + "')",
		"SELECT VALUE REGEXMATCH('a', '((((a{1000}){1000}){1000}){1000})')", "SELECT * FROM c WHERE c.a LIKE '" +
			strings.Repeat("%a", 10_000) + "'",
		"SELECT * FROM c WHERE '" + strings.Repeat("a", 10_000) + "' LIKE '" + strings.Repeat("%a", 2_000) + "b'",
		"SELECT VALUE {'a':{'type':'Polygon','coordinates':" + deep("[", "", "]", 30_000) + "}}",
		"SELECT VALUE ST_ISVALID({'type':'Point','coordinates':[1e308,-1e308]})",
		"SELECT TOP 99999999999999999999 * FROM c", "SELECT * FROM c OFFSET -1 LIMIT 1",
		"SELECT * FROM c OFFSET 9223372036854775807 LIMIT 9223372036854775807",
		"SELECT TOP @x * FROM c", "SELECT * FROM c ORDER BY", "SELECT * FROM c ORDER BY 1", "SELECT 'abc",
		"SELECT \"abc", "/* x", "-- x", "SELECT 1e99999", "SELECT 0x", "SELECT \x00",
		"SELECT VALUE '\\u12'", "SELECT c.a[", "SELECT VALUE UDF.f(1)", "SELECT * FROM c WHERE c.a IN (" +
			strings.Repeat("1,", 100_000) + "1)",
	}
}

// TestNoSQL sends every body to every resource with every method. No reply is a 5xx, and the item stays unchanged.
func TestNoSQL(t *testing.T) {
	g := start(t, false)
	targets := []struct {
		method, path string
		headers      []string
	}{
		{"POST", "/dbs", nil},
		{"POST", "/dbs/shop/colls", nil},
		{"PUT", "/dbs/shop/colls/items", nil},
		{"POST", "/dbs/shop/colls/items/docs", []string{"x-ms-documentdb-partitionkey", `["p"]`}},
		{"POST", "/dbs/shop/colls/items/docs", []string{"x-ms-documentdb-is-upsert", "true"}},
		{"PUT", "/dbs/shop/colls/items/docs/a",
			[]string{"x-ms-documentdb-partitionkey", `["p"]`, "If-Match", `"nope"`}},
		{"PATCH", "/dbs/shop/colls/items/docs/a",
			[]string{"x-ms-documentdb-partitionkey", `["p"]`, "If-Match", `"nope"`}},
		{"POST", "/dbs/shop/colls/items/docs",
			[]string{"x-ms-documentdb-isquery", "true", "x-ms-documentdb-query-enablecrosspartition", "true",
				"Content-Type", "application/query+json"}},
		{"POST", "/dbs/shop/colls/items/docs",
			[]string{"x-ms-cosmos-is-query-plan-request", "true", "x-ms-documentdb-isquery", "true", "Content-Type",
				"application/query+json"}},
		{"POST", "/dbs/shop/colls/items/docs",
			[]string{"x-ms-cosmos-is-batch-request", "true", "x-ms-cosmos-batch-atomic", "true",
				"x-ms-documentdb-partitionkey", `["p"]`}},
		{"POST", "/dbs/shop/colls", []string{
			"x-ms-documentdb-isquery", "true", "Content-Type", "application/query+json"}},
		{"POST", "/offers", []string{"x-ms-documentdb-isquery", "true", "Content-Type", "application/query+json"}},
		{"PUT", "/offers/abc", nil},
		{"POST", "/dbs/shop/users", nil},
	}
	for _, at := range targets {
		for _, b := range bodies() {
			began := time.Now()
			code, text := g.do(t, server.NoSQL, at.method, at.path, b,
				append([]string{"x-ms-version", "2020-07-15"}, at.headers...)...)
			if code >= 500 || code == 0 && len(b) < 1<<20 {
				t.Errorf("%s %s %v %.120q: %d %.300s", at.method, at.path, at.headers, b, code, text)
			}
			if d := time.Since(began); d > 2*time.Second {
				t.Errorf("%s %s %.120q took %v", at.method, at.path, b, d)
			}
		}
	}
	g.serves(t)
}

// hostileValues are header values without line ends, which would end the header.
func hostileValues() []string {
	return []string{"", " ", "x", "-1", "0", "99999999999999999999", "1.5", "true", "null", "[]", "[[]]", "{}", `[{}]`,
		`["p"]`, `["p","q"]`, `[1e999]`, `["p"`, `"`, `""`, "*", ",", ",,,", "0:-1#5#2=9", "0:",
		"\xff\xfe", "\x01", strings.Repeat("[", 10_000), strings.Repeat("a", 30_000),
		`["` + strings.Repeat("k", 20_000) + `"]`, "%00", "%", "type%3dmaster%26ver%3d1.0%26sig%3d", "type=master",
		"AAAA", "eyJ0b2tlbiI6bnVsbH0=",
		`{"token":null,"range":{"min":"","max":"FF"}}`, "00", "FF", "ff", "Session", "Strong", "A-IM",
		"bytes=0-", "chunked"}
}

// TestNoSQLHeaders sends each header that the API uses with each hostile value.
func TestNoSQLHeaders(t *testing.T) {
	g := start(t, false)
	names := []string{"x-ms-documentdb-partitionkey", "x-ms-continuation", "x-ms-max-item-count", "x-ms-session-token",
		"If-Match", "If-None-Match", "A-IM", "x-ms-consistency-level",
		"x-ms-documentdb-partitionkeyrangeid", "x-ms-start-epk", "x-ms-end-epk", "x-ms-read-key-type", "x-ms-date",
		"Authorization", "x-ms-version", "x-ms-offer-throughput", "x-ms-activity-id", "x-ms-documentdb-is-upsert",
		"x-ms-documentdb-isquery", "Content-Type", "Prefer", "x-ms-cosmos-batch-continue-on-error",
		"x-ms-cosmos-is-batch-request", "x-ms-cosmos-is-query-plan-request",
		"If-Modified-Since", "x-ms-cosmos-offer-autopilot-settings", "Accept", "Accept-Encoding",
		"x-ms-indexing-directive"}
	requests := []struct{ method, path, body string }{
		{"GET", "/dbs/shop/colls/items/docs/a", ""}, {"GET", "/dbs/shop/colls/items/docs", ""},
		{"GET", "/dbs/shop/colls/items/pkranges", ""},
		{"POST", "/dbs/shop/colls/items/docs", `{"query":"SELECT * FROM c ORDER BY c.n"}`},
		{"POST", "/dbs/shop/colls", `{"id":"a","partitionKey":{"paths":["/pk"]}}`}, {"GET", "/", ""},
	}
	for _, rq := range requests {
		for _, n := range names {
			for _, v := range hostileValues() {
				h := []string{n, v}
				if strings.Contains(rq.body, "query") && n != "Content-Type" {
					h = append(h, "Content-Type", "application/query+json", "x-ms-documentdb-isquery", "true")
				}
				if code, text := g.do(t, server.NoSQL, rq.method, rq.path, rq.body, h...); code >= 500 {
					t.Errorf("%s %s with %s: %.80q: %d %.300s", rq.method, rq.path, n, v, code, text)
				}
			}
		}
	}
	g.serves(t)
}

// paths are request targets.
func paths() []string {
	list := []string{"//", "/dbs//", "/dbs/%00", "/dbs/%", "/dbs/%zz", "/dbs/\xff", "/dbs/%ff%fe",
		"/dbs/shop/colls/items/docs/%2e%2e", "/../../etc/passwd", "/dbs/shop/colls/items/docs/" +
			strings.Repeat("a", 20_000),
		strings.Repeat("/a", 10_000), "*", "http://x/dbs", "/?" + strings.Repeat("a=b&", 5000),
		"/dbs/shop/colls/items/docs/a/attachments/x", "/dbs/shop/colls/items/sprocs/x", "/media/x", "/addresses",
		"/_explorer/%00",
		"/people", "/people()", "/people(", "/people('", "/people(PartitionKey='p',RowKey='r'",
		"/people(PartitionKey='p')", "/people(PartitionKey=1,RowKey=2)", "/people(RowKey='r',PartitionKey='p')",
		"/people(PartitionKey='%ff',RowKey='%00')", "/people(PartitionKey='" + strings.Repeat("p", 20_000) +
			"',RowKey='')", "/Tables('people", "/Tables(1)", "/Tables('')", "/$batch", "/$metadata", "/people?comp=acl",
		"/?comp=stats&restype=service", "/?comp=properties&restype=service",
		"/people()?sv=x&sig=y", "/people()?tn=people&sv=2019-02-02&se=x&sig=%ff&sp=raud",
		"/people()?NextPartitionKey=x", "/people()?NextPartitionKey=%ff&NextRowKey=%00", "/people()?$top=-1",
		"/people()?$top=x", "/people()?$top=99999999999999999999", "/people()?$select=" + strings.Repeat("a,", 5000)}
	for _, f := range []string{deep("(", "true", ")", 10_000), strings.Repeat("(", 15_000),
		strings.Repeat("not%20", 5000) + "true", strings.Repeat("a%20eq%201%20or%20", 2000) + "true",
		"PartitionKey%20eq", "PartitionKey%20eq%20'", "x%20eq%20guid'x'",
		"x%20eq%20datetime'x'", "x%20eq%20X'0'", "x%20eq%2099999999999999999999L", "1%20eq%201", "%00", "%ff",
		"a%20eq%20b%20eq%20c", "substringof('a',b)", "PartitionKey%20gt%20'a'%20and%20PartitionKey%20lt%20'a'"} {
		list = append(list, "/people()?$filter="+f)
	}
	return list
}

// TestPaths sends hostile targets with every method to the three HTTP ports.
func TestPaths(t *testing.T) {
	g := start(t, false)
	for _, door := range []string{server.NoSQL, server.Table, server.Admin, server.Gremlin} {
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "MERGE", "HEAD", "OPTIONS",
			"TRACE", "BREW"} {
			for _, p := range paths() {
				// 501 is the Table service's own "NotImplemented" for features that Cosmos DB lacks.
				if code, text := g.do(t, door, m, p, "{}", "Content-Type", "application/json"); code >= 500 &&
					code != 501 {
					t.Errorf("%s %s %s: %d %.300s", door, m, short(p), code, text)
				}
			}
		}
	}
	g.serves(t)
}

// TestTable sends every body to tables, entities and batches, and every hostile value in the headers.
func TestTable(t *testing.T) {
	g := start(t, false)
	targets := []struct{ method, path string }{
		{"POST", "/Tables"}, {"POST", "/people"}, {"PUT", "/people(PartitionKey='p',RowKey='r')"},
		{"MERGE", "/people(PartitionKey='p',RowKey='nope')"}, {"PUT", "/people?comp=acl"},
		{"PUT", "/?restype=service&comp=properties"}}
	for _, at := range targets {
		for _, b := range bodies() {
			h := []string{"Content-Type", "application/json"}
			if at.method == "MERGE" {
				h = append(h, "If-Match", "*")
			}
			code, text := g.do(t, server.Table, at.method, at.path, b, h...)
			if code >= 500 && code != 501 || code == 0 && len(b) < 1<<20 {
				t.Errorf("%s %s %.120q: %d %.300s", at.method, at.path, b, code, text)
			}
		}
	}
	part := "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: " +
		"application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST http://h/people HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{\"PartitionKey\":\"half\",\"RowKey\":\"1\"}\r\n"
	batches := []string{part, part + "--c--\r\n-", part + "--c\r\n--b", strings.Repeat(part, 200),
		part + "--c\r\n\r\nPOST nothing\r\n\r\n--c--\r\n--b--\r\n", strings.ReplaceAll(part, "POST", "BREW") +
			"--c--\r\n--b--\r\n", strings.ReplaceAll(part, "/people", "/nope") + "--c--\r\n--b--\r\n",
		strings.ReplaceAll(part, "boundary=c", "boundary="+strings.Repeat("c", 100_000)),
		strings.Repeat("--b\r\n", 100_000), strings.Repeat("\r\n", 500_000), "--b\r\nX: " + strings.Repeat("x", 1<<20),
		deep("--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n", "", "--b--\r\n", 2000)}
	for _, b := range batches {
		for _, ct := range []string{"multipart/mixed; boundary=b", "multipart/mixed", "multipart/mixed; boundary=",
			"multipart/mixed; boundary=\"", "text/plain"} {
			if code, text := g.do(t, server.Table, "POST", "/$batch", b, "Content-Type", ct); code >= 500 ||
				code == 0 && len(b) < 1<<20 {
				t.Errorf("$batch %q %.120q: %d %.300s", ct, b, code, text)
			}
		}
	}
	for _, n := range []string{"Authorization", "x-ms-date", "Date", "x-ms-version", "If-Match", "Prefer", "Accept",
		"DataServiceVersion", "MaxDataServiceVersion", "X-HTTP-Method", "Content-Type", "x-ms-client-request-id"} {
		for _, v := range hostileValues() {
			for _, m := range []string{"GET", "POST"} {
				if code, text := g.do(t, server.Table, m, "/people()", `{"PartitionKey":"p","RowKey":"h"}`, n,
					v); code >= 500 && code != 501 {
					t.Errorf("%s %s: %.80q: %d %.300s", m, n, v, code, text)
				}
			}
		}
	}
	if code, text := g.do(t, server.Table, "GET", "/people()?$filter=PartitionKey%20eq%20'half'", "", "Accept",
		"application/json;odata=nometadata"); code != 200 || strings.Contains(text, "half") {
		t.Errorf("something of a broken batch was applied: %d %s", code, text)
	}
	g.serves(t)
}

// TestBrokenHTTP damages valid requests at random places (with a fixed seed) and sends them raw, some of them
// pipelined.
func TestBrokenHTTP(t *testing.T) {
	g := start(t, false)
	rng := rand.New(rand.NewPCG(1, 2))
	seeds := map[string][]string{
		server.NoSQL: {"POST /dbs/shop/colls/items/docs HTTP/1.1\r\nHost: h\r\nx-ms-documentdb-isquery: " +
			"true\r\nContent-Type: application/query+json\r\nContent-Length: 64\r\n\r\n" +
			`{"query":"SELECT c.a, COUNT(1) FROM c WHERE c.n IN (1,2) GROUP "}`,
			"GET /dbs/shop/colls/items/docs/a HTTP/1.1\r\nHost: h\r\nx-ms-documentdb-partitionkey: [\"p\"]\r\n\r\n"},
		server.Table: {"POST /people HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\n{\"PartitionKey\":\"p\",\"RowKey\":1}\r\n0\r\n\r\n",
			"GET /people()?$filter=(PartitionKey%20eq%20'p')%20and%20x%20gt%205L HTTP/1.1\r\nHost: h\r\n\r\n"},
		server.Gremlin: {"GET /gremlin HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
			"POST /gremlin HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 46\r\n\r\n" +
				`{"gremlin":"g.V().has('a',1).out().values(1)"}`},
	}
	for door, list := range seeds {
		for i := range 80 {
			raw := []byte(list[i%len(list)])
			if i%3 == 0 {
				raw = append(raw, list[rng.IntN(len(list))]...)
			}
			for range 1 + rng.IntN(4) {
				raw[rng.IntN(len(raw))] = byte(rng.IntN(256))
			}
			if out := string(g.exchange(t, door, raw, 30*time.Millisecond)); serverFault(out) {
				t.Errorf("%s %q: %.400s", door, raw, out)
			}
		}
	}
	g.serves(t)
}

// serverFault reports a 5xx that isn't part of the protocol. HTTP has 501 and 505 for unknown methods and versions, and
// Gremlin Server replies to a script that fails with 500 and the name of the exception.
func serverFault(out string) bool {
	return strings.HasPrefix(out, "HTTP/1.1 5") && !strings.HasPrefix(out, "HTTP/1.1 501") &&
		!strings.HasPrefix(out, "HTTP/1.1 505") &&
		!strings.Contains(out, "GremlinScriptException")
}
