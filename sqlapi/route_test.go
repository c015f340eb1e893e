package sqlapi

import (
	"net/url"
	"strings"
	"testing"
)

func parse(t testing.TB, s string) path {
	t.Helper()
	u, err := url.ParseRequestURI(s)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := parsePath(u)
	if !ok {
		t.Fatalf("path %q refused", s)
	}
	return p
}

func TestPathSegments(t *testing.T) {
	for in, want := range map[string]string{
		"/":                                "",
		"/dbs":                             "dbs",
		"/dbs/":                            "dbs",
		"//dbs//d/":                        "dbs|d",
		"/dbs/d/colls/c/docs/a%2Fb":        "dbs|d|colls|c|docs|a/b",
		"/dbs/d/colls/c/docs/a%2520":       "dbs|d|colls|c|docs|a%20",
		"/dbs/d/colls/c/docs/Test%20":      "dbs|d|colls|c|docs|Test ",
		"/dbs/d/colls/c/docs/a%3Fb%23c%5C": "dbs|d|colls|c|docs|a?b#c\\",
		"/dbs/d/colls/c/docs/%E9%B1%80":    "dbs|d|colls|c|docs|\u9c40",
		"/dbs/d/colls/c/docs/%0D%0A%09":    "dbs|d|colls|c|docs|\r\n\t",
	} {
		p := parse(t, in)
		if got := strings.Join(p.seg[:p.n], "|"); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if _, ok := parsePath(&url.URL{Path: "/dbs/a/colls/b/docs/c/attachments/d/e"}); ok {
		t.Error("nine segments accepted")
	}
}

func TestSignedTypeAndLink(t *testing.T) {
	for in, want := range map[string][2]string{
		"/":                          {"", ""},
		"/dbs":                       {"dbs", ""},
		"/dbs/d":                     {"dbs", "dbs/d"},
		"/dbs/d/colls":               {"colls", "dbs/d"},
		"/dbs/d/colls/c/docs":        {"docs", "dbs/d/colls/c"},
		"/dbs/d/colls/c/docs/a%20b":  {"docs", "dbs/d/colls/c/docs/a b"},
		"/dbs/D/colls/C/pkranges/":   {"pkranges", "dbs/D/colls/C"},
		"/dbs/d/colls/c/sprocs/s":    {"sprocs", "dbs/d/colls/c/sprocs/s"},
		"/offers/uT2L/":              {"offers", "offers/uT2L"},
		"/dbs/d/users/u/permissions": {"permissions", "dbs/d/users/u"},
	} {
		p := parse(t, in)
		if typ, link := p.resourceType(), string(p.link(nil)); typ != want[0] || link != want[1] {
			t.Errorf("%s: signed as %q %q, want %q", in, typ, link, want)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "/dbs/d", "//dbs/%2f/colls/%", "/offers/x/", "/dbs/d/colls/c/docs/%zz", "/a/b/c/d/e/f/g/h/i"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.ParseRequestURI(s)
		if err != nil {
			return
		}
		p, ok := parsePath(u)
		if !ok {
			return
		}
		for _, seg := range p.seg[:p.n] {
			if seg == "" {
				t.Fatalf("empty segment in %q", s)
			}
		}
		p.key()
		p.link(nil)
	})
}
