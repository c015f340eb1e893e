package sqlapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const oldClient = "x-ms-version: 2017-11-15"

// Clients of before 2018-06-18 parse the text behind the colon of a session token as one number.
func TestSessionTokensOfOldClients(t *testing.T) {
	a := withContainer(t)
	a.do("POST", docs, `{"id":"1","pk":"a"}`, key("a")).is(201)
	for _, x := range []struct {
		target  string
		headers []string
	}{
		{"/dbs/db", nil},
		{"/dbs/db/colls/c", nil},
		{docs + "/1", []string{key("a")}},
		{docs, []string{"x-ms-documentdb-partitionkeyrangeid: 0"}},
	} {
		for version, form := range map[string]string{"2017-11-15": "0:", "2018-06-18": "0:-1#", "2020-07-15": "0:-1#"} {
			tok := a.do("GET", x.target, "", append(x.headers, "x-ms-version: "+version)...).is(200).h.Get(
				"x-ms-session-token")
			number, ok := strings.CutPrefix(tok, form)
			if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
				t.Errorf("%s, version %s: token %q, want %sLSN", x.target, version, tok, form)
			}
		}
	}
	tok := a.do("GET", docs+"/1", "", key("a"), oldClient).is(200).h.Get("x-ms-session-token")
	a.do("GET", docs+"/1", "", key("a"), oldClient, "x-ms-session-token: "+tok).is(200)
	a.do("GET", docs+"/1", "", key("a"), oldClient, "x-ms-session-token: 0:9000000000000000").is(404).sub("1002")
}

// A client of before partition keys were mandatory sees no key of a container without one, and queries it without the
// header that allows a query over partitions.
func TestOldClientWithoutPartitionKey(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	for _, body := range []string{
		a.do("POST", "/dbs/db/colls", `{"id":"c"}`, oldClient).is(201).body,
		a.do("GET", "/dbs/db/colls/c", "", oldClient).is(200).body,
		a.do("GET", "/dbs/db/colls", "", oldClient).is(200).body,
	} {
		if strings.Contains(body, "partitionKey") {
			t.Errorf("an old client is shown a partition key: %s", body)
		}
	}
	a.do("GET", "/dbs/db/colls/c", "").is(200).has(`"paths":["/_partitionKey"]`).has(`"systemKey":true`)
	a.do("PUT", "/dbs/db/colls/c", `{"id":"c","defaultTtl":-1}`, oldClient).is(200)
	a.do("POST", docs, `{"id":"1"}`, oldClient).is(201)
	a.query("SELECT * FROM c", oldClient).is(200).has(`"_count":1`)
	a.query("SELECT * FROM c ORDER BY c.id", oldClient).is(200).has(`"_count":1`)
	a.query("SELECT * FROM c").is(400)
	a.do("POST", "/dbs/db/colls", `{"id":"keyed","partitionKey":{"paths":["/pk"]}}`, oldClient).is(201).has(`"/pk"`)
	a.do("POST", "/dbs/db/colls/keyed/docs", `{"query":"SELECT * FROM c"}`, "x-ms-documentdb-isquery: True",
		oldClient).is(400)
}

// A link of resource ids is signed in lower case, also when the resource is gone: the answer is 404 then, and not 401.
func TestSignedLinksOfWhatIsGone(t *testing.T) {
	a := withUser(t)
	const body = `{"id":"p","permissionMode":"read","resource":"dbs/db/colls/c"}`
	links := map[string]string{}
	for _, x := range []struct{ typ, link string }{
		{"permissions", perms + "/p"}, {"users", "/dbs/db/users/u"}, {"colls", "/dbs/db/colls/c"}, {"dbs", "/dbs/db"},
	} {
		if x.typ == "permissions" {
			a.do("POST", perms, body).is(201)
		}
		links[x.typ] = strings.Trim(a.do("GET", x.link, "").is(200).json()["_self"].(string), "/")
	}
	get := func(typ string) *reply {
		link := links[typ]
		date := testNow.Format(http.TimeFormat)
		last := strings.ToLower(link[strings.LastIndexByte(link, '/')+1:])
		return a.do("GET", "/"+link, "", "x-ms-date: "+date,
			"authorization: "+sign(t, testKey, "GET", typ, last, date))
	}
	for _, typ := range []string{"permissions", "users", "colls", "dbs"} {
		get(typ).is(200)
		a.do("DELETE", "/"+links[typ], "").is(204)
		get(typ).is(404)
	}
}

// Clients write the mode in either case, and compare what comes back with what they wrote.
func TestPermissionModeIsKept(t *testing.T) {
	a := withUser(t)
	for i, mode := range []string{"all", "All", "read", "Read"} {
		r := a.do("POST", perms, `{"id":"p","permissionMode":"`+mode+`","resource":"dbs/db/colls/c"}`,
			"x-ms-documentdb-is-upsert: true").has(`"permissionMode":"` + mode + `"`)
		tok := r.json()["_token"].(string)
		made := a.do("POST", docs, `{"id":"`+mode+`","pk":"a"}`, key("a"), "authorization: "+url.QueryEscape(tok))
		if want := []int{201, 403}[i/2]; made.code != want {
			t.Errorf("mode %s: a write gives %d, want %d: %s", mode, made.code, want, made.body)
		}
	}
}

