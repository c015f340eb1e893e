package sqlapi

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// bearer is a kind of authorization.
type bearer struct {
	name   string
	header string // the authorization header; "": none is sent
	always int    // the status that every route returns; 0: see the matrix
}

// bearers are all kinds of authorization, with tokens of the container c, of items in it, and of the container other.
func (a *api) bearers() (all []bearer) {
	a.t.Helper()
	sealed := func(g wire.Grant) string { return url.QueryEscape(a.srv.sign.Seal(&g, [8]byte{})) }
	ct, err := a.srv.container(context.Background(), "db", "c", 0)
	if err != nil {
		a.t.Fatal(err)
	}
	other, err := a.srv.container(context.Background(), "db", "other", 0)
	if err != nil {
		a.t.Fatal(err)
	}
	of := func(write bool, child, key string) wire.Grant {
		return wire.Grant{All: write, Expiry: testNow.Unix() + 60, Coll: ct.RID(), Child: child, Key: key}
	}
	old, elsewhere := of(true, "", ""), of(true, "", "")
	old.Expiry, elsewhere.Coll = testNow.Unix(), other.RID()
	foreign := url.QueryEscape(wire.NewSigner([]byte("another key")).Seal(
		&wire.Grant{All: true, Expiry: testNow.Unix() + 60, Coll: ct.RID()}, [8]byte{}))
	bad := url.QueryEscape("type=master&ver=1.0&sig=" + strings.Repeat("A", 43) + "=")
	aad := url.QueryEscape("type=aad&ver=1.0&sig=e30.e30." + string(a.srv.auth.aad))
	return []bearer{
		{"nothing", "", 401}, {"master bad", bad, 401},
		{"aad foreign", url.QueryEscape("type=aad&ver=1.0&sig=a.b.c"), 401}, {"token foreign", foreign, 401},
		{"token expired", sealed(old), 403},
		{"aad", aad, 200},
		// The columns of the matrix, in this order:
		{"reads container", sealed(of(false, "", "")), 0}, {"writes container", sealed(of(true, "", "")), 0},
		{"reads key a", sealed(of(false, "", `["a"]`)), 0}, {"writes key a", sealed(of(true, "", `["a"]`)), 0},
		{"reads item", sealed(of(false, "docs/1", "")), 0}, {"writes item", sealed(of(true, "docs/1", "")), 0},
		{"reads item of a", sealed(of(false, "docs/1", `["a"]`)), 0},
		{"writes item of a", sealed(of(true, "docs/1", `["a"]`)), 0},
		{"writes another item", sealed(of(true, "docs/2", "")), 0},
		{"writes sproc", sealed(of(true, "sprocs/1", "")), 0},
		{"writes other container", sealed(elsewhere), 0},
	}
}

// The rights that each operation needs of a resource token. A row has three words: for requests with partition key a in
// the header, with partition key b, and without the header. A word has one letter for each column of bearers: +
// allowed, - refused. An operation of the route table that isn't here fails the test.
var matrix = map[string][3]string{}

// words are the kinds of rights that operations need.
var words = func() map[string][3]string {
	none, account := "-----------", "+++++++++++"
	definition := "++++++++++-" // of c: allowed with a token for something in it
	readAll, writeAll := "++---------", "-+---------"
	return map[string][3]string{
		"master":     {none, none, none},
		"account":    {account, account, account},
		"definition": {definition, definition, definition},
		"read all":   {readAll, readAll, readAll},
		"write all":  {writeAll, writeAll, writeAll},
		"read keys":  {"++++-------", "++---------", "++---------"},
		"write key":  {"-+-+-------", "-+---------", "-+---------"},
		"read item":  {"++++++++---", "++--++-----", "++--++-----"},
		"write item": {"-+-+-+-+---", "-+---+-----", "-+---+-----"},
		// for conflicts, triggers and functions there are no tokens
		"read other": {"++++-------", "++---------", "++---------"},
		"edit other": {"-+-+-------", "-+---------", "-+---------"},
		"read sproc": {"++++-----+-", "++-------+-", "++-------+-"},
		"edit sproc": {"-+-+-----+-", "-+-------+-", "-+-------+-"},
	}
}()

