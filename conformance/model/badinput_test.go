package model

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

// plain is a server without authorization, for requests that no client sends.
type plain struct {
	*harness.Server
	t *testing.T
}

// newPlain has a database db with the containers a and b: two physical partitions each, with the items 0 to 39, an
// item for each of the keys k0 to k39, 40 of the key "one", and programs.
func newPlain(t *testing.T) *plain {
	cfg := server.Ephemeral()
	cfg.Auth, cfg.Strict = false, nil
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	p := &plain{harness.StartWith(t, cfg), t}
	p.made("/dbs", `{"id":"db"}`)
	p.made("/dbs", `{"id":"other"}`)
	for ci, c := range []string{"a", "b"} {
		p.made("/dbs/db/colls", `{"id":"`+c+`","partitionKey":{"paths":["/k"],"kind":"Hash","version":2},`+
			`"changeFeedPolicy":{"retentionDuration":10}}`, "x-ms-offer-throughput: 20000")
		for i := range 40 {
			for _, k := range []string{fmt.Sprint("k", i), "one"} {
				p.made("/dbs/db/colls/"+c+"/docs", fmt.Sprintf(`{"id":"%d","k":%q,"n":%d,"of":%q}`, i, k, i+1000*ci, c),
					`x-ms-documentdb-partitionkey: ["`+k+`"]`)
			}
		}
	}
	for name, kind := range map[string]string{"before": "Pre", "after": "Post"} {
		p.made("/dbs/db/colls/a/triggers", fmt.Sprintf(`{"id":%q,"triggerType":%q,"triggerOperation":"All",`+
			`"body":"function f() {}"}`, name, kind))
	}
	p.made("/dbs/db/colls/a/triggers", `{"id":"onDelete","triggerType":"Pre","triggerOperation":"Delete",`+
		`"body":"function f() {}"}`)
	p.made("/dbs/db/colls/a/sprocs", `{"id":"proc","body":"function f() {}"}`)
	return p
}

