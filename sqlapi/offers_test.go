package sqlapi

import (
	"encoding/json"
	"strings"
	"testing"
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
