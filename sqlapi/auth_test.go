package sqlapi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
)

const testKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

var testNow = time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)

// sign returns the authorization value of a request, made like by the SDKs.
func sign(t testing.TB, key, method, typ, link, date string) string {
	t.Helper()
	k, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	m := hmac.New(sha256.New, k)
	m.Write([]byte(strings.ToLower(method) + "\n" + strings.ToLower(typ) + "\n" + link + "\n" +
		strings.ToLower(date) + "\n\n"))
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(m.Sum(nil)))
}

func authCall(t testing.TB, method, target, auth, date string) *call {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	if auth != "" {
		r.Header.Set("authorization", auth)
	}
	if date != "" {
		r.Header.Set("x-ms-date", date)
	}
	return authCallOf(tidy(r))
}

// authCallOf returns the parts of a call that check needs.
func authCallOf(r *http.Request) *call {
	c := &call{}
	c.Request, c.In = r, r.Header
	return c
}

func testAuthority(t testing.TB) *authority {
	t.Helper()
	a, err := newAuthority(testKey, clock.Fake(testNow), func(_ context.Context, segs []string) (bool, error) {
		return segs[0] == "offers" || len(segs) > 1 && segs[1] == "ABCDEA==", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Every form of path that SDKs sign is accepted with the type and link that they sign.
func TestMasterKeyForms(t *testing.T) {
	a, date := testAuthority(t), testNow.Format(http.TimeFormat)
	for _, x := range []struct{ method, target, typ, link string }{
		{"GET", "/", "", ""},
		{"GET", "/dbs", "dbs", ""},
		{"POST", "/dbs/", "dbs", ""},
		{"GET", "/dbs/Db", "dbs", "dbs/Db"},
		{"POST", "/dbs/Db/colls/C/docs", "docs", "dbs/Db/colls/C"},
		{"GET", "/dbs/Db/colls/C/docs/a%20b", "docs", "dbs/Db/colls/C/docs/a b"},
		{"GET", "/dbs/Db/colls/C/docs/a%20b", "docs", "dbs/Db/colls/C/docs/a%20b"},
		{"GET", "/dbs/Db/colls/C/docs/a%2Fb", "docs", "dbs/Db/colls/C/docs/a/b"},
		{"DELETE", "/dbs/Db/colls/C/docs/%E9%B1%80", "docs", "dbs/Db/colls/C/docs/\u9c40"},
		{"GET", "/dbs/ABCDEA==/colls/ABCDEIAAAAA=/pkranges", "pkranges", "dbs/abcdea==/colls/abcdeiaaaaa="},
		{"GET", "/dbs/ABCDEA==/colls/ABCDEIAAAAA=/pkranges", "pkranges", "abcdeiaaaaa="},
		{"GET", "/offers/uT2L/", "offers", "ut2l"},
		{"POST", "/offers", "offers", ""},
		{"POST", "/dbs/d/colls/c/operations/partitionkeydelete", "colls", "dbs/d/colls/c"},
		{"POST", "/dbs/d/colls/c/operations/partitionkeydelete", "partitionkey", "dbs/d/colls/c"},
	} {
		auth := sign(t, testKey, x.method, x.typ, x.link, date)
		for _, form := range []string{auth, strings.ToLower(auth[:24]) + auth[24:], mustUnescape(t, auth)} {
			if err := a.check(authCall(t, x.method, x.target, form, date)); err != nil {
				t.Errorf("%s %s signed as %q %q: %v", x.method, x.target, x.typ, x.link, err)
			}
		}
	}
}

func mustUnescape(t testing.TB, s string) string {
	t.Helper()
	u, err := url.QueryUnescape(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAuthRefused(t *testing.T) {
	a, date := testAuthority(t), testNow.Format(http.TimeFormat)
	good := sign(t, testKey, "GET", "dbs", "dbs/d", date)
	late := testNow.Add(-16 * time.Minute).Format(http.TimeFormat)
	early := testNow.Add(16 * time.Minute).Format(http.TimeFormat)
	other := base64.StdEncoding.EncodeToString([]byte("another key"))
	for name, x := range map[string]struct {
		auth, date string
		code       status.Code
	}{
		"no header":          {"", date, status.Unauthorized},
		"not a token":        {"Bearer x", date, status.Unauthorized},
		"bad escape":         {"type%3dmaster%", date, status.Unauthorized},
		"short signature":    {url.QueryEscape("type=master&ver=1.0&sig=abc"), date, status.Unauthorized},
		"huge":               {strings.Repeat("a", 100<<10), date, status.Unauthorized},
		"another key":        {sign(t, other, "GET", "dbs", "dbs/d", date), date, status.Unauthorized},
		"another verb":       {sign(t, testKey, "PUT", "dbs", "dbs/d", date), date, status.Unauthorized},
		"another link":       {sign(t, testKey, "GET", "dbs", "dbs/e", date), date, status.Unauthorized},
		"last id alone":      {sign(t, testKey, "GET", "dbs", "d", date), date, status.Unauthorized},
		"another date":       {good, testNow.Add(time.Second).Format(http.TimeFormat), status.Unauthorized},
		"no date":            {good, "", status.Unauthorized},
		"malformed date":     {good, "yesterday", status.Unauthorized},
		"too late":           {sign(t, testKey, "GET", "dbs", "dbs/d", late), late, status.Unauthorized},
		"too early":          {sign(t, testKey, "GET", "dbs", "dbs/d", early), early, status.Unauthorized},
		"bad resource token": {url.QueryEscape("type=resource&ver=1&sig=abc;def;"), date, status.Unauthorized},
		"foreign AAD":        {url.QueryEscape("type=aad&ver=1.0&sig=a.b.c"), date, status.Unauthorized},
		"AAD without dots":   {url.QueryEscape("type=aad&ver=1.0&sig=abc"), date, status.Unauthorized},
	} {
		err := a.check(authCall(t, "GET", "/dbs/d", x.auth, x.date))
		if status.CodeOf(err) != x.code || err == nil {
			t.Errorf("%s: %v, want code %d", name, err, x.code)
		}
	}
}

func TestEmulatorAAD(t *testing.T) {
	jwt := "eyJ0eXAiOiJKV1QifQ.eyJhdWQiOiJsb2NhbGhvc3QifQ." + base64.RawURLEncoding.EncodeToString([]byte(testKey))
	if err := testAuthority(t).check(authCall(t, "GET", "/dbs", url.QueryEscape("type=aad&ver=1.0&sig="+jwt),
		"")); err != nil {
		t.Fatal(err)
	}
}

func TestDateForms(t *testing.T) {
	a := testAuthority(t)
	for _, d := range []string{testNow.Format(http.TimeFormat), strings.ToLower(testNow.Format(http.TimeFormat)),
		strings.Replace(testNow.Format(http.TimeFormat), "GMT", "UTC", 1)} {
		if err := a.check(authCall(t, "GET", "/dbs", sign(t, testKey, "GET", "dbs", "", d), d)); err != nil {
			t.Errorf("%q: %v", d, err)
		}
	}
}

func FuzzAuthorization(f *testing.F) {
	f.Add("type%3Dmaster%26ver%3D1.0%26sig%3D", "Sat, 21 Nov 2026 11:00:00 GMT")
	f.Add("type=aad&ver=1.0&sig=..", "")
	f.Add("%", "%")
	a := testAuthority(f)
	f.Fuzz(func(t *testing.T, auth, date string) {
		r := httptest.NewRequest("GET", "/dbs/d", nil)
		r.Header["Authorization"], r.Header["X-Ms-Date"] = []string{auth}, []string{date}
		if err := a.check(authCallOf(r)); err == nil {
			t.Fatalf("%q %q accepted", auth, date)
		}
	})
}

func BenchmarkAuth(b *testing.B) {
	a, date := testAuthority(b), testNow.Format(http.TimeFormat)
	c := authCall(b, "GET", "/dbs/db/colls/items/docs/doc-1",
		sign(b, testKey, "GET", "docs", "dbs/db/colls/items/docs/doc-1", date), date)
	b.ReportAllocs()
	for b.Loop() {
		if err := a.check(c); err != nil {
			b.Fatal(err)
		}
	}
}

// A client in direct mode, .NET's default, is told what to change, and not that its key is wrong.
func TestDirectMode(t *testing.T) {
	a := newAPI(t)
	date := testNow.Format(http.TimeFormat)
	for _, path := range []string{"//addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd", "/addresses"} {
		a.do("GET", path, "", "authorization: "+sign(t, testKey, "GET", "dbs", "", date), "x-ms-date: "+date).is(401).
			has("ConnectionMode.Gateway")
		a.do("GET", path, "").is(400).has("ConnectionMode.Gateway")
	}
}
