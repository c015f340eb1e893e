package sqlapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// offerOf returns the path of the only offer.
func offerOf(a *api) string {
	a.t.Helper()
	var f struct {
		Offers []struct {
			Self string `json:"_self"`
		}
	}
	if err := json.Unmarshal([]byte(a.do("GET", "/offers", "").is(200).body), &f); err != nil || len(f.Offers) != 1 {
		a.t.Fatalf("%v %+v", err, f)
	}
	return "/" + f.Offers[0].Self
}

// TestLeastThroughput: a throughput can't be lowered below a hundredth of the highest one ever, or a tenth with
// autoscale. Replies show that limit.
func TestLeastThroughput(t *testing.T) {
	for _, on := range []string{"container", "database"} {
		a := newAPI(t)
		if on == "database" {
			a.do("POST", "/dbs", `{"id":"db"}`, "x-ms-offer-throughput: 400").is(201)
		} else {
			a.do("POST", "/dbs", `{"id":"db"}`).is(201)
			a.do("POST", "/dbs/db/colls", collC).is(201)
		}
		u := offerOf(a)
		put := func(content string, code int, least string, headers ...string) *reply {
			t.Helper()
			r := a.do("PUT", u, `{"content":`+content+`}`, headers...).is(code)
			if got := r.h.Get("x-ms-cosmos-min-throughput"); got != least {
				t.Errorf("%s of a %s: the least throughput is %q, want %q", content, on, got, least)
			}
			return r
		}
		put(`{"offerThroughput":100000}`, 200, "1000")
		put(`{"offerThroughput":900}`, 400, "").has("between 1000 and 1000000")
		put(`{"offerThroughput":1000}`, 200, "1000").has(`"maxThroughputEverProvisioned":100000`)
		put(`{"offerThroughput":400}`, 400, "")
		r := a.do("GET", u, "").is(200)
		if r.h.Get("x-ms-cosmos-min-throughput") != "1000" || r.h.Get("x-ms-offer-replace-pending") != "false" {
			t.Errorf("%v", r.h)
		}
		put(`{"offerThroughput":-1}`, 200, "10000", "x-ms-cosmos-migrate-offer-to-autopilot: true").has(
			`"offerAutopilotSettings":{"maxThroughput":10000}`)
		put(`{"offerAutopilotSettings":{"maxThroughput":9000}}`, 400, "").has("between 10000 and 1000000")
		put(`{"offerAutopilotSettings":{"maxThroughput":1000100}}`, 400, "")
	}
}

// TestThroughputBounds: what a replace of an offer answers, from manual 400 RU/s unless the row says otherwise.
func TestThroughputBounds(t *testing.T) {
	const (
		auto   = `{"offerAutopilotSettings":{"maxThroughput":%d}}`
		manual = `{"offerThroughput":%d}`
		toAuto = "x-ms-cosmos-migrate-offer-to-autopilot: true"
		toMan  = "x-ms-cosmos-migrate-offer-to-manual-throughput: true"
	)
	for _, x := range []struct {
		what, create, content string
		n                     int
		headers               []string
		code                  int
		has                   string
	}{
		{"least", "", manual, 400, nil, 200, `"offerThroughput":400`},
		{"below the least", "", manual, 300, nil, 400, "between 400 and 1000000 inclusive in increments of 100"},
		{"between two steps", "", manual, 450, nil, 400, "increments of 100"},
		{"most", "", manual, 1000000, nil, 200, `"offerThroughput":1000000`},
		{"above the most", "", manual, 1000100, nil, 400, "increments of 100"},
		{"zero", "", manual, 0, nil, 400, "increments of 100"},
		{"no header for autoscale", "", auto, 4000, nil, 400,
			"x-ms-cosmos-migrate-offer-to-autopilot must be supplied"},
		{"to autoscale", "", manual, -1, []string{toAuto}, 200, `"offerAutopilotSettings":{"maxThroughput":1000}`},
		{"to autoscale, rounded up", "m2500", manual, -1, []string{toAuto}, 200, `"maxThroughput":3000}`},
		{"to manual, which it is", "", manual, 500, []string{toMan}, 200, `"offerThroughput":500`},
		{"to both", "", manual, 500, []string{toAuto, toMan}, 400, "both requested"},
		{"autoscale", "a4000", auto, 7000, nil, 200, `"offerThroughput":700`},
		{"autoscale, least", "a4000", auto, 1000, nil, 200, `"offerThroughput":100`},
		{"autoscale, below the least", "a4000", auto, 900, nil, 400, "between 1000 and 1000000, in steps of 1000"},
		{"autoscale, between two steps", "a4000", auto, 4500, nil, 400, "in steps of 1000"},
		{"autoscale, above the most", "a4000", auto, 1001000, nil, 400, "in steps of 1000"},
		{"autoscale, zero", "a4000", auto, 0, nil, 400, "invalid"},
		{"autoscale, below a tenth of the highest", "a30000", auto, 2000, nil, 400, "between 3000 and"},
		{"no header for manual", "a4000", manual, 400, nil, 400,
			"x-ms-cosmos-migrate-offer-to-manual-throughput must be supplied"},
		{"to manual", "a4000", auto, 1, []string{toMan}, 200, `"content":{"offerThroughput":4000,`},
		{"to autoscale, which it is", "a4000", auto, 5000, []string{toAuto}, 200, `"maxThroughput":5000}`},
	} {
		a := newAPI(t)
		a.do("POST", "/dbs", `{"id":"db"}`).is(201)
		h := "x-ms-offer-throughput: 400"
		if x.create != "" {
			h = "x-ms-offer-throughput: " + x.create[1:]
		}
		if strings.HasPrefix(x.create, "a") {
			h = `x-ms-cosmos-offer-autopilot-settings: {"maxThroughput":` + x.create[1:] + "}"
		}
		a.do("POST", "/dbs/db/colls", collC, h).is(201)
		r := a.do("PUT", offerOf(a), `{"content":`+fmt.Sprintf(x.content, x.n)+`}`, x.headers...)
		if r.code != x.code || !strings.Contains(r.body, x.has) {
			t.Errorf("%s: %d %s, want %d %s", x.what, r.code, r.body, x.code, x.has)
		}
		if r.h.Get("x-ms-substatus") != "" {
			t.Errorf("%s: sub-status %s", x.what, r.h.Get("x-ms-substatus"))
		}
	}
}

