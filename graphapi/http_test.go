package graphapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestHTTP(t *testing.T) {
	s := newServer(t, true)
	type h = map[string]string
	user, graph := h{"user": "localhost"}, h{"user": "/dbs/db/colls/people"}
	with := func(m h, kv ...string) h {
		c := h{}
		for k, v := range m {
			c[k] = v
		}
		for i := 0; i < len(kv); i += 2 {
			c[kv[i]] = kv[i+1]
		}
		return c
	}
	for _, x := range []struct {
		name, method, path, body string
		header                   h
		code                     int
		part                     string
	}{
		{"script", "POST", "/gremlin", `{"gremlin":"items 2"}`, user, 200,
			`{"@type":"g:List","@value":[{"@type":"g:Int32","@value":0},{"@type":"g:Int32","@value":1}]}`},
		{"binding and alias", "POST", "/", `{"gremlin":"echo","bindings":{"x":1},"aliases":{"g":"gmodern"}}`, user, 200,
			`"x",{"@type":"g:Int32","@value":1}`},
		{"service", "POST", "/", `{"gremlin":"vertex"}`, graph, 200, `"type":"vertex"`},
		{"GET", "GET", "/gremlin?gremlin=echo&bindings.x=1", "", user, 200, `"x","1"`},
		{"untyped", "POST", "/", `{"gremlin":"items 1"}`,
			with(user, "Accept", "application/vnd.gremlin-v3.0+json;types=false"), 200, `"data":[0]`},
		{"second choice", "POST", "/", `{"gremlin":"items 1"}`, with(user, "Accept", "text/html, */*;q=0.1"), 200,
			`g:Int32`},
		{"request id", "POST", "/", `{"gremlin":"items 1","requestId":"` + id1 + `"}`, user, 200, id1},
		{"nothing", "POST", "/", `{"gremlin":"items 0"}`, user, 200, `"@value":[]`},
		{"whole message", "POST", "/", `{"requestId":"` + id1 + `","op":"eval","args":{"gremlin":"bulk"}}`,
			with(user, "Content-Type", v3Mime), 200, `["x","x","x"]`},
		{"binary answer", "POST", "/", `{"gremlin":"items 1"}`, with(user, "Accept", defaultMime), 200, "\x81"},
		{"unknown Accept", "POST", "/", `{"gremlin":"items 1"}`, with(user, "Accept", "text/html"), 400,
			"no serializer"},
		{"no script", "POST", "/", `{}`, user, 400, "gremlin key"},
		{"not JSON", "POST", "/", `gremlin`, user, 400, "GraphSON"},
		{"bad id", "POST", "/", `{"gremlin":"items 1","requestId":"x"}`, user, 400, "not a UUID"},
		{"unknown alias", "POST", "/", `{"gremlin":"items 1","aliases":{"g":"h"}}`, user, 400, "Could not alias"},
		{"script fails", "POST", "/", `{"gremlin":"nonsense"}`, user, 500, "Unable to resolve symbol 'nonsense'"},
		{"panic", "POST", "/", `{"gremlin":"panic"}`, user, 500, "internal error"},
		{"no login", "POST", "/", `{"gremlin":"items 1"}`, nil, 401, "needed"},
		{"wrong user", "POST", "/", `{"gremlin":"items 1"}`, h{"user": "x"}, 401, "Invalid credentials"},
		{"unknown graph", "POST", "/", `{"gremlin":"items 1"}`, h{"user": "/dbs/db/colls/none"}, 500,
			"Owner resource does not exist"},
		{"too long", "POST", "/", strings.Repeat(" ", maxFrame+1), user, 413, "bytes"},
	} {
		r, _ := http.NewRequest(x.method, s.http.URL+x.path, strings.NewReader(x.body))
		for k, v := range x.header {
			if k == "user" {
				r.SetBasicAuth(v, testKey)
			} else {
				r.Header.Set(k, v)
			}
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != x.code || !strings.Contains(string(b), x.part) {
			t.Errorf("%s: %d %.300s, want %d with %s", x.name, res.StatusCode, b, x.code, x.part)
		}
	}
}

// Without logins, a page of another site must not be able to run scripts through the user's browser.
func TestHTTPForeignSites(t *testing.T) {
	s := newServer(t, false)
	for _, x := range []struct {
		name, value string
		code        int
	}{{"X", "", 200}, {"Origin", s.http.URL, 200}, {"Origin", "https://evil.example", 403},
		{"Sec-Fetch-Site", "cross-site", 403}, {"Sec-Fetch-Site", "same-origin", 200}} {
		r, _ := http.NewRequest("GET", s.http.URL+"/gremlin?gremlin=name", nil)
		r.Header.Set(x.name, x.value)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != x.code {
			t.Errorf("%s %s: %d, want %d", x.name, x.value, res.StatusCode, x.code)
		}
	}
}
