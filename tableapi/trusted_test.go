package tableapi

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A read of an entity asks a shared store once, not for the table's name first. It is right nevertheless when another
// server has changed what the name means.
func TestReadsOfEntitiesOfASharedStore(t *testing.T) {
	store, clk := kvtest.NewShared(memkv.New(), 1), clock.Fake(time.Date(2024, 3, 4, 5, 6, 7, 0, time.UTC))
	eng := &kvtest.Counting{Process: store.Engine()}
	var doors []*Server
	for _, of := range []*kvtest.Counting{eng, {Process: store.Engine()}} {
		e, err := core.Open(t.Context(), of, core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Announce(core.Announcement{Name: "test"}); err != nil { // it trusts its catalog from now on
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		doors = append(doors, New(e, Options{Account: testAccount, Key: testKey, Clock: clk, Wall: clk}))
	}
	do := func(s *Server, method, target, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.RequestURI = target
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json;odata=nometadata")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	other := func(method, target, body string, code int) {
		t.Helper()
		if w := do(doors[1], method, target, body); w.Code != code {
			t.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
	}
	const table, entity = `{"TableName":"one"}`, "/one(PartitionKey='p',RowKey='r')"
	other("POST", "/Tables", table, 201)
	other("POST", "/one", `{"PartitionKey":"p","RowKey":"r","N":1}`, 201)
	for _, x := range []struct {
		name   string
		change func() // by the other server, before the read
		target string
		code   int
		has    string
		once   bool
	}{
		{"an entity", nil, entity, 200, `"N":1`, true},
		{"in other letters", nil, strings.Replace(entity, "one", "ONE", 1), 200, `"N":1`, false},
		{"of an entity that is absent", nil, "/one(PartitionKey='p',RowKey='none')", 404, "ResourceNotFound", true},
		{"of a new table with the name", func() {
			other("DELETE", "/Tables('one')", "", 204)
			other("POST", "/Tables", table, 201)
			other("POST", "/one", `{"PartitionKey":"p","RowKey":"r","N":2}`, 201)
		}, entity, 200, `"N":2`, true},
		{"of a dropped table", func() { other("DELETE", "/Tables('one')", "", 204) }, entity, 404, "", false},
	} {
		if x.change != nil {
			x.change()
		}
		w := do(doors[0], "GET", x.target, "")
		if w.Code != x.code || !strings.Contains(w.Body.String(), x.has) {
			t.Errorf("%s: %d %s, want %d %s", x.name, w.Code, w.Body, x.code, x.has)
		}
		if x.once && !eng.ReadsOnce(func() { do(doors[0], "GET", x.target, "") }) {
			t.Errorf("%s: the store isn't asked just once", x.name)
		}
	}
}
