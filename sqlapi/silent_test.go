package sqlapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// While a shared store doesn't answer, a request ends with its deadline, and its status is one after which SDKs repeat
// it. That is so too for requests that are signed by resource ids, whose signature is right only if the names are read.
// A wrong signature is still one.
func TestRequestsEndWhileTheStoreIsSilent(t *testing.T) {
	store := &kvtest.Mute{Engine: kvtest.NewShared(memkv.New(), 1).Engine()}
	clk := clock.Fake(testNow)
	e, err := core.Open(t.Context(), store, core.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Wall: clk})
	if err != nil {
		t.Fatal(err)
	}
	a := &api{t, s}
	rid := func(method, target, body string) string {
		t.Helper()
		var made struct {
			RID string `json:"_rid"`
		}
		if err := json.Unmarshal([]byte(a.do(method, target, body).is(201).body), &made); err != nil {
			t.Fatal(err)
		}
		return made.RID
	}
	const coll = `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`
	db := rid("POST", "/dbs", `{"id":"db"}`)
	ct := rid("POST", "/dbs/db/colls", coll)
	user := rid("POST", "/dbs/db/users", `{"id":"u"}`)
	s.opt.Strict = true
	const query = "content-type: application/query+json"
	byRID := func(link string) string {
		typ := strings.Split(link, "/")[len(strings.Split(link, "/"))-2]
		return "authorization: " + sign(t, testKey, "GET", typ, strings.ToLower(link), testNow.Format(http.TimeFormat))
	}
	date := "x-ms-date: " + testNow.Format(http.TimeFormat)
	gone := "dbs/" + db + "/colls/" + strings.Repeat("A", 11) + "="
	store.Now.Store(true)
	for _, x := range []struct {
		method, target, body string
		headers              []string
		want                 int // 0: 408 or 503
	}{
		{"GET", "/dbs", "", nil, 0},
		{"GET", "/dbs/db", "", nil, 0},
		{"POST", "/dbs", `{"id":"new"}`, nil, 0},
		{"GET", "/dbs/db/colls", "", nil, 0},
		{"POST", "/dbs/db/colls", `{"query":"SELECT * FROM c WHERE c.id = 'c'"}`, []string{query}, 0},
		{"GET", "/dbs/db/colls/c", "", nil, 0},
		{"PUT", "/dbs/db/colls/c", coll, nil, 0},
		{"GET", "/dbs/db/colls/c/docs", "", nil, 0},
		{"GET", "/dbs/db/colls/c/docs", "", []string{"a-im: Incremental feed", "if-none-match: *"}, 0},
		{"GET", "/dbs/db/colls/c/sprocs", "", nil, 0},
		{"GET", "/dbs/db/users", "", nil, 0},
		{"GET", "/dbs/db/users/u", "", nil, 0},
		{"GET", "/offers", "", nil, 0},
		{"POST", "/offers", `{"query":"SELECT * FROM o WHERE o.offerResourceId = '` + ct + `'"}`, []string{query}, 0},
		{"GET", "/dbs/" + db, "", []string{byRID("dbs/" + db), date}, 0},
		{"GET", "/dbs/" + db + "/colls/" + ct, "", []string{byRID("dbs/" + db + "/colls/" + ct), date}, 0},
		{"GET", "/dbs/" + db + "/users/" + user, "", []string{byRID("dbs/" + db + "/users/" + user), date}, 0},
		{"GET", "/" + gone, "", []string{byRID(gone), date}, 0},
		{"GET", "/dbs/" + db, "", []string{byRID("dbs/" + ct), date}, 401},
	} {
		r := a.request(x.method, x.target, x.body, x.headers...)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		w, begun := httptest.NewRecorder(), time.Now()
		s.ServeHTTP(w, r.WithContext(ctx))
		cancel()
		took := time.Since(begun)
		right := w.Code == x.want
		if x.want == 0 {
			right = w.Code == http.StatusRequestTimeout || w.Code == http.StatusServiceUnavailable
		}
		if !right || took > 2*time.Second {
			t.Errorf("%s %s: %d after %v: %s", x.method, x.target, w.Code, took, clip(w.Body.String()))
		}
	}
	store.Now.Store(false)
	a.do("GET", "/dbs/"+db+"/colls/"+ct, "", byRID("dbs/"+db+"/colls/"+ct), date).is(200)
	a.do("GET", "/"+gone, "", byRID(gone), date).is(404)
}
