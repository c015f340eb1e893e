package sqlapi

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

const perms = "/dbs/db/users/u/permissions"

// grantOf creates a permission and returns the header line of its token.
func (a *api) grantOf(id, mode, resource, key string, headers ...string) string {
	a.t.Helper()
	body := `{"id":"` + id + `","permissionMode":"` + mode + `","resource":"` + resource + `"`
	if key != "" {
		body += `,"resourcePartitionKey":` + key
	}
	r := a.do("POST", perms, body+"}", append(headers, "x-ms-documentdb-is-upsert: true")...)
	if r.code != 201 {
		r.is(200)
	}
	return "authorization: " + url.QueryEscape(r.json()["_token"].(string))
}

func withUser(t *testing.T) *api {
	t.Helper()
	a := withContainer(t)
	a.do("POST", "/dbs/db/users", `{"id":"u"}`).is(201)
	for _, pk := range []string{"a", "b"} {
		a.do("POST", docs, `{"id":"1","pk":"`+pk+`"}`, key(pk)).is(201)
	}
	return a
}

func TestUsers(t *testing.T) {
	a := withContainer(t)
	made := a.do("POST", "/dbs/db/users", `{"id":"u"}`).is(201).json()
	rid := made["_rid"].(string)
	if made["_permissions"] != "permissions/" || made["_self"] != "dbs/"+
		a.do("GET", "/dbs/db", "").json()["_rid"].(string)+"/users/"+rid+"/" || len(rid) != 12 {
		t.Fatalf("%v", made)
	}
	a.do("POST", "/dbs/db/users", `{"id":"u"}`).is(409)
	a.do("POST", "/dbs/db/users", `{"id":"u"}`, "x-ms-documentdb-is-upsert: true").is(200)
	a.do("POST", "/dbs/db/users", `{"id":"v"}`, "x-ms-documentdb-is-upsert: true").is(201)
	for _, bad := range []string{`{}`, `{"id":1}`, `{"id":""}`, `{"id":"a/b"}`, `null`, `[]`, `{`} {
		a.do("POST", "/dbs/db/users", bad).is(400)
	}
	a.do("POST", "/dbs/none/users", `{"id":"u"}`).is(404).sub("1003")
	a.do("GET", "/dbs/db/users", "").is(200).has(`"_count":2`).has(`"Users":[{"id":"u"`)
	page := a.do("GET", "/dbs/db/users", "", "x-ms-max-item-count: 1").is(200).has(`"_count":1`)
	a.do("GET", "/dbs/db/users", "", "x-ms-continuation: "+page.h.Get("x-ms-continuation")).is(200).has(`{"id":"v"`)
	a.do("POST", "/dbs/db/users", `{"query":"SELECT * FROM root r WHERE r.id=@id","parameters":[{"name":"@id",`+
		`"value":"v"}]}`, "x-ms-documentdb-isquery: True").is(200).has(`"_count":1`)
	a.do("GET", "/dbs/db/users/"+rid, "").is(200).has(`"id":"u"`)
	got := a.do("GET", "/dbs/db/users/u", "").is(200)
	a.do("GET", "/dbs/db/users/u", "", "if-none-match: "+got.h.Get("etag")).is(304)
	a.do("PUT", "/dbs/db/users/u", `{"id":"w"}`, `if-match: "x"`).is(412)
	a.do("PUT", "/dbs/db/users/u", `{"id":"v"}`).is(409)
	if put := a.do("PUT", "/dbs/db/users/u", `{"id":"w"}`, "if-match: "+got.h.Get("etag")).is(
		200); put.json()["_rid"] != rid || put.h.Get("etag") == got.h.Get("etag") {
		t.Fatalf("%s", put.body)
	}
	a.do("GET", "/dbs/db/users/u", "").is(404)
	a.do("DELETE", "/dbs/db/users/w", "").is(204)
	a.do("DELETE", "/dbs/db/users/w", "").is(404)
	a.do("PATCH", "/dbs/db/users/v", "{}").is(405)
}

