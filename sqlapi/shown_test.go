package sqlapi

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A reply that depends on an item, an absence or a count waits until that is durable: reads, queries, refusals, the
// usage of a container.
func TestRepliesWaitForDurability(t *testing.T) {
	ctx, clk := context.Background(), clock.Fake(testNow)
	disk := &kvtest.Slow{Engine: memkv.New()}
	e, err := core.Open(ctx, disk, core.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Clock: clk, Wall: clk})
	if err != nil {
		t.Fatal(err)
	}
	a := &api{t, s}
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`).is(201)
	ct, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	write := func(kind core.WriteKind) {
		d, err := doc.FromJSON(nil, []byte(`{"id":"1","pk":"p"}`), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Error(err)
		}
		w := core.Write{Kind: kind, Doc: d}
		if kind == core.Delete {
			pk, id, err := ct.KeyOf(d)
			if err != nil {
				t.Error(err)
			}
			w = core.Write{Kind: kind, PK: pk, ID: id}
		}
		if _, err := ct.Write(ctx, w); err != nil {
			t.Error(err)
		}
	}
	const key = `x-ms-documentdb-partitionkey: ["p"]`
	query := func(text string) func() {
		return func() {
			a.do("POST", "/dbs/db/colls/c/docs", `{"query":"`+text+`"}`, key, "content-type: application/query+json",
				"x-ms-documentdb-isquery: true").is(200)
		}
	}
	asks := map[string]func(){
		"404 of a read":     func() { a.do("GET", "/dbs/db/colls/c/docs/1", "", key).is(404) },
		"404 of a delete":   func() { a.do("DELETE", "/dbs/db/colls/c/docs/1", "", key).is(404) },
		"404 of a replace":  func() { a.do("PUT", "/dbs/db/colls/c/docs/1", `{"id":"1","pk":"p"}`, key).is(404) },
		"an empty query":    query("SELECT * FROM c"),
		"an empty find":     query("SELECT * FROM c WHERE c.id = '1'"),
		"COUNT":             query("SELECT VALUE COUNT(1) FROM c"),
		"COUNT of a filter": query("SELECT VALUE COUNT(1) FROM c WHERE c.n > 0"),
		"usage": func() {
			a.do("GET", "/dbs/db/colls/c", "", "x-ms-documentdb-populatequotainfo: true").is(200)
		},
	}
	created := map[string]func(){
		"409 of a create": func() { a.do("POST", "/dbs/db/colls/c/docs", `{"id":"1","pk":"p"}`, key).is(409) },
		"412 of a delete": func() { a.do("DELETE", "/dbs/db/colls/c/docs/1", "", key, `if-match: "none"`).is(412) },
	}
	write(core.Create) // the first write reserves numbers, and waits for that
	write(core.Delete)
	for kind, asks := range map[core.WriteKind]map[string]func(){core.Delete: asks, core.Create: created} {
		for name, ask := range asks {
			if kind == core.Delete {
				write(core.Create)
			}
			count := func() int64 {
				n, err := ct.Count(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			before, sync, done := count(), make(chan bool), make(chan bool)
			disk.Sync.Store(&sync)
			go func() { write(kind); close(done) }()
			for count() == before {
				time.Sleep(time.Millisecond)
			}
			var durable atomic.Bool
			go func() {
				time.Sleep(10 * time.Millisecond)
				durable.Store(true)
				close(sync)
			}()
			ask()
			if !durable.Load() {
				t.Errorf("%s was answered by a commit that is not durable", name)
			}
			<-done
			disk.Sync.Store(nil)
			if kind == core.Create {
				write(core.Delete)
			}
		}
	}
}