// asks adds operations that need the rights of one of words to the matrix. The file that tests an operation may call
// it.
func asks(word string, ops ...string) {
	w, ok := words[word]
	if !ok {
		panic("no right is called " + word)
	}
	for _, o := range ops {
		matrix[o] = w
	}
}

func init() {
	const c, d = "/dbs/:db/colls/:coll", "/dbs/:db/colls/:coll/docs"
	asks("account", "GET / read account")
	asks("master", "GET /offers list offers", "POST /offers query offers", "POST /offers create offer",
		"GET /offers/:id read offer", "PUT /offers/:id replace offer",
		"GET /dbs list databases", "POST /dbs query databases", "POST /dbs create database",
		"GET /dbs/:db read database", "DELETE /dbs/:db delete database",
		"GET /dbs/:db/colls list containers", "POST /dbs/:db/colls query containers",
		"POST /dbs/:db/colls create container",
		"POST "+c+"/pkranges create range", "POST "+c+"/conflicts create conflict")
	for path, names := range map[string][2]string{
		"/dbs/:db/users": {"users", "user"}, "/dbs/:db/users/:user/permissions": {"permissions", "permission"},
		"/dbs/:db/clientencryptionkeys": {"clientencryptionkeys", "key"}} {
		one := path + "/:" + names[1]
		asks("master", "GET "+path+" list "+names[0], "POST "+path+" query "+names[0], "POST "+path+" create "+names[1],
			"GET "+one+" read "+names[1], "PUT "+one+" replace "+names[1], "DELETE "+one+" delete "+names[1])
	}
	asks("definition", "GET "+c+" read container", "GET "+c+"/pkranges list ranges", "POST "+c+"/pkranges query ranges",
		"GET "+c+"/pkranges/:id read range",
		"POST "+d+" plan query")
	asks("write all", "PUT "+c+" replace container", "DELETE "+c+" delete container",
		"POST "+c+"/operations/:operation other operation", "POST "+d+" bulk")
	asks("write key", "POST "+c+"/operations/:operation delete by partition key", "POST "+d+" batch",
		"POST "+d+" upsert item", "POST "+d+" create item")
	asks("read keys", "GET "+d+" read change feed", "GET "+d+" list items", "POST "+d+" query items",
		"GET "+c+"/conflicts list conflicts", "POST "+c+"/conflicts query conflicts")
	asks("read item", "GET "+d+"/:id read item")
	asks("write item", "PUT "+d+"/:id replace item", "PATCH "+d+"/:id patch item", "DELETE "+d+"/:id delete item")
	asks("read other", "GET "+c+"/conflicts/:id read conflict")
	asks("edit other", "DELETE "+c+"/conflicts/:id delete conflict")
	unsupported := func(path, reads, writes string) {
		asks(reads, "GET "+path+" unsupported")
		asks(writes, "POST "+path+" unsupported", "PUT "+path+" unsupported", "PATCH "+path+" unsupported",
			"DELETE "+path+" unsupported")
	}
	unsupported("/addresses", "master", "master")
	unsupported(c+"/schemas", "read all", "write all")
	for path, of := range map[string][2]string{"/sprocs": {"procedure", "sproc"}, "/triggers": {"trigger", "other"},
		"/udfs": {"function", "other"}} {
		feed, name := c+path, of[0]
		asks("read all", "GET "+feed+" list "+name+"s", "POST "+feed+" query "+name+"s")
		asks("write all", "POST "+feed+" create "+name)
		asks("read "+of[1], "GET "+feed+"/:id read "+name)
		asks("edit "+of[1], "PUT "+feed+"/:id replace "+name, "DELETE "+feed+"/:id delete "+name)
	}
	asks("edit sproc", "POST "+c+"/sprocs/:id execute procedure")
	unsupported(d+"/:id/attachments", "read item", "write item")
	unsupported(d+"/:id/attachments/:attachment", "read item", "write item")
}

