package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/explorer"
	"github.com/orrerydb/orrery/core/doc"
)

// browser is a session of the web page.
type browser struct {
	t             *testing.T
	base          string // http://host:port
	token, cookie string
}

// send sends a request of the page. headers are pairs; "" as a value removes a header that the page would send.
func (b *browser) send(method, path, body string, headers ...string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequest(method, b.base+explorer.Prefix+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("X-Orrery-Token", b.token)
	req.Header.Set("Cookie", b.cookie)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		if req.Header.Del(headers[i]); headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func (b *browser) text(res *http.Response) string {
	b.t.Helper()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// logIn opens a session and returns the status of the log-in.
func (b *browser) logIn(key string) (int, explorer.Welcome) {
	b.t.Helper()
	body, _ := json.Marshal(map[string]string{"key": key})
	res := b.send("POST", "api/session", string(body))
	var w explorer.Welcome
	if err := json.Unmarshal([]byte(b.text(res)), &w); err != nil {
		b.t.Fatal(err)
	}
	b.token = w.Token
	for _, c := range res.Cookies() {
		b.cookie = c.Name + "=" + c.Value
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != explorer.Prefix {
			b.t.Errorf("cookie %v", c)
		}
	}
	return res.StatusCode, w
}

// pageServer is a server with sample data and the page.
func pageServer(t *testing.T, set func(*Config)) *Server {
	s := guardedServer(t, func(c *Config) {
		c.Auth, c.BodyTimeout = true, 0
		if set != nil {
			set(c)
		}
	})
	if err := s.LoadDemo(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

func openPage(t *testing.T, s *Server, key string) *browser {
	t.Helper()
	b := &browser{t: t, base: "http://" + s.Addr(Admin)}
	if code, _ := b.logIn(key); code != 200 {
		t.Fatalf("log-in: %d", code)
	}
	return b
}

// Each refusal of the page's guard, on both ports that serve it.
func TestExplorerGuard(t *testing.T) {
	s := pageServer(t, nil)
	for _, door := range []string{Admin, NoSQL} {
		addr := s.Addr(door)
		b := &browser{t: t, base: "http://" + addr}
		for _, c := range []struct {
			key  string
			code int
		}{{"", 401}, {"wrong", 401}, {WellKnownKey + "x", 401}, {WellKnownKey, 200}} {
			if code, _ := b.logIn(c.key); code != c.code {
				t.Errorf("%s: log-in with %q: %d", door, c.key, code)
			}
		}
		const dbs = "api/nosql/dbs"
		_, port, _ := strings.Cut(addr, ":")
		for _, c := range []struct {
			name         string
			method, path string
			body         string
			headers      []string
			code         int
		}{
			{"as the page", "GET", dbs, "", nil, 200},
			{"no browser", "GET", dbs, "", []string{"Sec-Fetch-Site", ""}, 200},
			{"entered in the address bar", "GET", "index.html", "", []string{"Sec-Fetch-Site", "none"}, 200},
			{"another port", "GET", dbs, "", []string{"Sec-Fetch-Site", "same-site"}, 403},
			{"another site", "GET", dbs, "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
			{"another site's link", "GET", "index.html", "",
				[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
			{"its script", "GET", "app.js", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
			{"own origin", "GET", dbs, "", []string{"Origin", "http://" + addr}, 200},
			{"origin of another port", "GET", dbs, "", []string{"Origin", "http://127.0.0.1:1"}, 403},
			{"origin of another scheme", "GET", dbs, "", []string{"Origin", "https://" + addr}, 403},
			{"opaque origin", "GET", dbs, "", []string{"Origin", "null"}, 403},
			{"name of another site", "GET", dbs, "", []string{"Host", "evil.example:" + port}, 421},
			{"no token", "GET", dbs, "", []string{"X-Orrery-Token", ""}, 401},
			{"wrong token", "GET", dbs, "", []string{"X-Orrery-Token", strings.Repeat("0", 48)}, 401},
			{"no cookie", "GET", dbs, "", []string{"Cookie", ""}, 401},
			{"another cookie", "GET", dbs, "", []string{"Cookie", "orrery-" + port + "=0" + strings.Repeat("0", 47)},
				401},
			{"a form", "POST", dbs, `{"id":"form"}`, []string{"Content-Type", "text/plain"}, 415},
			{"no type", "POST", dbs, `{"id":"form"}`, []string{"Content-Type", ""}, 415},
			{"a form as log-in", "POST", "api/session", `{}`, []string{"Content-Type", "text/plain"}, 415},
			{"log-in by address", "GET", "api/session", "", nil, 405},
			{"profiles", "GET", "api/admin/debug/pprof/heap", "", nil, 404},
			{"no door", "GET", "api/other/x", "", nil, 404},
			{"no file", "GET", "none.js", "", nil, 404},
			{"a file outside", "GET", "../explorer.go", "", nil, 404},
			{"a write of a file", "POST", "app.js", "{}", nil, 405},
		} {
			res := b.send(c.method, c.path, c.body, c.headers...)
			if res.StatusCode != c.code {
				t.Errorf("%s, %s: %d %s", door, c.name, res.StatusCode, b.text(res))
			}
		}
		res := b.send("GET", "index.html", "")
		for name, want := range map[string]string{
			"Content-Security-Policy":      "frame-ancestors 'none'",
			"Cross-Origin-Resource-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
		} {
			if got := res.Header.Get(name); !strings.Contains(got, want) {
				t.Errorf("%s: %s: %q", door, name, got)
			}
		}
		if p := res.Header.Get("Content-Security-Policy"); strings.Contains(p, "unsafe") ||
			!strings.Contains(p, "require-trusted-types-for 'script'") {
			t.Error(p)
		}
		b.send("POST", "api/session/end", "{}")
		if res := b.send("GET", dbs, ""); res.StatusCode != 401 {
			t.Errorf("%s: %d after the log-out", door, res.StatusCode)
		}
	}
}

// The root of the admin port leads to the page. The certificate stays where it was.
func TestExplorerAddresses(t *testing.T) {
	s := pageServer(t, nil)
	for url, want := range map[string]int{
		"http://" + s.Addr(Admin) + "/":                   http.StatusFound,
		"http://" + s.Addr(Admin) + explorer.Prefix:       http.StatusFound,
		"http://" + s.Addr(NoSQL) + explorer.Prefix:       http.StatusFound,
		"http://" + s.Addr(NoSQL) + "/_explorer/x":        http.StatusNotFound,
		"http://" + s.Addr(NoSQL) + certificatePath:       http.StatusOK,
		"http://" + s.Addr(Admin) + "/_explorer/logo.svg": http.StatusOK,
	} {
		req, _ := http.NewRequest("GET", url, nil)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want || strings.Contains(res.Header.Get("Location"), "://") {
			t.Errorf("%s: %d %s", url, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

// The replies that the page gets are the doors', byte by byte.
func TestExplorerBytes(t *testing.T) {
	s := pageServer(t, nil)
	b := openPage(t, s, WellKnownKey)
	key := []string{"x-ms-documentdb-partitionkey", `["kitchen"]`}
	for _, c := range []struct {
		door, method, path, body string
		headers                  []string
	}{
		{NoSQL, "GET", "/dbs/shop/colls/products/docs/kettle-1", "", key},
		{NoSQL, "GET", "/dbs/shop/colls/products/docs/none", "", key},
		{NoSQL, "GET", "/dbs/shop/colls/products", "", nil},
		{NoSQL, "POST", "/dbs/shop/colls/products/docs", `{"query":"SELECT c.id FROM c"}`,
			[]string{"x-ms-documentdb-isquery", "true", "x-ms-documentdb-query-enablecrosspartition", "true"}},
		{NoSQL, "POST", "/dbs/shop/colls/products/docs", `{"query":"SELECT FROM"}`,
			[]string{"x-ms-documentdb-isquery", "true"}},
		{Table, "GET", "/devicelog()?$filter=PartitionKey%20eq%20'boiler'&$top=2", "",
			[]string{"Accept", "application/json;odata=nometadata"}},
		{Table, "GET", "/none()", "", []string{"Accept", "application/json;odata=nometadata"}},
		{Gremlin, "POST", "", `{"gremlin":"g.V('SEA').values('name')"}`, nil},
		{Gremlin, "POST", "", `{"gremlin":"g.V("}`, nil},
	} {
		headers := append([]string{"x-ms-activity-id", "6d3bdf5c-4b54-4a5c-9e5f-7d3a0b1c2d3e"}, c.headers...)
		over := b.send(c.method, "api/"+c.door+c.path, c.body, headers...)

		req, err := http.NewRequest(c.method, "http://"+s.Addr(c.door)+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		s.signFor(c.door, req)
		direct, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := io.ReadAll(direct.Body)
		_ = direct.Body.Close()
		got := b.text(over)
		name := c.door + " " + c.method + " " + c.path + " " + c.body
		if c.door == Gremlin { // the id of the request and times differ
			got, want = gremlinData(t, got), []byte(gremlinData(t, string(want)))
		}
		if cut, _, ok := strings.Cut(got, `\nRequestId:`); ok { // an error of the Table API
			before, _, _ := bytes.Cut(want, []byte(`\nRequestId:`))
			got, want = cut, before
		}
		if over.StatusCode != direct.StatusCode || got != string(want) {
			t.Errorf("%s:\n%d %s\nwant\n%d %s", name, over.StatusCode, got, direct.StatusCode, want)
		}
		for _, h := range []string{"Content-Type", "X-Ms-Request-Charge", "X-Ms-Continuation", "Etag", "X-Ms-Substatus",
			"X-Ms-Session-Token"} {
			if over.Header.Get(h) != direct.Header.Get(h) {
				t.Errorf("%s: %s is %q, want %q", name, h, over.Header.Get(h), direct.Header.Get(h))
			}
		}
		if over.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: readable from other pages", name)
		}
	}
}

// signFor adds the credentials of the account, as an SDK would.
func (s *Server) signFor(door string, r *http.Request) {
	date := wall.Now().Format(http.TimeFormat)
	r.Header.Set("X-Ms-Date", date)
	switch door {
	case NoSQL:
		r.Header.Set("X-Ms-Version", "2020-07-15")
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		kind, link := parts[len(parts)-1], strings.Join(parts[:len(parts)-1], "/")
		if len(parts)%2 == 0 {
			kind, link = parts[len(parts)-2], strings.Join(parts, "/")
		}
		text := strings.ToLower(r.Method) + "\n" + kind + "\n" + link + "\n" + strings.ToLower(date) + "\n\n"
		r.Header.Set("Authorization", "type%3dmaster%26ver%3d1.0%26sig%3d"+strings.NewReplacer("+", "%2b", "/", "%2f",
			"=", "%3d").Replace(s.sign(text)))
	case Table:
		r.Header.Set("X-Ms-Version", "2019-02-02")
		r.Header.Set("Authorization", "SharedKeyLite "+s.cfg.Account+":"+
			s.sign(date+"\n/"+s.cfg.Account+r.URL.EscapedPath()))
	case Gremlin:
		r.SetBasicAuth(s.cfg.Account, s.cfg.Key)
	}
}

// gremlinData returns the result of a reply of the Gremlin API, or the whole reply if it has none.
func gremlinData(t *testing.T, text string) string {
	var r struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err, text)
	}
	if r.Result == nil {
		return text
	}
	return string(r.Result)
}

// A MongoDB command of the page gets what a driver gets, as Extended JSON, with its charge.
func TestExplorerMongo(t *testing.T) {
	s := pageServer(t, nil)
	b := openPage(t, s, WellKnownKey)
	c, err := s.dialMongo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, command := range []string{
		`{"find":"customers","filter":{"_id":"ada"}}`,
		`{"aggregate":"customers","pipeline":[{"$group":{"_id":null,"n":{"$sum":"$points"}}}],"cursor":{}}`,
		`{"none":1}`,
		`{"find":"customers","filter":{"$none":1}}`,
	} {
		body, err := doc.FromExtJSON(nil, []byte(command[:len(command)-1]+`,"$db":"shop"}`))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.Exchange(body)
		if err != nil {
			t.Fatal(err)
		}
		want := doc.AppendExtJSON(nil, doc.Value(raw), false)
		res := b.send("POST", "api/mongo/shop", command)
		if got := b.text(res); res.StatusCode != 200 || withoutTimes(got) != withoutTimes(string(want)) {
			t.Errorf("%s: %d\n%s\nwant\n%s", command, res.StatusCode, got, want)
		}
		if ok := !strings.Contains(command, "none"); ok && res.Header.Get("X-Ms-Request-Charge") == "" {
			t.Errorf("%s: no charge", command)
		}
	}
	for body, want := range map[string]int{`{"find":`: 400, `{"ping":1,"$db":"admin"}`: 400, `[]`: 400} {
		if res := b.send("POST", "api/mongo/shop", body); res.StatusCode != want {
			t.Errorf("%s: %d", body, res.StatusCode)
		}
	}
}

// withoutTimes cuts the cluster time from a reply: it grows with each command.
func withoutTimes(reply string) string {
	head, _, _ := strings.Cut(reply, `,"$clusterTime"`)
	head, _, _ = strings.Cut(head, `,"operationTime"`)
	return head
}

// Values that JSON.parse would change pass through the page's bridge as they are.
func TestExplorerExact(t *testing.T) {
	s := pageServer(t, nil)
	b := openPage(t, s, WellKnownKey)
	key := []string{"x-ms-documentdb-partitionkey", `["kitchen"]`}
	const docs = "api/nosql/dbs/shop/colls/products/docs"
	item := `{"id":"exact","category":"kitchen","big":9007199254740993,"one":1.0,"small":1e-7,"text":"a\u0000b"}`
	if res := b.send("POST", docs, item, key...); res.StatusCode != 201 {
		t.Fatal(res.StatusCode, b.text(res))
	}
	first := b.text(b.send("GET", docs+"/exact", "", key...))
	if !strings.Contains(first, "9007199254740993") {
		t.Error(first)
	}
	if res := b.send("PUT", docs+"/exact", first, key...); res.StatusCode != 200 {
		t.Fatal(res.StatusCode, b.text(res))
	}
	second := b.text(b.send("GET", docs+"/exact", "", key...))
	cut := func(s string) string { head, _, _ := strings.Cut(s, `,"_etag"`); return head }
	if cut(first) != cut(second) {
		t.Errorf("saved unedited:\n%s\nwas\n%s", second, first)
	}
}

// Ids with characters that paths give a meaning to are reached over the bridge.
func TestExplorerOddNames(t *testing.T) {
	s := pageServer(t, nil)
	b := openPage(t, s, WellKnownKey)
	for _, id := range []string{"a/b", "a?b#c", "100%", "a+b c", "\u00fc\u4e16", "%2F", "..", "a\\b", "(x)"} {
		key := []string{"x-ms-documentdb-partitionkey", `["odd"]`}
		item, _ := json.Marshal(map[string]string{"id": id, "category": "odd"})
		const docs = "api/nosql/dbs/shop/colls/products/docs"
		if res := b.send("POST", docs, string(item), key...); res.StatusCode != 201 {
			t.Errorf("%q: %d %s", id, res.StatusCode, b.text(res))
		}
		link := docs + "/" + url.PathEscape(id)
		if id == ".." {
			link = docs + "/%2E%2E"
		}
		if res := b.send("GET", link, "", key...); res.StatusCode != 200 {
			t.Errorf("%q: %d %s", id, res.StatusCode, b.text(res))
		}
		if res := b.send("DELETE", link, "", key...); res.StatusCode != 204 {
			t.Errorf("%q: %d %s", id, res.StatusCode, b.text(res))
		}
	}
	for _, key := range []string{"it's", "a b", "ü"} {
		pk := url.PathEscape(strings.ReplaceAll(key, "'", "''"))
		link := "api/table/devicelog(PartitionKey='" + pk + "',RowKey='1')"
		if res := b.send("PUT", link, `{"x":1}`); res.StatusCode != 204 {
			t.Errorf("%q: %d %s", key, res.StatusCode, b.text(res))
		}
		if res := b.send("GET", link, "", "Accept", "application/json"); res.StatusCode != 200 {
			t.Errorf("%q: %d %s", key, res.StatusCode, b.text(res))
		}
	}
}

// A second key opens the page for reading. Elsewhere than on a loopback address the page is read-only anyway.
func TestExplorerModes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("reader\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := pageServer(t, func(c *Config) { c.Explorer.KeyFile = file })
	b := openPage(t, s, "reader")
	if res := b.send("GET", "api/nosql/dbs", ""); res.StatusCode != 200 {
		t.Errorf("reads: %d", res.StatusCode)
	}
	for path, body := range map[string]string{"api/nosql/dbs": `{"id":"x"}`, "api/table/Tables": `{"TableName":"x"}`,
		"api/gremlin": `{"gremlin":"g.addV()"}`, "api/mongo/shop": `{"drop":"customers"}`,
		"api/admin/orrery/partitions": `{}`} {
		if res := b.send("POST", path, body); res.StatusCode != 403 || !strings.Contains(b.text(res), "ReadOnly") {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	for _, c := range []struct {
		mode string
		code int // of a write
	}{{"", 201}, {"auto", 201}, {"on", 201}, {"read-only", 403}, {"off", 404}} {
		s := guardedServer(t, func(x *Config) { x.Explorer.Mode = c.mode })
		b := &browser{t: t, base: "http://" + s.Addr(Admin)}
		if c.code == 404 {
			if res := b.send("GET", "index.html", ""); res.StatusCode != 404 {
				t.Errorf("%s: %d", c.mode, res.StatusCode)
			}
			continue
		}
		if code, w := b.logIn(""); code != 200 || w.ReadOnly != (c.code == 403) {
			t.Errorf("%s: log-in %d, %+v", c.mode, code, w)
		}
		if res := b.send("POST", "api/nosql/dbs", `{"id":"x"}`); res.StatusCode != c.code {
			t.Errorf("%s: %d", c.mode, res.StatusCode)
		}
	}
	for _, c := range []struct {
		mode  string
		local bool
		want  explorer.Mode
	}{
		{"", true, explorer.Full}, {"", false, explorer.ReadOnly}, {"auto", true, explorer.Full},
		{"auto", false, explorer.ReadOnly}, {"on", false, explorer.Full}, {"read-only", true, explorer.ReadOnly},
		{"off", true, explorer.Off},
	} {
		if x := (&ExplorerFlags{Mode: c.mode}); x.mode(c.local) != c.want {
			t.Errorf("%+v: %v", c, x.mode(c.local))
		}
	}
	bad := Ephemeral()
	if bad.Explorer.Mode = "maybe"; bad.Validate() == nil {
		t.Error("--explorer maybe")
	}
	bad = Ephemeral()
	bad.Explorer.KeyFile = filepath.Join(t.TempDir(), "none")
	if _, err := Start(bad); err == nil || !strings.Contains(err.Error(), "--explorer-key-file") {
		t.Error(err)
	}
}

// A request that the page gives up ends at the door too.
func TestExplorerCancel(t *testing.T) {
	s := pageServer(t, nil)
	b := openPage(t, s, WellKnownKey)
	ctx, cancel := context.WithCancel(t.Context())
	left := s.seen.apis[Gremlin].left.Load()
	script := `{"gremlin":"g.V().repeat(__.both()).times(40).path().count()"}`
	req, _ := http.NewRequestWithContext(ctx, "POST", b.base+explorer.Prefix+"api/gremlin",
		strings.NewReader(script))
	req.Header.Set("X-Orrery-Token", b.token)
	req.Header.Set("Cookie", b.cookie)
	req.Header.Set("Content-Type", "application/json")
	begun := s.seen.begun(Gremlin)
	done := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		done <- err
	}()
	for s.seen.begun(Gremlin) == begun {
		select {
		case err := <-done:
			t.Fatalf("it has ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Fatal("not cancelled")
	}
	for range 2000 {
		if s.seen.apis[Gremlin].left.Load() > left {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Error("the traversal goes on")
}

// While somebody asks for them, requests of all APIs are recorded with both sides, without credentials.
func TestWatchedRequests(t *testing.T) {
	s := pageServer(t, nil)
	if err := s.WaitReady(t.Context()); err != nil { // the requests of a start are watched too
		t.Fatal(err)
	}
	b := openPage(t, s, WellKnownKey)
	read := func(after int64) (got WatchedRequests) {
		t.Helper()
		res := b.send("GET", fmt.Sprintf("api/admin%s?after=%d", RequestsPath, after), "")
		if err := json.Unmarshal([]byte(b.text(res)), &got); err != nil || res.StatusCode != 200 {
			t.Fatal(res.StatusCode, err)
		}
		return got
	}
	if s.seen.watch.on.Load() {
		t.Error("recording before anybody has asked")
	}
	ctx := t.Context()
	_ = s.nosql(ctx, http.MethodPost, "dbs", "", nil, []byte(`{"id":"before"}`))
	begin := read(0)
	if len(begin.Requests) != 0 {
		t.Errorf("%+v", begin.Requests)
	}
	_ = s.nosql(ctx, http.MethodPost, "dbs", "", nil, []byte(`{"id":"shop"}`)) // 409
	_ = s.table(ctx, http.MethodPost, "/Tables", []byte(`{"TableName":"devicelog"}`))
	_ = s.demoCustomers(ctx) // duplicate ids
	_ = b.send("GET", "api/nosql/dbs", "")
	// A request is recorded when its reply is on its way.
	var got WatchedRequests
	recorded := func(api, status string) bool {
		return slices.ContainsFunc(got.Requests, func(r *WatchedRequest) bool {
			return r.API == api && r.Status == status
		})
	}
	for n := 0; n < 2000; n++ {
		got = read(begin.Last)
		if recorded(NoSQL, "409") && recorded(Table, "409") && recorded(Mongo, "11000") {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	text, _ := json.Marshal(got)
	if bytes.Contains(text, []byte("sig%3d")) || bytes.Contains(text, []byte("SharedKeyLite")) ||
		bytes.Contains(text, []byte(b.token)) {
		t.Errorf("credentials in %s", text)
	}
	find := func(api, status string) *WatchedRequest {
		for _, r := range got.Requests {
			if r.API == api && r.Status == status {
				return r
			}
		}
		t.Errorf("no %s with %s in %s", api, status, text)
		return &WatchedRequest{}
	}
	r := find(NoSQL, "409")
	if r.Operation != "POST" || r.Target != "/dbs" || r.Body != `{"id":"shop"}` || r.Charge == 0 ||
		!strings.Contains(r.Text, "already exists") || first(r.Reply, "x-ms-activity-id") == "" {
		t.Errorf("%+v", r)
	}
	if r := find(Table, "409"); !strings.Contains(r.Text, "TableAlreadyExists") {
		t.Errorf("%+v", r)
	}
	if r := find(Mongo, "11000"); r.Operation != "insert" || r.Target != "shop.customers" {
		t.Errorf("%+v", r)
	}
	if n := len(read(got.Last).Requests); n != 0 {
		t.Errorf("%d more", n)
	}
	if res := b.send("GET", "api/admin"+RequestsPath+"?after=x", ""); res.StatusCode != 400 {
		t.Errorf("%d", res.StatusCode)
	}
	// Recording ends by itself.
	s.seen.watch.mu.Lock()
	s.seen.watch.until = wall.Now().Add(-time.Second)
	s.seen.watch.mu.Unlock()
	_ = s.nosql(ctx, http.MethodPost, "dbs", "", nil, []byte(`{"id":"shop"}`))
	if s.seen.watch.on.Load() || s.seen.watch.list != nil {
		t.Error("recording goes on")
	}
}
