package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const secretKey = "c2VjcmV0IGtleQ=="

// A session of the page that may only read gets nothing with which it could write elsewhere, and one without
// credentials gets no key: neither connection strings nor tokens.
func TestReadersGetNoSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("reader"), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		connect     = "api/admin/orrery/connect"
		permissions = "api/nosql/dbs/shop/users/ann/permissions"
		query       = `{"query":"SELECT * FROM p"}`
	)
	for name, c := range map[string]struct {
		mode        string
		auth        bool
		key         string
		shown, open bool // the key, the permissions
	}{
		"the key":                            {"on", true, secretKey, true, true},
		"the second key":                     {"on", true, "reader", false, false},
		"the key, but the page only reads":   {"read-only", true, secretKey, false, false},
		"nobody is asked":                    {"on", false, "", false, true},
		"nobody is asked, and it only reads": {"read-only", false, "", false, false},
	} {
		s := pageServer(t, func(x *Config) {
			x.Key, x.Auth, x.Explorer.Mode, x.Explorer.KeyFile = secretKey, c.auth, c.mode, file
		})
		for _, x := range [][3]string{{"users", "dbs/shop", `{"id":"ann"}`}, {"permissions", "dbs/shop/users/ann",
			`{"id":"p","permissionMode":"All","resource":"dbs/shop/colls/products"}`}} {
			if err := s.nosql(t.Context(), http.MethodPost, x[0], x[1], nil, []byte(x[2])); err != nil {
				t.Fatal(err)
			}
		}
		b := openPage(t, s, c.key)
		res := b.send("GET", connect, "")
		if text := b.text(res); res.StatusCode != 200 || strings.Contains(text, secretKey) != c.shown ||
			strings.Contains(text, strings.TrimRight(secretKey, "=")) != c.shown {
			t.Errorf("%s: connections: %d %s", name, res.StatusCode, text)
		}
		for _, r := range []*http.Response{b.send("GET", permissions, ""), b.send("GET", permissions+"/p", ""),
			b.send("POST", permissions, query, "x-ms-documentdb-isquery", "true")} {
			text := b.text(r)
			if strings.Contains(text, "type=resource") != c.open || (r.StatusCode == 200) != c.open {
				t.Errorf("%s: %s %s: %d %s", name, r.Request.Method, r.Request.URL, r.StatusCode, text)
			}
		}
		if res := b.send("GET", "api/nosql/dbs/shop/users/ann", ""); res.StatusCode != 200 {
			t.Errorf("%s: a user: %d", name, res.StatusCode)
		}
	}
}

// The view of requests shows no token of a permission.
func TestWatchedTokens(t *testing.T) {
	s := pageServer(t, nil)
	b := openPage(t, s, WellKnownKey)
	b.send("GET", "api/admin"+RequestsPath, "")
	for _, x := range [][3]string{{"users", "dbs/shop", `{"id":"ann"}`}, {"permissions", "dbs/shop/users/ann",
		`{"id":"p","permissionMode":"All","resource":"dbs/shop/colls/products"}`}} {
		if err := s.nosql(t.Context(), http.MethodPost, x[0], x[1], nil, []byte(x[2])); err != nil {
			t.Fatal(err)
		}
	}
	text := ""
	for n := 0; n < 2000 && !strings.Contains(text, "/dbs/shop/users/ann/permissions"); n++ {
		text = b.text(b.send("GET", "api/admin"+RequestsPath, "")) // recorded when the reply is on its way
	}
	if !strings.Contains(text, "/dbs/shop/users/ann/permissions") || strings.Contains(text, "type=resource") {
		t.Error(text)
	}
}

// A password that the MongoDB API has beside the well-known key is shown to nobody: neither by the banner, nor to a
// client of the admin port, whatever key it has sent. The file that its owner reads has it.
func TestAMongoPasswordIsNotPrinted(t *testing.T) {
	const password = "hunter2"
	s := (&fakes{}).start(t, func(c *Config) { c.MongoUser, c.MongoPassword = "root", password })
	var banner strings.Builder
	if err := s.Banner(&banner); err != nil || strings.Contains(banner.String(), password) {
		t.Error(err, banner.String())
	}
	for _, key := range []string{"", WellKnownKey} {
		req, _ := http.NewRequest(http.MethodGet, "http://"+s.Addr(Admin)+"/orrery/connect", nil)
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text := (&browser{t: t}).text(res)
		if err := res.Body.Close(); err != nil || res.StatusCode != 200 || strings.Contains(text, password) ||
			!strings.Contains(text, "mongodb://root:"+hidden+"@") || !strings.Contains(text, WellKnownKey) {
			t.Errorf("with the key %q: %d %s", key, res.StatusCode, text)
		}
	}
	if c := s.Connections(true); !strings.Contains(c.Mongo.ConnectionString, ":"+password+"@") {
		t.Error(c.Mongo.ConnectionString)
	}
}