// forms are the headers that select an operation, by the operation's name.
var forms = map[string][]string{
	"plan query":              {"x-ms-cosmos-is-query-plan-request: True"},
	"batch":                   {"x-ms-cosmos-is-batch-request: True", "x-ms-cosmos-batch-atomic: True"},
	"bulk":                    {"x-ms-cosmos-is-batch-request: True"},
	"upsert item":             {"x-ms-documentdb-is-upsert: True"},
	"read change feed":        {"a-im: Incremental feed"},
	"delete container":        {`if-match: "of another time"`}, // refused by the handler, so it isn't deleted
	"delete by partition key": nil,
}

func formOf(o *operation) []string {
	if h, ok := forms[o.name]; ok {
		return h
	}
	if strings.HasPrefix(o.name, "query ") {
		return []string{"x-ms-documentdb-isquery: True"}
	}
	return nil
}

// withSecrets is a server with items in partition key b and in another container, which a bearer that is bound to
// partition key a must not see.
func withSecrets(t *testing.T) *api {
	t.Helper()
	a := withContainer(t)
	a.do("POST", "/dbs/db/colls", `{"id":"other","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
	a.do("POST", "/dbs/db/users", `{"id":"1"}`).is(201)
	for _, pk := range []string{"a", "b"} {
		a.do("POST", docs, `{"id":"1","pk":"`+pk+`","text":"secret of `+pk+`"}`, key(pk)).is(201)
	}
	a.do("POST", "/dbs/db/colls/other/docs", `{"id":"1","pk":"a","text":"secret of other"}`, key("a")).is(201)
	return a
}

// targetOf replaces the parameters of a route.
func targetOf(l *line, o *operation) string {
	p := strings.NewReplacer(":db", "db", ":coll", "c", ":operation", "partitionkeydelete", ":id", "1", ":user", "1",
		":permission", "1", ":key", "1",
		":attachment", "1").Replace(l.path)
	if o.name == "other operation" {
		p = strings.Replace(p, "partitionkeydelete", "another", 1)
	}
	return p
}

// bodyOf returns a valid body for an operation: a refused request must be refused before it is read, and an allowed one
// must reach the handler.
func bodyOf(o *operation, pk string) string {
	switch {
	case strings.HasPrefix(o.name, "query ") || o.name == "plan query":
		return `{"query":"SELECT * FROM c"}`
	case o.name == "batch" || o.name == "bulk":
		return fmt.Sprintf(`[{"operationType":"Read","id":"1","partitionKey":"[\"%s\"]"}]`, pk)
	case o.name == "patch item":
		return `{"operations":[{"op":"set","path":"/n","value":1}]}`
	}
	return fmt.Sprintf(`{"id":"1","pk":"%s"}`, pk)
}

// Every kind of authorization requests every operation of every route. What is allowed is as declared, and refusals
// have the same text for any request.
func TestRightsOfEveryRoute(t *testing.T) {
	seen := map[string]bool{}
	lines := withSecrets(t).srv.lines
	for i := range lines {
		l := &lines[i]
		for j := range l.ops {
			o := &l.ops[j]
			name := l.verb + " " + l.path + " " + o.name
			want, ok := matrix[name]
			if !ok || seen[name] {
				t.Errorf("%s: what it needs of a resource token isn't declared in this test, or twice", name)
				continue
			}
			seen[name] = true
			if o.needs == (rights{}) {
				t.Errorf("%s: the route declares no rights", name)
			}
			a := withSecrets(t) // an allowed operation may change the data of the next one
			all := a.bearers()
			for k, pk := range []string{"a", "b", ""} {
				headers := formOf(o)
				if pk != "" {
					headers = append(headers[:len(headers):len(headers)], key(pk))
				}
				column := 0
				for _, b := range all {
					r := a.as(b, l.verb, targetOf(l, o), bodyOf(o, pk), headers...)
					switch {
					case b.always == 200 && (r.code == 401 || r.code == 403):
						t.Errorf("%s by %s: %d", r.what, b.name, r.code)
					case b.always > 200 && r.code != b.always:
						t.Errorf("%s by %s: %d, want %d", r.what, b.name, r.code, b.always)
					}
					if b.always == 0 {
						may := want[k][column] == '+'
						if column++; (r.code != 403) != may || r.code == 401 {
							t.Errorf("%s by %s: %d: may: %v: %s", r.what, b.name, r.code, may, clip(r.body))
						}
						if r.code == 403 {
							r.has("Insufficient permissions")
						}
					}
					if b.always > 400 && strings.Contains(r.body, "secret") {
						t.Errorf("%s by %s: %s", r.what, b.name, r.body)
					}
				}
			}
		}
	}
	for name := range matrix {
		if !seen[name] {
			t.Errorf("%s is declared here and served by no route", name)
		}
	}
}

// as sends a request with a given authorization.
func (a *api) as(b bearer, method, target, body string, headers ...string) *reply {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for _, h := range headers {
		k, v, _ := strings.Cut(h, ": ")
		r.Header.Set(k, v)
	}
	r.Header.Set("x-ms-date", testNow.Format(time.RFC1123))
	if b.header != "" {
		r.Header.Set("authorization", b.header)
	}
	w := httptest.NewRecorder()
	a.srv.ServeHTTP(w, r)
	return &reply{a.t, method + " " + target + " " + strings.Join(headers, " ") + " " + clip(body), w.Code,
		received(w.Header()), w.Body.String()}
}

// However a request is disguised, a bearer for partition key a sees nothing of b or of another container, and a bearer
// that may only read changes nothing. The disguises are every verb on every path, with the headers that change the
// meaning of a request, and two such headers for the verbs with several forms.
func TestDisguisesGetNothing(t *testing.T) {
	a := withSecrets(t)
	disguises := []string{"", "x-ms-cosmos-is-query-plan-request: True", "a-im: Incremental feed",
		"x-ms-documentdb-isquery: True", "x-ms-documentdb-query: true",
		"content-type: application/query+json", "x-ms-cosmos-is-batch-request: True", "x-ms-cosmos-batch-atomic: True",
		"x-ms-documentdb-is-upsert: True",
		"x-ms-documentdb-query-enablecrosspartition: True", "x-ms-documentdb-partitionkeyrangeid: 0",
		"x-http-method: DELETE", "x-http-method-override: GET"}
	var few []bearer
	for _, b := range a.bearers() {
		if b.name == "reads key a" || b.name == "reads item of a" || b.name == "writes other container" {
			few = append(few, b)
		}
	}
	seen := map[string]bool{}
	for _, l := range a.srv.lines {
		path := targetOf(&l, &operation{})
		if seen[path] {
			continue
		}
		seen[path] = true
		for _, verb := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "MERGE"} {
			before := a.state()
			for i, one := range disguises {
				for _, pk := range []string{"", "[]", `["a"]`, `["b"]`} {
					a.disguised(few, verb, path, pk, one)
					a.disguised(few, verb, "/"+strings.TrimSuffix(path, "/")+"//", pk, one)
				}
				for _, two := range disguises[1:max(i, 1)] {
					if verb == "GET" || verb == "POST" {
						a.disguised(few, verb, path, "", one, two)
						a.disguised(few, verb, path, `["a"]`, one, two)
					}
				}
			}
			if now := a.state(); now != before {
				t.Fatalf("%s %s has changed %s to %s", verb, path, before, now)
			}
		}
	}
}

// disguised sends one request by the bearers with few rights.
func (a *api) disguised(by []bearer, verb, path, pk string, disguises ...string) {
	a.t.Helper()
	headers := make([]string, 0, 3)
	body := `{"query":"SELECT * FROM c","id":"1","pk":"b"}`
	for _, h := range disguises {
		if h != "" {
			headers = append(headers, h)
		}
		if strings.Contains(h, "batch-request") {
			body = `[{"operationType":"Read","id":"1","partitionKey":"[\"b\"]"},{"operationType":"Delete","id":"1",` +
				`"partitionKey":"[\"b\"]"}]`
		}
	}
	if pk != "" {
		headers = append(headers, "x-ms-documentdb-partitionkey: "+pk)
	}
	for _, b := range by {
		if r := a.as(b, verb, path, body, headers...); strings.Contains(r.body, "secret of b") ||
			strings.Contains(r.body, "secret of other") && b.name != "writes other container" {
			a.t.Errorf("%s by %s: %d %s", r.what, b.name, r.code, r.body)
		}
	}
}

// A request without valid authorization gets no information: the same text for existing and missing paths, and never
// the allowed verbs.
func TestStrangersLearnNothing(t *testing.T) {
	a := withSecrets(t)
	paths := map[string]bool{"/nothing": true, "/dbs/none": true, "/dbs/db/colls/none/docs/1": true,
		"/dbs/db/colls/c/docs/none": true, "/a/b/c/d/e/f/g/h/i/j": true, "/dbs/%2f": true}
	for _, l := range a.srv.lines {
		paths[targetOf(&l, &operation{})] = true
	}
	for _, b := range a.bearers() {
		if b.always != 401 {
			continue
		}
		for path := range paths {
			for _, verb := range []string{
				"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "MERGE"} {
				if r := a.as(b, verb, path, `{"id":"1"}`).is(401); r.h.Get("Allow") != "" || r.h.Get("etag") != "" ||
					r.h.Get("x-ms-session-token") != "" || strings.Contains(r.body, "secret") {
					t.Errorf("%s by %s: %v %s", r.what, b.name, r.h, r.body)
				}
			}
		}
	}
}

// state returns data that every write changes.
func (a *api) state() string {
	out := ""
	dbs, err := a.srv.core.Databases(context.Background())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, d := range dbs {
		cts, err := a.srv.core.Containers(d.ID)
		if err != nil {
			a.t.Fatal(err)
		}
		for _, ct := range cts {
			parts, err := ct.Partitions(a.t.Context())
			if err != nil {
				a.t.Fatal(err)
			}
			out += fmt.Sprintf("%s/%s %s %v;", d.ID, ct.ID(), ct.ETag(), parts)
		}
	}
	return out
}

// An operation without declared rights is refused for every token.
func TestUndeclaredIsRefused(t *testing.T) {
	a := withSecrets(t)
	routes{g: &a.srv.gin.RouterGroup, all: &a.srv.lines}.get(
		"/dbs/:db/colls/:coll/new", op("new", rights{}, readAccount))
	all := a.bearers()
	for _, b := range all {
		want := b.always
		if want == 0 {
			want = 403
		}
		a.as(b, "GET", "/dbs/db/colls/c/new", "").is(want)
	}
	a.do("GET", "/dbs/db/colls/c/new", "").is(200)
}

// A token expires exactly at its second.
func TestTokenExpiresOnTheRoute(t *testing.T) {
	a := withSecrets(t)
	all := a.bearers()
	clk := clock.Fake(testNow)
	a.srv.auth.clock = clk
	for _, b := range all {
		if b.name == "reads container" {
			a.as(b, "GET", docs, "").is(200)
			clk.Advance(59 * time.Second)
			a.as(b, "GET", docs, "").is(200)
			clk.Advance(time.Second)
			a.as(b, "GET", docs, "").is(403)
		}
	}
}
