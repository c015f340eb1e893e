package sqlapi

import (
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A read of an item asks the store once: not for the container's name, and not for the LSN of a session token either.
// It is right nevertheless when another server has changed what the name means.
func TestReadsOfItemsOfASharedStore(t *testing.T) {
	store, clk := kvtest.NewShared(memkv.New(), 1), clock.Fake(testNow)
	eng := &kvtest.Counting{Process: store.Engine()}
	e, err := core.Open(t.Context(), eng, core.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Wall: clk})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Announce(core.Announcement{Name: "a"}); err != nil { // it trusts its catalog from now on
		t.Fatal(err)
	}
	a, b := &api{t, s}, processOf(t, store, clk)
	const docs, item, pk = "/dbs/db/colls/c/docs", "/dbs/db/colls/c/docs/i", `x-ms-documentdb-partitionkey: ["p"]`
	other := func(method, path, body string, code int, headers ...string) *reply {
		t.Helper()
		return b.do(method, path, body, headers...).is(code)
	}
	other("POST", "/dbs", `{"id":"db"}`, 201)
	other("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"]}}`, 201)
	h := other("POST", docs, `{"id":"i","pk":"p","n":1}`, 201, pk).h
	token := "x-ms-session-token: " + h.Get("x-ms-session-token")
	for _, x := range []struct {
		name    string
		change  func() // by the other server, before the read
		headers []string
		code    int
		sub     string
		has     string
		once    bool
	}{
		{"the first", nil, []string{pk}, 200, "", `"n":1`, true},
		{"with the token of the last write", nil, []string{pk, token}, 200, "", `"n":1`, true},
		{"with a token of nobody", nil, []string{pk, "x-ms-session-token: 0:-1#1000000"}, 404, "1002", "", false},
		{"with a wrong token", nil, []string{pk, "x-ms-session-token: wrong"}, 400, "", "", true},
		{"after a write", func() {
			h := other("PUT", item, `{"id":"i","pk":"p","n":2}`, 200, pk).h
			token = "x-ms-session-token: " + h.Get("x-ms-session-token")
		}, []string{pk}, 200, "", `"n":2`, true},
		{"with the token of that", nil, []string{pk, "TOKEN"}, 200, "", `"n":2`, true},
		{"after another container was created", func() {
			other("POST", "/dbs/db/colls", `{"id":"d","partitionKey":{"paths":["/pk"]}}`, 201)
		}, []string{pk}, 200, "", `"n":2`, true},
		{"of an item that is absent", func() { other("DELETE", item, "", 204, pk) }, []string{pk}, 404, "", "", true},
		{"of a container of another key", func() {
			other("DELETE", "/dbs/db/colls/c", "", 204)
			other("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash",`+
				`"version":2}}`, 201)
			other("POST", docs, `{"id":"i","a":"p","b":1,"n":3}`, 201, `x-ms-documentdb-partitionkey: ["p",1]`)
		}, []string{`x-ms-documentdb-partitionkey: ["p",1]`}, 200, "", `"n":3`, true},
		{"of a dropped container", func() { other("DELETE", "/dbs/db/colls/c", "", 204) },
			[]string{`x-ms-documentdb-partitionkey: ["p",1]`}, 404, "1003", "", false},
	} {
		if x.change != nil {
			x.change()
		}
		for i, h := range x.headers {
			x.headers[i] = strings.Replace(h, "TOKEN", token, 1)
		}
		r := a.do("GET", item, "", x.headers...)
		sub := r.h.Get("x-ms-substatus")
		if r.code != x.code || x.sub != "" && sub != x.sub || !strings.Contains(r.body, x.has) {
			t.Errorf("%s: %d/%s %s, want %d/%s %s", x.name, r.code, sub, r.body, x.code, x.sub, x.has)
		}
		if x.once && !eng.ReadsOnce(func() { a.do("GET", item, "", x.headers...) }) {
			t.Errorf("%s: the store isn't asked just once", x.name)
		}
	}
}
