package sqlapi

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A session token one above the last assigned LSN is refused, although many more LSNs are reserved. That also holds for
// a new process, which continues above the reservation of the previous one.
func TestSessionTokenAhead(t *testing.T) {
	clk, kv := clock.Fake(testNow), memkv.New()
	open := func() *api {
		e, err := core.Open(context.Background(), kv, core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Wall: clk})
		if err != nil {
			t.Fatal(err)
		}
		return &api{t, s}
	}
	a := open()
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
	lsn := int64(0)
	ahead := func(a *api) {
		t.Helper()
		for n, want := range map[int64]int{lsn - 1: 200, lsn: 200, lsn + 1: 404, lsn + 1000: 404, lsn + 65000: 404} {
			token := fmt.Sprintf("x-ms-session-token: 0:-1#%d", n)
			if r := a.do("GET", docs+"/1", "", key("a"), token).is(want); want == 404 {
				r.sub("1002")
			}
			a.do("GET", docs, "", token).is(want)
			a.do("POST", docs, `{"query":"SELECT * FROM c"}`, key("a"), "x-ms-documentdb-isquery: true", token).is(want)
		}
	}
	for range 3 {
		r := a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a"), "x-ms-documentdb-is-upsert: true")
		lsn, _ = strconv.ParseInt(r.h.Get("lsn"), 10, 64)
		ahead(a)
	}
	ahead(open())
}