func TestPermissions(t *testing.T) {
	a := withUser(t)
	body := `{"id":"p","permissionMode":"read","resource":"dbs/db/colls/c","resourcePartitionKey":["a"]}`
	made := a.do("POST", perms, body).is(201).json()
	if made["permissionMode"] != "read" || made["resource"] != "dbs/db/colls/c" || len(made["_rid"].(string)) != 24 ||
		!strings.HasPrefix(made["_token"].(string), "type=resource&ver=1&sig=") {
		t.Fatalf("%v", made)
	}
	a.do("POST", perms, body).is(409)
	// A user has one permission for a resource, however the resource is named. Another user may have one too.
	self := strings.Trim(a.do("GET", "/dbs/db/colls/c", "").json()["_self"].(string), "/")
	a.do("POST", perms, `{"id":"q","permissionMode":"All","resource":"`+self+`"}`).is(409)
	a.do("POST", perms, `{"id":"q","permissionMode":"All","resource":"`+self+`"}`,
		"x-ms-documentdb-is-upsert: true").is(409)
	a.do("POST", "/dbs/db/users", `{"id":"u2"}`).is(201)
	a.do("POST", "/dbs/db/users/u2/permissions", body).is(201)
	a.do("POST", perms, `{"id":"item","permissionMode":"All","resource":"dbs/db/colls/c/docs/1"}`).is(201)

	tokens := map[any]bool{made["_token"]: true}
	for _, r := range []*reply{a.do("GET", perms+"/p", ""), a.do("GET", perms+"/p", ""), a.do("PUT", perms+"/p", body),
		a.do("GET", perms+"/"+made["_rid"].(string), "")} {
		tok := r.is(200).json()["_token"]
		if tokens[tok] {
			t.Errorf("%s: the token is not new", r.what)
		}
		tokens[tok] = true
	}
	a.do("GET", perms, "").is(200).has(`"_count":2`).has(`"_token":"type=resource`)
	a.do("POST", perms, `{"query":"SELECT * FROM c WHERE c.id = 'item'"}`, "content-type: application/query+json").is(
		200).has(`"_count":1`)
	for _, bad := range []string{
		`{"id":"x","resource":"dbs/db/colls/c"}`, `{"id":"x","permissionMode":"Read"}`,
		`{"id":"x","permissionMode":"Write","resource":"dbs/db/colls/c"}`,
		`{"id":"x","permissionMode":"All","resource":"dbs/db"}`, `{"id":"x","permissionMode":"All","resource":""}`,
		`{"id":"x","permissionMode":"All","resource":"dbs/db/colls/c/pkranges/0"}`,
		`{"id":"x","permissionMode":"All","resource":"dbs/db/colls/c/docs/2","resourcePartitionKey":["a","b"]}`,
		`{"id":"x","permissionMode":"All","resource":"dbs/db/colls/c/docs/2","resourcePartitionKey":{"a":1}}`,
	} {
		a.do("POST", perms, bad).is(400)
	}
	a.do("POST", perms, `{"id":"x","permissionMode":"All","resource":"dbs/db/colls/none"}`).is(404)
	// The service looks up names, not resource ids.
	const nothing = "dbs/AQAAAA==/colls/AQAAAJ0fgTc="
	a.do("POST", perms, `{"id":"x","permissionMode":"All","resource":"`+nothing+`"}`).is(201).has(nothing)
	a.do("POST", perms, `{"id":"y","permissionMode":"Read","resource":"`+nothing+`"}`).is(409)
	a.do("POST", perms, `{"id":"y","permissionMode":"Read","resource":"`+nothing+`/docs/AQAAAJ0fgTcBAAAAAAAAAA=="}`).
		is(201)
	a.do("POST", perms, `{"id":"z","permissionMode":"Read","resource":"`+nothing+`/pkranges/0"}`).is(400)
	a.do("POST", "/dbs/db/users/none/permissions", body).is(404).sub("1003")
	for _, life := range []string{"9", "86401", "-1", "x"} {
		a.do("GET", perms+"/p", "", "x-ms-documentdb-expiry-seconds: "+life).is(400)
	}
	a.do("DELETE", perms+"/p", "").is(204)
	a.do("GET", perms+"/p", "").is(404)
	a.do("DELETE", "/dbs/db/users/u", "").is(204)
	a.do("GET", perms, "").is(404).sub("1003")
}