// TestLeastOfShared: a database's throughput has a higher least value when more than 25 containers share it. Containers
// with their own don't count.
func TestLeastOfShared(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`, "x-ms-offer-throughput: 5000").is(201)
	u := offerOf(a)
	for i := range 28 {
		body, own := fmt.Sprintf(`{"id":"c%d","partitionKey":{"paths":["/pk"]}}`, i), ""
		if i == 0 {
			own = "400"
		}
		a.do("POST", "/dbs/db/colls", body, "x-ms-offer-throughput: "+own).is(201)
	}
	if got := a.do("GET", u, "").is(200).h.Get("x-ms-cosmos-min-throughput"); got != "600" {
		t.Errorf("with 27 containers the least is %s", got)
	}
	content := func(n int) string { return fmt.Sprintf(`{"content":{"offerThroughput":%d}}`, n) }
	a.do("PUT", u, content(500)).is(400).has("between 600 and 1000000")
	a.do("PUT", u, content(600)).is(200)
	r := a.do("PUT", u, content(-1), "x-ms-cosmos-migrate-offer-to-autopilot: true").is(200)
	r.has(`"maxThroughput":3000`)
	if got := r.h.Get("x-ms-cosmos-min-throughput"); got != "3000" {
		t.Errorf("with autoscale the least maximum is %s", got)
	}
}

// TestOffersByResource: the query for the offer of one container or database finds it by its _rid and by its self link,
// as literals and parameters. Other filters see every offer. The storage is that of the items.
func TestOffersByResource(t *testing.T) {
	a := newAPI(t)
	rid := map[string]string{}
	link := map[string]string{}
	made := func(name string, r *reply) {
		t.Helper()
		var v struct {
			RID  string `json:"_rid"`
			Self string `json:"_self"`
		}
		if err := json.Unmarshal([]byte(r.is(201).body), &v); err != nil {
			t.Fatal(err)
		}
		rid[name], link[name] = v.RID, v.Self
	}
	made("plain", a.do("POST", "/dbs", `{"id":"plain"}`))
	made("db", a.do("POST", "/dbs", `{"id":"db"}`, "x-ms-offer-throughput: 500"))
	made("own", a.do("POST", "/dbs/db/colls", `{"id":"own","partitionKey":{"paths":["/pk"]}}`,
		"x-ms-offer-throughput: 600"))
	made("shares", a.do("POST", "/dbs/db/colls", `{"id":"shares","partitionKey":{"paths":["/pk"]}}`))
	pad := strings.Repeat("x", 3000)
	for _, c := range []string{"own", "shares"} {
		a.do("POST", "/dbs/db/colls/"+c+"/docs", `{"id":"1","pk":"p","pad":"`+pad+`"}`,
			`x-ms-documentdb-partitionkey: ["p"]`).is(201)
	}
	for _, x := range []struct {
		where, param string
		want         string // throughput and KB of each offer
	}{
		{"c.offerResourceId = '" + rid["own"] + "'", "", "600:4"},
		{"c.offerResourceId = @p", rid["own"], "600:4"},
		{"@p = c.offerResourceId AND c.content.offerThroughput > 1", rid["db"], "500:4"},
		{"c.resource = @p", link["own"], "600:4"},
		{"c.resource = @p", link["db"], "500:4"},
		{"c.resource = @p", strings.TrimSuffix(link["own"], "/"), ""}, // not the link of the resource
		{"c.offerResourceId = @p AND c.content.offerThroughput = 1", rid["own"], ""},
		{"c.offerResourceId = @p", rid["shares"], ""},
		{"c.offerResourceId = @p", rid["plain"], ""},
		{"c.offerResourceId = @p", "AAAA", ""},
		{"c.offerResourceId = @p", "", ""},
		{"c.offerResourceId = @p OR c.content.offerThroughput = 600", rid["db"], "500:4 600:4"},
		{"c.offerResourceId != @p", rid["db"], "600:4"},
		{"true", "", "500:4 600:4"},
	} {
		q, err := json.Marshal(map[string]any{"query": "SELECT * FROM c WHERE " + x.where,
			"parameters": []any{map[string]string{"name": "@p", "value": x.param}}})
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			Offers []struct {
				Content struct {
					OfferThroughput                  int
					OfferMinimumThroughputParameters struct {
						MaxConsumedStorageEverInKB int
					}
				}
			}
		}
		r := a.do("POST", "/offers", string(q), "x-ms-documentdb-isquery: True", "content-type: application/query+json")
		if err := json.Unmarshal([]byte(r.is(200).body), &f); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range f.Offers {
			got = append(got, fmt.Sprintf("%d:%d", o.Content.OfferThroughput,
				o.Content.OfferMinimumThroughputParameters.MaxConsumedStorageEverInKB))
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s with %q: %v, want %s", x.where, x.param, got, x.want)
		}
	}
}

// TestFixedContainer: a container without a partition key has at most 10,000 RU/s.
func TestFixedContainer(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	const fixed = `{"id":"f"}`
	a.do("POST", "/dbs/db/colls", fixed, "x-ms-offer-throughput: 10100").is(400).has("without a partition key")
	a.do("POST", "/dbs/db/colls", fixed, `x-ms-cosmos-offer-autopilot-settings: {"maxThroughput":11000}`).is(400)
	a.do("POST", "/dbs/db/colls", fixed, "x-ms-offer-throughput: 10000").is(201)
	u := offerOf(a)
	a.do("PUT", u, `{"content":{"offerThroughput":20000}}`).is(400).has("without a partition key")
	a.do("PUT", u, `{"content":{"offerThroughput":5000}}`).is(200)
	if got := a.do("GET", "/dbs/db/colls/f/pkranges", "").is(200).body; strings.Count(got, `"minInclusive"`) != 1 {
		t.Error(got)
	}
}

// TestLockedThroughput: a strict server refuses another throughput, with 423, while partitions are split for the last
// one. Reads of the offer say so.
func TestLockedThroughput(t *testing.T) {
	for _, strict := range []bool{true, false} {
		held := &heldEngine{Engine: memkv.New(), let: make(chan bool)}
		clk := clock.Fake(testNow)
		e, err := core.Open(t.Context(), held, core.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(e, Options{Account: "acct", Key: testKey, Auth: true, Strict: strict, Clock: clk, Wall: clk})
		if err != nil {
			t.Fatal(err)
		}
		a := &api{t, s}
		a.do("POST", "/dbs", `{"id":"db"}`).is(201)
		a.do("POST", "/dbs/db/colls", collC, "x-ms-offer-throughput: 400").is(201)
		u := offerOf(a)
		held.after.Store(1) // the throughput itself is written
		held.on.Store(true)
		put := func(n, code int) *reply {
			t.Helper()
			return a.do("PUT", u, fmt.Sprintf(`{"content":{"offerThroughput":%d}}`, n)).is(code)
		}
		if p := put(20000, 200).h.Get("x-ms-offer-replace-pending"); p != "true" {
			t.Errorf("x-ms-offer-replace-pending: %s", p)
		}
		if strict {
			put(400, 423).has(`"code":"Locked"`)
			a.do("PUT", u, `{"content":{"offerThroughput":20000}}`, "If-Match: \"none\"").is(412)
		}
		a.do("GET", u, "").is(200).has(`"offerThroughput":20000`)
		held.on.Store(false)
		close(held.let)
		if !strict {
			put(400, 200)
		}
		for begun := time.Now(); a.do("GET", u, "").h.Get("x-ms-offer-replace-pending") != "false"; {
			if time.Since(begun) > 20*time.Second {
				t.Fatal("the change is pending for ever")
			}
		}
		put(500, 200)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// heldEngine is an engine whose writes wait for let, while on is set, after the first ones.
type heldEngine struct {
	kv.Engine
	on    atomic.Bool
	after atomic.Int32
	let   chan bool
}

func (e *heldEngine) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if e.on.Load() && e.after.Add(-1) < 0 {
		<-e.let
	}
	return e.Engine.Write(ctx, b, pre)
}
