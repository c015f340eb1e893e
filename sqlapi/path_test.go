package sqlapi

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/internal/rest"
)

func parse(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.ParseRequestURI(s)
	if err != nil {
		t.Fatal(err)
	}
	return tidy(&http.Request{URL: u}).URL
}

// The router's parameters are the segments of the path, each decoded separately.
func TestPathSegments(t *testing.T) {
	a := newAPI(t)
	for in, want := range map[string]string{
		"/":                                     "",
		"/dbs":                                  "dbs",
		"/dbs/":                                 "dbs",
		"//dbs//d/":                             "dbs|d",
		"/dbs/d/colls/c/docs/a%2Fb":             "dbs|d|colls|c|docs|a/b",
		"/dbs/d/colls/c/docs/a%2520":            "dbs|d|colls|c|docs|a%20",
		"/dbs/d/colls/c/docs/Test%20":           "dbs|d|colls|c|docs|Test ",
		"/dbs/d/colls/c/docs/a+b%2Fc+d":         "dbs|d|colls|c|docs|a+b/c+d",
		"/dbs/d/colls/c/docs/a+b":               "dbs|d|colls|c|docs|a+b",
		"/dbs/d/colls/c/docs/a%2Bb":             "dbs|d|colls|c|docs|a+b",
		"/dbs/d/colls/c/docs/a%3Fb%23c%5C":      "dbs|d|colls|c|docs|a?b#c\\",
		"/dbs/d/colls/c/docs/%E9%B1%80":         "dbs|d|colls|c|docs|\u9c40",
		"/dbs/d/colls/c/docs/%0D%0A%09":         "dbs|d|colls|c|docs|\r\n\t",
		"/dbs/d/colls/c/docs/..":                "dbs|d|colls|c|docs|..",
		"/dbs/d/colls/c/docs/%2E%2e":            "dbs|d|colls|c|docs|..",
		"/dbs/d/colls/c/docs/.":                 "dbs|d|colls|c|docs|.",
		"/dbs/d/colls/c/docs/:id":               "dbs|d|colls|c|docs|:id",
		"/dbs/d/colls/c/docs/*":                 "dbs|d|colls|c|docs|*",
		"/dbs/d/colls/c/docs/%2F":               "dbs|d|colls|c|docs|/",
		"/dbs/d/colls/c/docs/%2F//":             "dbs|d|colls|c|docs|/",
		"/dbs/dbs/colls/colls/docs/docs":        "dbs|dbs|colls|colls|docs|docs",
		"/dbs/users/colls/offers/docs/a":        "dbs|users|colls|offers|docs|a",
		"/dbs/d/colls/c/docs/a/attachments/b":   "dbs|d|colls|c|docs|a|attachments|b",
		"/dbs/d/users/u/permissions/%E2%82%AC":  "dbs|d|users|u|permissions|\u20ac",
		"/dbs/4rUTAA==/colls/4rUTAIcG2aE=/docs": "dbs|4rUTAA==|colls|4rUTAIcG2aE=|docs",
	} {
		if got := strings.Join(routed(t, a, in), "|"); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
		if got, ok := segments(parse(t, in)); !ok || strings.Join(got, "|") != want {
			t.Errorf("%s: segments %q", in, got)
		}
	}
	for _, in := range []string{"/dbs/a/colls/b/docs/c/attachments/d/e", "/nothing", "/dbs/d/nothing/x",
		"/dbs/d/colls/c/doc", "/dbs/d/colls/c/docss"} {
		if got := routed(t, a, in); got != nil {
			t.Errorf("%s is routed: %q", in, got)
		}
	}
}

// routed returns the segments of a path as the router and Param return them; nil if there is no route.
func routed(t testing.TB, a *api, target string) (segs []string) {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil
	}
	router := rest.NewRouter()
	seen := map[string]bool{}
	for _, l := range a.srv.lines {
		if seen[l.path] {
			continue
		}
		seen[l.path] = true
		router.GET(l.path, func(g *gin.Context) {
			c := &call{s: a.srv}
			c.Begin(a.srv.door, g)
			segs = []string{}
			for s := range strings.SplitSeq(strings.Trim(l.path, "/"), "/") {
				if name, is := strings.CutPrefix(s, ":"); is {
					s = c.Param(name)
				}
				if s != "" {
					segs = append(segs, s)
				}
			}
		})
	}
	router.ServeHTTP(httptest.NewRecorder(), tidy(&http.Request{Method: "GET", URL: u, Header: http.Header{}}))
	return segs
}

func TestSignedTypeAndLink(t *testing.T) {
	for in, want := range map[string][2]string{
		"/":                           {"", ""},
		"/dbs":                        {"dbs", ""},
		"/dbs/d":                      {"dbs", "dbs/d"},
		"/dbs/d/colls":                {"colls", "dbs/d"},
		"/dbs/d/colls/c/docs":         {"docs", "dbs/d/colls/c"},
		"/dbs/d/colls/c/docs/a%20b":   {"docs", "dbs/d/colls/c/docs/a b"},
		"/dbs/d/colls/c/docs/a%2Fb":   {"docs", "dbs/d/colls/c/docs/a/b"},
		"/dbs/D/colls/C/pkranges/":    {"pkranges", "dbs/D/colls/C"},
		"//dbs//D/colls/C//pkranges/": {"pkranges", "dbs/D/colls/C"},
		"/dbs/d/colls/c/sprocs/s":     {"sprocs", "dbs/d/colls/c/sprocs/s"},
		"/offers/uT2L/":               {"offers", "offers/uT2L"},
		"/dbs/d/users/u/permissions":  {"permissions", "dbs/d/users/u"},
	} {
		if got := signedOf(parse(t, in)); got != (signed{want[0], want[1]}) {
			t.Errorf("%s: signed as %q, want %q", in, got, want)
		}
	}
}

// The router and the signature parse a path in the same way, so the served resource is the signed one.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "/dbs/d", "//dbs/%2f/colls/%", "/offers/x/", "/dbs/d/colls/c/docs/%zz",
		"/a/b/c/d/e/f/g/h/i", "/dbs/d/colls/c/docs/%2F/", "/dbs/a+b/colls/%2B"} {
		f.Add(s)
	}
	a := newAPI(f)
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.ParseRequestURI(s)
		if err != nil || !strings.HasPrefix(s, "/") {
			return
		}
		u = tidy(&http.Request{URL: u}).URL
		segs, ok := segments(u)
		if !ok {
			return
		}
		by := routed(t, a, s)
		if by == nil {
			return
		}
		if strings.Join(by, "\x00") != strings.Join(segs, "\x00") {
			t.Fatalf("%q: routed as %q, cut as %q", s, by, segs)
		}
		want := signed{}
		if n := len(segs); n%2 == 1 {
			want = signed{segs[n-1], strings.Join(segs[:n-1], "/")}
		} else if n > 0 {
			want = signed{segs[n-2], strings.Join(segs, "/")}
		}
		if got := signedOf(u); got != want {
			t.Fatalf("%q: signed as %q, want %q", s, got, want)
		}
	})
}