// do sends a request. Headers are "name: value".
func (p *plain) do(method, path, body string, headers ...string) (*http.Response, string) {
	p.t.Helper()
	r, err := http.NewRequest(method, "http://"+p.Addr(server.NoSQL)+path, strings.NewReader(body))
	ok(p.t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return p.send(r)
}

func (p *plain) send(r *http.Request) (*http.Response, string) {
	p.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	ok(p.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	ok(p.t, err)
	return resp, string(b)
}

func (p *plain) made(path, body string, headers ...string) {
	p.t.Helper()
	if r, text := p.do("POST", path, body, headers...); r.StatusCode != 201 {
		p.t.Fatalf("%s %s: %d %s", path, body, r.StatusCode, text)
	}
}

// code returns the status and the sub-status of a reply, as in 410/1002.
func code(r *http.Response) string {
	if sub := r.Header.Get("x-ms-substatus"); sub != "" && sub != "0" {
		return fmt.Sprint(r.StatusCode, "/", sub)
	}
	return fmt.Sprint(r.StatusCode)
}

const isQuery = "x-ms-documentdb-isquery: True"

// A paged request of NoSQL.
type paged struct {
	name, method, path, body string // %s of the path is a or b
	headers                  []string
	numbered                 bool   // its continuation is a number, which is one of every container too
	foreign                  string // what the continuation of another container gives
}

var (
	queryType = []string{isQuery, "content-type: application/query+json"}
	ofOne     = `x-ms-documentdb-partitionkey: ["one"]`
	ofRange   = "x-ms-documentdb-partitionkeyrangeid: 0"
	increment = "A-IM: Incremental feed"
)

func pagedRequests() []paged {
	const docs = "/dbs/db/colls/%s/docs"
	query := func(text string, headers ...string) paged {
		body := fmt.Sprintf(`{"query":%q}`, text)
		return paged{text, "POST", docs, body, append(headers, queryType...), false, "400"}
	}
	list := func(path string) paged { return paged{path, "GET", path, "", nil, true, ""} }
	return []paged{
		query("SELECT * FROM c", "x-ms-documentdb-query-enablecrosspartition: True"),
		query("SELECT * FROM c WHERE c.n >= 0", ofOne),
		query("SELECT * FROM c ORDER BY c.n", ofOne),
		query("SELECT DISTINCT c.n FROM c", ofOne),
		query("SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n", ofOne),
		query("SELECT c.n FROM c", ofRange),
		{"read feed", "GET", docs, "", nil, false, "400"},
		{"read feed of a key", "GET", docs, "", []string{ofOne}, false, "400"},
		{"read feed of a range", "GET", docs, "", []string{ofRange}, false, "400"},
		{"change feed", "GET", docs, "", []string{increment}, false, "400"},
		{"change feed of a range", "GET", docs, "", []string{increment, ofRange}, true, "200"},
		{"change feed of a key", "GET", docs, "", []string{increment, ofOne}, true, "200"},
		{"all versions", "GET", docs, "", []string{"A-IM: Full-Fidelity Feed"}, true, "304"},
		list("/dbs"), list("/dbs/db/colls"), list("/offers"), list("/dbs/db/colls/a/triggers"),
		{"query of containers", "POST", "/dbs/db/colls", `{"query":"SELECT * FROM c"}`, queryType, false, ""},
		{"query of offers", "POST", "/offers", `{"query":"SELECT * FROM c"}`, queryType, false, ""},
	}
}

// A continuation that was cut, lengthened or made up, or that is of another request, is refused with 400. One of
// another container is refused where it isn't a plain number.
func TestForgedContinuations(t *testing.T) {
	p := newPlain(t)
	tokens := map[string]string{}
	for _, f := range pagedRequests() {
		sent, given := "x-ms-continuation", "x-ms-continuation"
		if strings.HasPrefix(f.name, "change feed") || f.name == "all versions" {
			sent, given = "If-None-Match", "etag"
		}
		page := func(c, at string) *http.Response {
			h := append([]string{"x-ms-max-item-count: 1"}, f.headers...)
			if at != "" {
				h = append(h, sent+": "+at)
			}
			r, _ := p.do(f.method, strings.Replace(f.path, "%s", c, 1), f.body, h...)
			return r
		}
		from := ""
		if f.name == "all versions" {
			from = "*" // it begins now
		}
		begin := page("a", from)
		at := begin.Header.Get(given)
		if code(begin) != "200" && code(begin) != "304" || at == "" {
			t.Fatalf("%s: %s, continuation %q", f.name, code(begin), at)
		}
		tokens[f.name] = at
		bare, quote := strings.Trim(at, `"`), ""
		if bare != at {
			quote = `"`
		}
		forged := map[string]string{"more": bare + "A", "letter": "x", "negative": "-1", "object": "{}", "null": "null",
			"long": strings.Repeat("A", 8000), "large number": "99999999999999999999"}
		if !f.numbered {
			forged["cut"], forged["one character less"] = bare[:len(bare)/2], bare[1:]
			if sent != "If-None-Match" { // a number is a position of every feed
				forged["number"] = "17"
			}
			forged["another character"] = bare[:len(bare)/2] + string(bare[len(bare)/2]^1) + bare[len(bare)/2+1:]
		}
		for what, text := range forged {
			if r := page("a", quote+text+quote); code(r) != "400" {
				t.Errorf("%s, %s (%.100s): %s, want 400", f.name, what, text, code(r))
			}
		}
		if r := page("a", at); code(r) != "200" && f.name != "all versions" {
			t.Errorf("%s: its own continuation gives %s", f.name, code(r))
		}
		if f.foreign != "" {
			if r := page("b", at); code(r) != f.foreign {
				t.Errorf("%s of another container: %s, want %s", f.name, code(r), f.foreign)
			}
		}
	}
	for _, f := range pagedRequests() {
		if f.numbered || !strings.HasSuffix(f.path, "/docs") || f.method == "GET" {
			continue
		}
		for other, at := range tokens {
			if other == f.name || other == "/dbs" {
				continue
			}
			h := append([]string{"x-ms-max-item-count: 1", "x-ms-continuation: " + at}, f.headers...)
			if r, _ := p.do("POST", "/dbs/db/colls/a/docs", f.body, h...); code(r) != "400" {
				t.Errorf("%s with the continuation of %s: %s", f.name, other, code(r))
			}
		}
	}
}

// Ranges, sessions, keys, programs and throughputs that don't exist or can't be.
func TestBadRequests(t *testing.T) {
	p := newPlain(t)
	const (
		a    = "/dbs/db/colls/a"
		item = `{"id":"new","k":"one"}`
		coll = `{"id":"new","partitionKey":{"paths":["/k"]}}`
		key  = `x-ms-documentdb-partitionkey: ["one"]`
		auto = "x-ms-cosmos-offer-autopilot-settings: "
		ru   = "x-ms-offer-throughput: "
		rng  = "x-ms-documentdb-partitionkeyrangeid: "
		sess = "x-ms-session-token: "
		pre  = "x-ms-documentdb-pre-trigger-include: "
		post = "x-ms-documentdb-post-trigger-include: "
	)
	for _, x := range []struct {
		want, method, path, body string
		headers                  []string
	}{
		{"410/1002", "GET", a + "/docs", "", []string{rng + "9"}},
		{"410/1002", "GET", a + "/docs", "", []string{rng + "x"}},
		{"410/1002", "GET", a + "/docs", "", []string{rng + "-1"}},
		{"410/1002", "GET", a + "/docs", "", []string{rng + "9", increment}},
		{"410/1002", "POST", a + "/docs", `{"query":"SELECT * FROM c"}`, append([]string{rng + "9"}, queryType...)},
		{"404", "GET", a + "/pkranges/9", "", nil},
		{"200", "GET", a + "/pkranges", "", []string{"If-None-Match: \"x\""}},      // not what the ranges have
		{"200", "GET", a + "/pkranges", "", []string{"x-ms-continuation: forged"}}, // they are one page
		{"400", "GET", a + "/docs", "", []string{"x-ms-start-epk: zz", "x-ms-end-epk: FF",
			"x-ms-read-key-type: EffectivePartitionKeyRange"}},
		{"400", "GET", a + "/docs/1", "", []string{key, sess + "x"}},
		{"400", "GET", a + "/docs/1", "", []string{key, sess + "0:#"}},
		{"404/1002", "GET", a + "/docs/1", "", []string{key, sess + "0:-1#999999"}},
		{"200", "GET", a + "/docs/1", "", []string{key, sess + "77:-1#1"}}, // of a range that is unknown
		{"400", "GET", a + "/docs/1", "", []string{`x-ms-documentdb-partitionkey: ["one"`}},
		{"400/1001", "GET", a + "/docs/1", "", []string{`x-ms-documentdb-partitionkey: ["one","two"]`}},
		{"400/1001", "POST", a + "/docs", item, []string{`x-ms-documentdb-partitionkey: ["two"]`}},
		{"400/1001", "GET", a + "/docs/1", "", nil},

		{"400", "POST", a + "/docs", item, []string{key, pre + "after"}},
		{"400", "POST", a + "/docs", item, []string{key, post + "before"}},
		{"400", "POST", a + "/docs", item, []string{key, pre + "none"}},
		{"400", "POST", a + "/docs", item, []string{key, pre + "onDelete"}},
		{"400", "POST", a + "/docs", item, []string{key, pre + "proc"}},
		{"400", "POST", a + "/docs", item, []string{key, pre + "before,after"}},
		{"400", "POST", a + "/triggers", `{"id":"t","triggerType":"Mid","triggerOperation":"All","body":"x"}`, nil},
		{"400", "POST", a + "/triggers", `{"id":"t","triggerType":"Pre","triggerOperation":"Read","body":"x"}`, nil},
		{"404", "POST", a + "/sprocs/none", "[]", []string{key}},
		{"404", "POST", a + "/sprocs/before", "[]", []string{key}},
		{"400", "POST", a + "/sprocs/proc", "[]", nil},
		{"400", "POST", a + "/sprocs/proc", "{", []string{key}},

		{"400", "POST", "/dbs", `{"id":"new"}`, []string{ru + "399"}},
		{"400", "POST", "/dbs", `{"id":"new"}`, []string{ru + "450"}},
		{"400", "POST", "/dbs", `{"id":"new"}`, []string{ru + "-1"}},
		{"400", "POST", "/dbs/db/colls", coll, []string{ru + "1000100"}},
		{"400", "POST", "/dbs/db/colls", coll, []string{ru + "9999999999999999999999"}},
		{"400", "POST", "/dbs/db/colls", coll, []string{ru + "many"}},
		{"400", "POST", "/dbs/db/colls", coll, []string{auto + `{"maxThroughput":900}`}},
		{"400", "POST", "/dbs/db/colls", coll, []string{auto + `{"maxThroughput":4500}`}},
		{"400", "POST", "/dbs/db/colls", coll, []string{auto + `{"maxThroughput":1001000}`}},
		{"400", "POST", "/dbs/db/colls", coll, []string{auto + `{"maxThroughput":"4000"}`}},
		{"400", "POST", "/dbs/db/colls", coll, []string{auto + `{`}},
		{"400", "POST", "/dbs/db/colls", coll, []string{auto + `{"maxThroughput":4000}`, ru + "400"}},
	} {
		if r, text := p.do(x.method, x.path, x.body, x.headers...); code(r) != x.want {
			t.Errorf("%s %s %s %v: %s, want %s: %s", x.method, x.path, x.body, x.headers, code(r), x.want, text)
		}
	}
	r, text := p.do("GET", a+"/docs", "", ofOne, "x-ms-max-item-count: 100")
	if !strings.Contains(text, `"_count":40`) {
		t.Errorf("afterwards: %s %s", code(r), text)
	}
	for _, path := range []string{"/dbs/new", "/dbs/db/colls/new", a + "/triggers/t"} {
		if r, _ := p.do("GET", path, ""); r.StatusCode != 404 {
			t.Errorf("%s was created by a request that was refused", path)
		}
	}
}

// The continuation of Table is a pair of keys, so any pair is a position. What no server gives is refused.
func TestForgedTableContinuations(t *testing.T) {
	p := newPlain(t)
	table := p.Tables.NewClient("things")
	_, err := table.CreateTable(bg, nil)
	ok(t, err)
	for i := range 5 {
		_, err := table.AddEntity(bg, fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":"%d"}`, i), nil)
		ok(t, err)
	}
	get := func(query string) (*http.Response, string) {
		r, err := http.NewRequest("GET", "http://"+p.Addr(server.Table)+"/things()?$top=2"+query, nil)
		ok(t, err)
		r.Header.Set("x-ms-version", "2019-02-02")
		r.Header.Set("Accept", "application/json;odata=nometadata")
		return p.send(r)
	}
	r, _ := get("")
	pk, rk := r.Header.Get("x-ms-continuation-NextPartitionKey"), r.Header.Get("x-ms-continuation-NextRowKey")
	if r.StatusCode != 200 || pk == "" {
		t.Fatalf("%d, continuation %s %s", r.StatusCode, pk, rk)
	}
	for _, x := range []struct{ pk, rk, want string }{
		{pk, rk, `200  "RowKey":"2" "RowKey":"3"`},
		{pk + "A", rk, "400 InvalidInput"},
		{"x", "x", "400 InvalidInput"},
		{"", rk, "400 InvalidInput"},
		{strings.Repeat("A", 5000), rk, "400 InvalidInput"},
	} {
		r, text := get("&NextPartitionKey=" + url.QueryEscape(x.pk) + "&NextRowKey=" + url.QueryEscape(x.rk))
		got := fmt.Sprint(r.StatusCode, " ", r.Header.Get("x-ms-error-code"))
		for i := range 5 {
			if row := fmt.Sprintf(`"RowKey":"%d"`, i); strings.Contains(text, row) {
				got += " " + row
			}
		}
		if got != x.want {
			t.Errorf("%.40s %.40s: %s, want %s: %s", x.pk, x.rk, got, x.want, text)
		}
	}
}

// A cursor of MongoDB belongs to its collection and session. Another one, or a number that is none, is refused.
func TestForgedCursors(t *testing.T) {
	s := harness.Start(t)
	db := s.Mongo.Database("db")
	for _, c := range []string{"a", "b"} {
		var docs []any
		for i := range 10 {
			docs = append(docs, bson.D{{Key: "_id", Value: i}})
		}
		_, err := db.Collection(c).InsertMany(bg, docs)
		ok(t, err)
	}
	one, err := s.Mongo.StartSession()
	ok(t, err)
	defer one.EndSession(bg)
	two, err := s.Mongo.StartSession()
	ok(t, err)
	defer two.EndSession(bg)
	var page struct {
		Cursor struct {
			ID int64
		}
	}
	in := mongo.NewSessionContext(bg, one)
	ok(t, db.RunCommand(in, bson.D{{Key: "find", Value: "a"}, {Key: "batchSize", Value: 2}}).Decode(&page))
	more := func(id any, c string) bson.D {
		return bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: c}, {Key: "batchSize", Value: 2}}
	}
	for _, x := range []struct {
		session *mongo.Session
		id      any
		c       string
		want    int32
	}{
		{one, page.Cursor.ID + 1, "a", 43},
		{one, int64(-1), "a", 43},
		{one, int64(0), "a", 43},
		{one, "x", "a", 14},
		{one, page.Cursor.ID, "b", 13},
		{two, page.Cursor.ID, "a", 50738},
		{one, page.Cursor.ID, "a", 0},
	} {
		var ce mongo.CommandError
		err := db.RunCommand(mongo.NewSessionContext(bg, x.session), more(x.id, x.c)).Err()
		if errors.As(err, &ce); ce.Code != x.want {
			t.Errorf("getMore %v of %q: %v, want %d", x.id, x.c, err, x.want)
		}
	}
}
