package sqlapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A list of very many containers comes in pages, also if the client doesn't request pages: in the order of their
// creation, each container once.
func TestContainersAreListedInPages(t *testing.T) {
	const n = largestPage + 3
	a := newAPI(t)
	e, ctx := a.srv.core, context.Background()
	if _, err := e.EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range n {
		id := fmt.Sprint("c", n-i)
		if _, err := e.CreateContainer(ctx, "db",
			core.ContainerSpec{ID: id, PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}); err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	for _, tc := range []struct {
		size  string
		pages int
	}{{"", 2}, {"-1", 2}, {"400", 3}, {"5000", 1}} {
		var got []string
		pages, token := 0, ""
		for {
			var h []string
			if tc.size != "" {
				h = append(h, "x-ms-max-item-count: "+tc.size)
			}
			if token != "" {
				h = append(h, "x-ms-continuation: "+token)
			}
			r := a.do("GET", "/dbs/db/colls", "", h...)
			r.is(200)
			var f struct {
				DocumentCollections []struct{ ID string }
				Count               int `json:"_count"`
			}
			if err := json.Unmarshal([]byte(r.body), &f); err != nil || f.Count != len(f.DocumentCollections) {
				t.Fatal(f.Count, err)
			}
			for _, c := range f.DocumentCollections {
				got = append(got, c.ID)
			}
			pages++
			if token = r.h.Get("x-ms-continuation"); token == "" {
				break
			}
		}
		if pages != tc.pages || !slices.Equal(got, want) {
			t.Errorf("pages of %q: %d containers in %d pages, want %d", tc.size, len(got), pages, tc.pages)
		}
	}
	a.do("GET", "/dbs/db/colls", "", "x-ms-continuation: rubbish").is(400)
}

// countedReads is an engine that stays open and counts the reads of single keys.
type countedReads struct {
	kv.Engine
	n atomic.Int64
}

func (e *countedReads) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	e.n.Add(1)
	return e.Engine.Get(ctx, dst, key)
}

func (e *countedReads) Close() error { return nil }

// A request about one of many containers reads that one's definition, and not those of the others.
func TestOneOfManyContainers(t *testing.T) {
	const n = 200
	eng, clk := &countedReads{Engine: memkv.New()}, clock.Fake(testNow)
	start := func() *api {
		e, err := core.Open(t.Context(), eng, core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Wall: clk})
		if err != nil {
			t.Fatal(err)
		}
		return &api{t, s}
	}
	a := start()
	a.do("POST", "/dbs", `{"id":"other"}`, "x-ms-offer-throughput: 400").is(201)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	for i := range n {
		a.do("POST", "/dbs/db/colls", fmt.Sprintf(`{"id":"c%d","partitionKey":{"paths":["/pk"]}}`, i),
			fmt.Sprint("x-ms-offer-throughput: ", 100*(4+i))).is(201)
	}
	var f struct {
		Offers []struct {
			Self    string `json:"_self"`
			Content struct{ OfferThroughput int }
		}
	}
	if err := json.Unmarshal([]byte(a.do("GET", "/offers", "").is(200).body), &f); err != nil || len(f.Offers) != n+1 {
		t.Fatal(len(f.Offers), err)
	}
	a = start()
	read := func(what string, do func()) {
		t.Helper()
		least := int64(n)
		for range 5 { // the server also reads in the background
			was := eng.n.Load()
			do()
			least = min(least, eng.n.Load()-was)
		}
		if least > n/4 {
			t.Errorf("%s: %d reads", what, least)
		}
	}
	for _, i := range []int{0, 1, n / 2, n} {
		o := f.Offers[i]
		read("offer", func() {
			a.do("GET", "/"+o.Self, "").is(200).has(fmt.Sprintf(`"offerThroughput":%d,`, o.Content.OfferThroughput))
		})
	}
	for _, rid := range []string{"____", "AAAA", "AAAAAA=="} {
		read("no offer", func() { a.do("GET", "/offers/"+rid+"/", "").is(404) })
	}
	for where, want := range map[string]string{`c.id = "c50"`: `"id":"c50"`, `c.id = "none"`: `"_count":0`,
		`c.id = "c7" AND c._ts > 0`: `"id":"c7"`, `c.id = "c8" AND false`: `"_count":0`} {
		q, err := json.Marshal(map[string]string{"query": "SELECT * FROM c WHERE " + where})
		if err != nil {
			t.Fatal(err)
		}
		read(where, func() {
			r := a.do("POST", "/dbs/db/colls", string(q), "content-type: application/query+json",
				"x-ms-documentdb-isquery: true").is(200).has(want)
			if strings.Count(r.body, `"indexingPolicy"`) > 1 {
				t.Errorf("%s: %s", where, r.body)
			}
		})
	}
	read("a page of a query", func() {
		a.do("POST", "/dbs/db/colls", `{"query":"SELECT * FROM c"}`, "content-type: application/query+json",
			"x-ms-documentdb-isquery: true", "x-ms-max-item-count: 10").is(200).has(`"_count":10`)
	})
}
