package explorer

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/clock"
)

func TestResource(t *testing.T) {
	for _, c := range [][3]string{
		{"/", "", ""},
		{"/dbs", "dbs", ""},
		{"/dbs/shop", "dbs", "dbs/shop"},
		{"/dbs/shop/colls", "colls", "dbs/shop"},
		{"/dbs/shop/colls/a b/docs/1", "docs", "dbs/shop/colls/a b/docs/1"},
		{"/dbs/shop/colls/c/docs/a%2Fb", "docs", "dbs/shop/colls/c/docs/a%2Fb"},
		{"/offers", "offers", ""},
		{"/offers/X1y2", "offers", "x1y2"},
	} {
		if kind, link := resource(c[0]); kind != c[1] || link != c[2] {
			t.Errorf("%s: %q of %q", c[0], kind, link)
		}
	}
}

func post(path, body string, headers ...string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func read(path string) *http.Request {
	r := post(path, "")
	r.Method = http.MethodGet
	return r
}

// What a read-only session is refused, and what it isn't.
func TestReadOnly(t *testing.T) {
	const query = "x-ms-documentdb-isquery"
	get, del := read("/dbs"), post("/dbs/a", "")
	del.Method = http.MethodDelete
	for _, c := range []struct {
		door string
		r    *http.Request
		ok   bool
	}{
		{"nosql", get, true},
		{"nosql", del, false},
		{"nosql", read("/dbs/a/users/b"), true},
		{"nosql", read("/dbs/a/users/b/permissions"), false},
		{"nosql", read("/dbs/a/users/b/permissions/c"), false},
		{"nosql", post("/dbs/a/users/b/permissions", `{}`, query, "true"), false},
		{"nosql", read("/dbs/users/colls/permissions/docs/users"), true},
		{"table", get, true},
		{"table", del, false},
		{"admin", get, true},
		{"admin", post("/orrery/partitions", `{"do":"split"}`), false},
		{"nosql", post("/dbs/a/colls/b/docs", `{"id":"1"}`), false},
		{"nosql", post("/dbs/a/colls/b/docs", `{"query":"SELECT * FROM c"}`, query, "true"), true},
		{"nosql", post("/dbs/a/colls/b/docs", `{}`, query, "false"), false},
		{"nosql", post("/dbs/a/colls/b/docs", `{"id":"1"}`, query, "true", "x-ms-documentdb-is-upsert", "true"), false},
		{"nosql", post("/dbs/a/colls/b/docs", `[]`, query, "true", "x-ms-cosmos-is-batch-request", "True"), false},
		{"nosql", post("/dbs/a/colls/b/sprocs/drop", `[]`, query, "true"), false},
		{"table", post("/t", "{}", "x-http-method", "DELETE"), false},
		{"gremlin", get, false},
		{"gremlin", post("/", `{"gremlin":"g.V().has('km', gt(5))"}`), true},
		{"gremlin", post("/", `{"gremlin":"g.V().drop()"}`), false},
		{"gremlin", post("/", `{"gremlin":"g.V().where(__.map(addV('x')))"}`), false},
		{"gremlin", post("/", `{"gremlin":"g.V()","gremlin":"g.V().drop()"}`), false},
		{"gremlin", post("/", `{"gremlin":"g.V().map(x)","bindings":{"x":{"@type":"g:Bytecode"}}}`), false},
		{"gremlin", post("/", `{"gremlin":{"@type":"g:Bytecode"}}`), false},
		{"gremlin", post("/", `{"gremlin":"g.V(x)","bindings":{"x":9007199254740993}}`), true},
	} {
		why := mayRead(c.door, c.r)
		if (why == nil) != c.ok {
			t.Errorf("%s %s %s %v: %v", c.door, c.r.Method, c.r.URL, c.r.Header, why)
		}
	}
	for command, ok := range map[string]bool{
		`{"find":"c","filter":{"a":1}}`:                                       true,
		`{"aggregate":"c","pipeline":[{"$match":{}}],"cursor":{}}`:            true,
		`{"aggregate":"c","pipeline":[{"$out":"d"}],"cursor":{}}`:             false,
		`{"aggregate":"c","pipeline":[{"$facet":{"a":[{"$merge":"d"}]}}]}`:    false,
		`{"explain":{"aggregate":"c","pipeline":[{"$out":"d"}],"cursor":{}}}`: false,
		`{"insert":"c","documents":[]}`:                                       false,
		`{"drop":"c"}`:                                                        false,
		`{}`:                                                                  false,
		`{"mapReduce":"c"}`:                                                   false,
	} {
		b, why := parseCommand([]byte(command), "db")
		if why != nil {
			t.Fatal(command, why)
		}
		if why := mayRun(b); (why == nil) != ok {
			t.Errorf("%s: %v", command, why)
		}
	}
}

// No key is taken over plain HTTP on an address that other machines reach.
func TestExplorerPlain(t *testing.T) {
	e := New(Options{Mode: Full, Auth: true, Key: "key", Clock: clock.New()}, NewSessions(clock.New()))
	for _, c := range []struct {
		addr string
		tls  bool
		code int
	}{
		{"127.0.0.1:8080", false, 200}, {"[::1]:8080", false, 200}, {"192.0.2.7:8080", false, 403},
		{"192.0.2.7:8080", true, 200}, {"[2001:db8::1]:8080", false, 403},
	} {
		r := post("http://localhost/_explorer/api/session", `{"key":"key"}`, "content-type", "application/json")
		addr, err := net.ResolveTCPAddr("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr)))
		w := httptest.NewRecorder()
		if e.ServeHTTP(w, r); w.Code != c.code {
			t.Errorf("%s, TLS %v: %d %s", c.addr, c.tls, w.Code, w.Body)
		}
		if c := w.Result().Cookies(); w.Code == 200 && (len(c) != 1 || c[0].Secure != (r.TLS != nil)) {
			t.Error(c)
		}
	}
}
