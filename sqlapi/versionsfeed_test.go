package sqlapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

const fullFidelity = "A-IM: Full-Fidelity Feed"

// withLog creates dbs/db/colls/log with a policy for its change feed.
func withLog(t *testing.T, more string) (a *api, docs string) {
	t.Helper()
	a = newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"log","partitionKey":{"paths":["/pk"],"version":2},`+
		`"changeFeedPolicy":{"retentionDuration":10}`+more+`}`).is(201).has(
		`"changeFeedPolicy":{"retentionDuration":10}`)
	return a, "/dbs/db/colls/log/docs"
}

// changes returns what the feed of all versions has after an etag, and the next etag.
func (a *api) changes(docs, etag string, headers ...string) (out []map[string]any, next string) {
	a.t.Helper()
	for range 100 {
		r := a.do("GET", docs, "", append([]string{fullFidelity, "If-None-Match: " + etag,
			"x-ms-cosmos-changefeed-wire-format-version: 2021-09-15", "x-ms-max-item-count: 2"}, headers...)...)
		if etag = r.h.Get("etag"); r.code == 304 {
			return out, etag
		}
		for _, d := range r.is(200).json()["Documents"].([]any) {
			out = append(out, d.(map[string]any))
		}
	}
	a.t.Fatal("the feed does not end")
	return nil, ""
}

func TestVersionsFeed(t *testing.T) {
	a, docs := withLog(t, `,"defaultTtl":-1`)
	_, now := a.changes(docs, "*")
	a.do("POST", docs, `{"id":"x","pk":"p","n":1}`, key("p")).is(201)
	a.do("PUT", docs+"/x", `{"id":"x","pk":"p","n":2}`, key("p")).is(200)
	second := a.do("GET", docs+"/x", "", key("p")).is(200).json()
	a.do("DELETE", docs+"/x", "", key("p")).is(204)
	a.do("POST", docs, `{"id":"y","pk":"p","n":3,"ttl":5}`, key("p")).is(201)
	a.srv.core.Clock().Advance(6 * time.Second)
	a.srv.core.Reap(t.Context())
	got, end := a.changes(docs, now)
	type want struct {
		op, members   string
		current, prev any // n
	}
	wants := []want{
		{"create", "crts lsn operationType", 1.0, nil},
		{"replace", "crts lsn operationType previousImageLSN", 2.0, 1.0},
		{"delete", "crts id lsn operationType partitionKey previousImageLSN timeToLiveExpired", nil, 2.0},
		{"create", "crts lsn operationType", 3.0, nil},
		{"delete", "crts id lsn operationType partitionKey previousImageLSN timeToLiveExpired", nil, 3.0},
	}
	if len(got) != len(wants) {
		t.Fatalf("%d changes: %v", len(got), got)
	}
	lsn := 0.0
	for i, w := range wants {
		meta, current := got[i]["metadata"].(map[string]any), got[i]["current"].(map[string]any)
		previous, _ := got[i]["previous"].(map[string]any)
		if meta["operationType"] != w.op || current["n"] != w.current || previous["n"] != w.prev ||
			strings.Join(slices.Sorted(maps.Keys(meta)), " ") != w.members || (previous == nil) != (w.prev == nil) {
			t.Errorf("change %d is %v", i, got[i])
		}
		if w.op == "delete" && (len(current) != 0 || fmt.Sprint(meta["partitionKey"]) != "map[pk:p]" ||
			meta["id"] != previous["id"] || meta["timeToLiveExpired"] != (i == 4)) {
			t.Errorf("delete %v", got[i])
		}
		if at := meta["lsn"].(float64); at <= lsn || w.prev != nil && meta["previousImageLSN"] != lsn {
			t.Errorf("change %d: %v after LSN %v", i, meta, lsn)
		} else {
			lsn = at
		}
	}
	// versions are items as reads show them
	if x, _ := json.Marshal(got[2]["previous"]); string(x) != text(second) {
		t.Errorf("%s, read as %s", x, text(second))
	}
	if again, _ := a.changes(docs, end); len(again) != 0 {
		t.Errorf("%v after the end", again)
	}
	if other, _ := a.changes(docs, now, key("q")); len(other) != 0 {
		t.Errorf("%v of another key", other)
	}
}

func text(m map[string]any) string {
	b, _ := json.Marshal(m)
	return string(b)
}

func TestVersionsFeedStarts(t *testing.T) {
	a, docs := withLog(t, "")
	_, now := a.changes(docs, "*")
	a.do("POST", docs, `{"id":"x","pk":"p"}`, key("p")).is(201)
	const outside = "You must read the change feed from within the retention period."
	a.do("GET", docs, "", fullFidelity).is(400).has(outside)
	a.do("GET", docs, "", fullFidelity, "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT").is(400).has(outside)
	a.do("GET", docs, "", fullFidelity, `If-None-Match: "foreign"`).is(400)
	a.do("GET", docs, "", fullFidelity, "If-None-Match: "+now).is(200).has(`"create"`)
	a.srv.core.Clock().Advance(12 * time.Minute) // a request is valid for 15
	a.srv.core.Reap(t.Context())
	a.do("GET", docs, "", fullFidelity, "If-None-Match: "+now).is(400).has(outside)
	a.do("GET", docs, "", incremental, "If-None-Match: "+now).is(200).has(`"id":"x"`)

	// without the policy there is no log, and a new policy doesn't bring it back
	coll := strings.TrimSuffix(docs, "/docs")
	_, now = a.changes(docs, "*")
	a.do("PUT", coll, `{"id":"log","partitionKey":{"paths":["/pk"],"version":2}}`).is(200)
	a.do("GET", docs, "", fullFidelity, "If-None-Match: "+now).is(400).has("retentionDuration")
	a.do("POST", docs, `{"id":"y","pk":"p"}`, key("p")).is(201)
	a.do("PUT", coll, `{"id":"log","partitionKey":{"paths":["/pk"],"version":2},`+
		`"changeFeedPolicy":{"retentionDuration":5}}`).is(200)
	a.do("GET", docs, "", fullFidelity, "If-None-Match: "+now).is(400).has(outside)
	for _, bad := range []string{`{"retentionDuration":-1}`, `{"retentionDuration":43201}`, `{"retentionDuration":"5"}`,
		`[]`, `5`} {
		a.do("PUT", coll, `{"id":"log","partitionKey":{"paths":["/pk"],"version":2},`+
			`"changeFeedPolicy":`+bad+`}`).is(400)
	}
}