// The rights of each token. The columns: a Read and an All token of the container, both bound to key "a", and an All
// token of item 1 (in any partition).
func TestTokenRights(t *testing.T) {
	a := withUser(t)
	a.do("POST", "/dbs/db/colls", `{"id":"other","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
	tokens := []string{
		a.grantOf("p1", "Read", "dbs/db/colls/c", ""), a.grantOf("p1", "All", "dbs/db/colls/c", ""),
		a.grantOf("p1", "Read", "dbs/db/colls/c", `["a"]`), a.grantOf("p1", "All", "dbs/db/colls/c", `"a"`),
		a.grantOf("p2", "All", "dbs/db/colls/c/docs/1", ""),
	}
	self := "/" + strings.Trim(a.do("GET", "/dbs/db/colls/c", "").json()["_self"].(string), "/")
	ridA := a.do("GET", docs+"/1", "", key("a")).json()["_rid"].(string)
	ridB := a.do("GET", docs+"/1", "", key("b")).json()["_rid"].(string)
	query, cross := "x-ms-documentdb-isquery: True", "x-ms-documentdb-query-enablecrosspartition: True"
	all := `{"query":"SELECT * FROM c"}`
	batch := `[{"operationType":"Read","id":"1","partitionKey":"[\"b\"]"}]`
	isBatch := "x-ms-cosmos-is-batch-request: True"
	for _, x := range []struct {
		method, target, body string
		headers              []string
		want                 [5]int
	}{
		{"GET", "/", "", nil, [5]int{200, 200, 200, 200, 200}},
		{"POST", "/", "", nil, [5]int{403, 403, 403, 403, 403}},
		{"GET", "/dbs", "", nil, [5]int{403, 403, 403, 403, 403}},
		{"GET", "/dbs/db", "", nil, [5]int{403, 403, 403, 403, 403}},
		{"GET", "/dbs/db/colls", "", nil, [5]int{403, 403, 403, 403, 403}},
		{"GET", "/offers", "", nil, [5]int{403, 403, 403, 403, 403}},
		{"GET", perms, "", nil, [5]int{403, 403, 403, 403, 403}},
		{"GET", "/dbs/db/colls/c", "", nil, [5]int{200, 200, 200, 200, 200}},
		{"GET", self, "", nil, [5]int{200, 200, 200, 200, 200}},
		{"GET", "/dbs/db/colls/other", "", nil, [5]int{403, 403, 403, 403, 403}},
		{"GET", "/dbs/db/colls/none", "", nil, [5]int{403, 403, 403, 403, 403}},
		{"GET", "/dbs/db/colls/c/pkranges", "", nil, [5]int{200, 200, 200, 200, 200}},
		{"POST", docs, all, []string{"x-ms-cosmos-is-query-plan-request: True"}, [5]int{200, 200, 200, 200, 200}},
		{"GET", docs + "/1", "", []string{key("a")}, [5]int{200, 200, 200, 200, 200}},
		{"GET", docs + "/1", "", []string{key("b")}, [5]int{200, 200, 403, 403, 200}},
		{"GET", docs + "/1", "", nil, [5]int{400, 400, 403, 403, 400}},
		{"GET", self + "/docs/" + ridA, "", []string{key("a")}, [5]int{200, 200, 200, 200, 200}},
		{"GET", self + "/docs/" + ridB, "", []string{key("a")}, [5]int{200, 200, 403, 403, 200}},
		{"GET", docs + "/2", "", []string{key("a")}, [5]int{404, 404, 404, 404, 403}},
		{"GET", docs, "", []string{key("a")}, [5]int{200, 200, 200, 200, 403}},
		{"GET", docs, "", nil, [5]int{200, 200, 403, 403, 403}},
		{"GET", docs, "", []string{"a-im: Incremental feed"}, [5]int{200, 200, 403, 403, 403}},
		{"GET", docs, "", []string{"x-ms-cosmos-is-query-plan-request: True"}, [5]int{200, 200, 403, 403, 403}},
		{"GET", docs, "", []string{"x-ms-cosmos-is-query-plan-request: True", "a-im: Incremental feed"},
			[5]int{200, 200, 403, 403, 403}},
		{"POST", docs, all, []string{query, key("a")}, [5]int{200, 200, 200, 200, 403}},
		{"POST", docs, all, []string{query, key("b")}, [5]int{200, 200, 403, 403, 403}},
		{"POST", docs, all, []string{query, cross}, [5]int{200, 200, 403, 403, 403}},
		{"POST", docs, `[{"operationType":"Read","id":"1"}]`,
			[]string{isBatch, "x-ms-cosmos-batch-atomic: True", key("a")}, [5]int{403, 200, 403, 200, 403}},
		{"POST", docs, batch, []string{isBatch, "x-ms-cosmos-batch-atomic: True", key("a")},
			[5]int{403, 400, 403, 400, 403}},
		{"POST", docs, batch, []string{isBatch, query, key("a")}, [5]int{403, 200, 403, 403, 403}},
		{"POST", docs, `{"id":"1","pk":"a"}`, []string{"x-ms-documentdb-is-upsert: True", key("a")},
			[5]int{403, 200, 403, 200, 403}},
		{"POST", docs, `{"id":"1","pk":"b"}`, []string{"x-ms-documentdb-is-upsert: True", key("a")},
			[5]int{403, 400, 403, 400, 403}},
		{"PUT", docs + "/1", `{"id":"1","pk":"a"}`, []string{key("a")}, [5]int{403, 200, 403, 200, 200}},
		{"PUT", docs + "/1", `{"id":"1","pk":"b"}`, []string{key("b")}, [5]int{403, 200, 403, 403, 200}},
		{"PATCH", docs + "/1", `{"operations":[{"op":"set","path":"/n","value":1}]}`, []string{key("a")},
			[5]int{403, 200, 403, 200, 200}},
		{"DELETE", docs + "/none", "", []string{key("a")}, [5]int{403, 404, 403, 404, 403}},
		{"PUT", "/dbs/db/colls/c", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`, nil,
			[5]int{403, 200, 403, 403, 403}},
		{"POST", "/dbs/db/colls/c/sprocs", `{}`, nil, [5]int{403, 0, 403, 403, 403}},
	} {
		for i, token := range tokens {
			r := a.do(x.method, x.target, x.body, append(x.headers, token)...)
			if r.code != x.want[i] && x.want[i] != 0 {
				t.Errorf("token %d: %s: %d, want %d: %s", i, r.what, r.code, x.want[i], r.body)
			}
			if r.code == 403 {
				r.is(403).has("Insufficient permissions")
			}
		}
	}
	// A token of the container may delete it. Then the token is invalid, also for a new container with the same name.
	a.do("DELETE", "/dbs/db/colls/c", "", tokens[3]).is(403)
	a.do("DELETE", "/dbs/db/colls/c", "", tokens[1]).is(204)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
	a.do("GET", "/dbs/db/colls/c", "", tokens[1]).is(403)
}