// null is no time to live, and not the absence of one.
func TestNullTimeToLive(t *testing.T) {
	const refused = "The input ttl 'null' is invalid"
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":null}`).is(400).has(refused)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":-1}`).is(201)
	a.do("POST", docs, `{"id":"1","pk":"a","ttl":null}`, key("a")).is(400).has(refused)
	a.do("POST", docs, `{"id":"1","pk":"a","ttl":0}`, key("a")).is(400).has("The input ttl '0' is invalid")
	a.do("POST", docs, `{"id":"1","pk":"a","ttl":9}`, key("a")).is(201)
	a.do("PATCH", docs+"/1", `[{"op":"set","path":"/ttl","value":null}]`, key("a")).is(400).has(refused)
	// A container whose items never expire doesn't look at the property.
	a.do("PUT", "/dbs/db/colls/c", `{"id":"c","partitionKey":{"paths":["/pk"]}}`).is(200)
	a.do("POST", docs, `{"id":"2","pk":"a","ttl":null}`, key("a")).is(201)
}

// The path "/" of old indexing policies means every path.
func TestRootIndexingPath(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"includedPaths":[`+
		`{"path":"/\"Location\"/?","indexes":[{"kind":"Spatial","dataType":"Point"}]},{"path":"/"}],`+
		`"excludedPaths":[{"path":"/\"systemMetadata\"/*"}]}}`).is(201).has(`"path":"/"`)
	a.do("POST", docs, `{"id":"1","pk":"a","n":1}`, key("a")).is(201)
	a.query("SELECT VALUE c.n FROM c WHERE c.n > 0 ORDER BY c.n", key("a")).is(200).has(`[1]`)
	a.do("POST", "/dbs/db/colls", `{"id":"none","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"includedPaths":[],`+
		`"excludedPaths":[{"path":"/"}]}}`).is(201)
}

// An offer is replaced by a body that is that offer.
func TestOfferOfAnother(t *testing.T) {
	a := withContainer(t)
	o := a.do("GET", "/offers", "").is(200).json()["Offers"].([]any)[0].(map[string]any)
	link := "/" + strings.Trim(o["_self"].(string), "/")
	for rid, code := range map[any]int{o["_rid"]: 200, "NotAllowed": 400} {
		o["_rid"] = rid
		body, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		a.do("PUT", link, string(body)).is(code)
	}
	a.do("PUT", link, `{"content":{"offerThroughput":500}}`).is(200)
}

// The SDK for Rust of before its version 1 fails where a header is missing, also one that it has no use for. Other
// clients don't get them.
func TestHeadersOfTheFirstRustClient(t *testing.T) {
	a := withUser(t)
	const rust = "user-agent: app azsdk-rust-data_cosmos/0.21.0 (1.80; linux; x86_64)"
	all := []string{hCharge, hStateChange, hSchemaVersion, hServiceVersion, hGatewayVersion, hReadRegions, hTransportID}
	for _, h := range replicaHeaders {
		all = append(all, h.name)
	}
	all = append(all, lsnHeaders...)
	q := []string{"x-ms-documentdb-isquery: true", "x-ms-documentdb-query-enablecrosspartition: true"}
	for _, x := range []struct {
		verb, target, body string
		headers            []string
	}{
		{"POST", "/dbs", `{"id":"rust"}`, nil},
		{"GET", "/dbs", "", nil},
		{"GET", "/dbs/db/colls", "", nil},
		{"GET", "/dbs/db/colls/c", "", nil},
		{"GET", "/dbs/db/colls/c/pkranges", "", nil},
		{"POST", docs, `{"id":"r","pk":"a"}`, []string{key("a")}},
		{"GET", docs + "/r", "", []string{key("a")}},
		{"POST", docs, `{"query":"SELECT * FROM c"}`, q},
		{"POST", "/dbs/db/colls/c/udfs", `{"id":"u","body":"function(){}"}`, nil},
		{"GET", "/dbs/db/users", "", nil},
		{"DELETE", docs + "/r", "", []string{key("a")}},
		{"DELETE", "/dbs/rust", "", nil},
	} {
		r := a.do(x.verb, x.target, x.body, append(x.headers, rust)...)
		for _, name := range all {
			if _, ok := r.h[http.CanonicalHeaderKey(name)]; !ok {
				t.Errorf("%s %s: %d without %s", x.verb, x.target, r.code, name)
			}
		}
		if r.code >= 300 {
			t.Errorf("%s %s: %d %s", x.verb, x.target, r.code, r.body)
		}
	}
	made := a.do("POST", docs, `{"id":"s","pk":"a"}`, key("a"), rust).is(201)
	if lsn := made.h.Get(hLSN); lsn == "0" || made.h.Get(hQuorumLSN) != lsn || !strings.HasSuffix(
		made.h.Get(rSessionToken), "#"+lsn) {
		t.Errorf("the LSN of a write isn't that of its replicas: %v", made.h)
	}
	other := a.do("GET", docs+"/s", "", key("a"), "user-agent: azsdk-rust-data_cosmos/1.0.0").is(200)
	if got := other.h.Get(hReplicas); got != "" {
		t.Errorf("another client gets %s: %s", hReplicas, got)
	}
}
