package sqlapi

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// beforeWrite is an engine that calls a function before its next write.
type beforeWrite struct {
	*kvtest.Process
	next atomic.Pointer[func()]
}

func (e *beforeWrite) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if f := e.next.Swap(nil); f != nil {
		(*f)()
	}
	return e.Process.Write(ctx, b, pre)
}

// TestChangesOfDefinitions: a change of a container's or a database's definition that is made while another one is
// about to be written isn't undone by that one, and If-Match is about the definition that is replaced.
func TestChangesOfDefinitions(t *testing.T) {
	const (
		coll   = "/dbs/db/colls/c"
		ttl    = `{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":60}`
		noTTL  = `{"id":"c","partitionKey":{"paths":["/pk"]}}`
		policy = `{"id":"c","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"includedPaths":[{"path":"/*"}],` +
			`"excludedPaths":[{"path":"/a/*"}]}}`
		ru500, ru600 = `{"content":{"offerThroughput":500}}`, `{"content":{"offerThroughput":600}}`
	)
	for _, x := range []struct {
		what                   string
		meanwhile, path, body  string // path: offer is that of the container or the database
		meanwhilePath, ofOffer string
		match                  bool // the request has the etag of before
		code                   int
		shows, offer           string // what the definition and the offer then have
	}{
		{"policy after throughput", ru500, coll, policy, "offer", coll, false, 200, `"path":"/a/*"`,
			`"offerThroughput":500`},
		{"throughput after policy", policy, "offer", ru500, coll, coll, false, 200, `"path":"/a/*"`,
			`"offerThroughput":500`},
		{"throughput after throughput", ru600, "offer", ru500, "offer", coll, false, 200, `"id":"c"`,
			`"offerThroughput":500`},
		{"definition with an etag", ttl, coll, policy, coll, coll, true, 412, `"defaultTtl":60`,
			`"offerThroughput":400`},
		{"throughput with an etag", ttl, "offer", ru500, coll, coll, true, 412, `"defaultTtl":60`,
			`"offerThroughput":400`},
		{"database with an etag", ru600, "offer", ru500, "offer", "/dbs/db", true, 412, `"id":"db"`,
			`"offerThroughput":600`},
	} {
		store, clk := kvtest.NewShared(memkv.New(), 1), clock.Fake(testNow)
		eng := &beforeWrite{Process: store.Engine()}
		e, err := core.Open(t.Context(), eng, core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Wall: clk})
		if err != nil {
			t.Fatal(err)
		}
		a, b := &api{t, s}, processOf(t, store, clk)
		ofDB := "x-ms-offer-throughput: 400"
		if x.ofOffer == coll {
			ofDB = "x-none: "
		}
		a.do("POST", "/dbs", `{"id":"db"}`, ofDB).is(201)
		if x.ofOffer == coll {
			a.do("POST", "/dbs/db/colls", noTTL, "x-ms-offer-throughput: 400").is(201)
		}
		offer := offerOf(a)
		at := func(path string) string { return strings.Replace(path, "offer", offer, 1) }
		var headers []string
		if x.match {
			headers = append(headers, "If-Match: "+a.do("GET", x.ofOffer, "").is(200).h.Get("etag"))
		}
		change := func() { b.do("PUT", at(x.meanwhilePath), x.meanwhile).is(200) }
		eng.next.Store(&change)
		if r := a.do("PUT", at(x.path), x.body, headers...); r.code != x.code {
			t.Errorf("%s: %d %s, want %d", x.what, r.code, r.body, x.code)
		}
		if eng.next.Load() != nil {
			t.Errorf("%s: nothing was written", x.what)
		}
		for path, has := range map[string]string{x.ofOffer: x.shows, offer: x.offer} {
			if r := a.do("GET", path, "").is(200); !strings.Contains(r.body, has) {
				t.Errorf("%s: %s has no %s: %s", x.what, path, has, r.body)
			}
		}
		_ = e.Close()
	}
}