// A permission by resource id is only for that item, not for items with the same id in other partitions.
func TestTokenOfItemByRID(t *testing.T) {
	a := withUser(t)
	token := a.grantOf("p", "Read", strings.Trim(a.do("GET", docs+"/1", "", key("a")).json()["_self"].(string), "/"),
		"")
	a.do("GET", docs+"/1", "", key("a"), token).is(200)
	a.do("GET", docs+"/1", "", key("b"), token).is(403)
}

func TestTokenExpiresAndIsOurs(t *testing.T) {
	clk := clock.Fake(testNow)
	s, other := wire.NewSigner([]byte("key")), wire.NewSigner([]byte("another key"))
	g := &wire.Grant{All: true, Expiry: testNow.Unix() + 10, Coll: [8]byte{1, 2}, Child: "docs/1", Key: `["a"]`}
	token := s.Seal(g, [8]byte{})
	if got, err := s.Open(token, clk.Now()); err != nil || *got != *g {
		t.Fatalf("%+v %v", got, err)
	}
	if s.Seal(g, [8]byte{1}) == token {
		t.Error("the nonce makes no difference")
	}
	for name, x := range map[string]struct {
		token string
		at    time.Duration
		s     *wire.Signer
		want  status.Code
	}{
		"expired":      {token, 10 * time.Second, s, status.Forbidden},
		"another key":  {token, 0, other, status.Unauthorized},
		"no body":      {"type=resource&ver=1&sig=AAAA;", 0, s, status.Unauthorized},
		"empty":        {"type=resource&ver=1&sig=;;", 0, s, status.Unauthorized},
		"no signature": {"type=resource&ver=1", 0, s, status.Unauthorized},
		"more at end":  {token + "x", 0, s, status.Unauthorized},
	} {
		if got, err := x.s.Open(x.token, clk.Now().Add(x.at)); status.CodeOf(err) != x.want || got != nil {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	// A change of any byte invalidates the token.
	for i := range token {
		b := []byte(token)
		b[i] ^= 1
		if got, err := s.Open(string(b), clk.Now()); err == nil && string(b[:24]) == token[:24] {
			t.Errorf("byte %d changed: %v", i, got)
		}
	}
}

func TestClientKeys(t *testing.T) {
	a := withContainer(t)
	const keys = "/dbs/db/clientencryptionkeys"
	body := `{"id":"k","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256","wrappedDataEncryptionKey":"YWJj",` +
		`"keyWrapMetadata":{"type":"AZURE_KEY_VAULT","name":"n","value":"https://x/keys/1","algorithm":"RSA-OAEP"}}`
	made := a.do("POST", keys, body).is(201).has(`"keyWrapMetadata":{"type":"AZURE_KEY_VAULT"`).json()
	if made["wrappedDataEncryptionKey"] != "YWJj" || made["encryptionAlgorithm"] != "AEAD_AES_256_CBC_HMAC_SHA256" ||
		made["_self"] == nil {
		t.Fatalf("%v", made)
	}
	a.do("POST", keys, body).is(409)
	a.do("POST", keys, `{"id":"l"}`).is(400)
	a.do("POST", keys, strings.Replace(body, `"YWJj"`, `1`, 1)).is(400)
	a.do("GET", keys, "").is(200).has(`"ClientEncryptionKeys":[{"id":"k"`)
	a.do("POST", keys, `{"query":"SELECT * FROM c WHERE c.id='k'"}`, "x-ms-documentdb-isquery: True").is(200).has(
		`"_count":1`)
	got := a.do("GET", keys+"/k", "").is(200)
	a.do("GET", keys+"/"+made["_rid"].(string), "").is(200)
	a.do("PUT", keys+"/k", strings.Replace(body, `"id":"k"`, `"id":"l"`, 1)).is(400)
	a.do("PUT", keys+"/k", strings.Replace(body, "YWJj", "ZGVm", 1), "if-match: "+got.h.Get("etag")).is(200).has("ZGVm")
	a.do("PUT", keys+"/k", body, "if-match: "+got.h.Get("etag")).is(412)
	a.do("DELETE", keys+"/k", "").is(204)
	a.do("GET", keys+"/k", "").is(404)
}

func FuzzResourceToken(f *testing.F) {
	s := wire.NewSigner([]byte("key"))
	good := s.Seal(&wire.Grant{Expiry: testNow.Unix() + 10, Child: "docs/1"}, [8]byte{})
	f.Add("type=resource&ver=1&sig=AAAAAAAAAAAAAAAAAAAAAA==;AVI=;")
	f.Add(good[:len(good)-1])
	f.Fuzz(func(t *testing.T, token string) {
		if g, err := s.Open(token, testNow); err == nil && token != good && !strings.HasSuffix(token, good[24:]) {
			t.Fatalf("%q accepted: %+v", token, g)
		}
	})
}
