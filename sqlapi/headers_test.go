package sqlapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pages reads a query to its end and returns the rows and the longest continuation.
func (a *api) pages(query string, headers ...string) (rows []string, longest int) {
	a.t.Helper()
	for token := ""; ; {
		h := append([]string{isQuery, cross}, headers...)
		if token != "" {
			h = append(h, "x-ms-continuation: "+token)
		}
		r := a.do("POST", docs, `{"query":"`+query+`"}`, h...).is(200)
		var f struct{ Documents []json.RawMessage }
		if err := json.Unmarshal([]byte(r.body), &f); err != nil {
			a.t.Fatal(err)
		}
		for _, d := range f.Documents {
			rows = append(rows, string(d))
		}
		token = r.h.Get("x-ms-continuation")
		if longest = max(longest, len(token)); token == "" {
			return rows, longest
		}
	}
}

// A continuation is never longer than the client allows, for any length of keys and values, and any number of distinct
// rows.
func TestTokenLimit(t *testing.T) {
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
	for i := range 300 {
		id, pk := fmt.Sprintf("%d-%s", i, strings.Repeat("i", 1000)),
			fmt.Sprintf("%d-%s", i%100, strings.Repeat("k", 1900))
		a.do("POST", docs, fmt.Sprintf(`{"id":"%s","pk":"%s","n":%d,"s":"%s%d","m":"%d","l":[1,2,3]}`, id, pk, i,
			strings.Repeat("s", 1500), i, i), key(pk)).is(201)
	}
	for _, q := range []string{
		"SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.s",
		"SELECT VALUE c.n FROM c ORDER BY c.m DESC, c.s DESC", "SELECT VALUE c.n FROM c WHERE c.n > 280",
		"SELECT VALUE c.n FROM c WHERE STARTSWITH(c.s, 'sss')", "SELECT DISTINCT VALUE c.m FROM c",
		"SELECT DISTINCT VALUE c.m FROM c ORDER BY c.m", "SELECT DISTINCT TOP 290 c.n, c.m FROM c",
		"SELECT c.n, l FROM c JOIN l IN c.l", "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
		"SELECT VALUE c.n FROM c OFFSET 10 LIMIT 250",
	} {
		want, _ := a.pages(q, "x-ms-max-item-count: 10000")
		got, longest := a.pages(q, "x-ms-max-item-count: 7", "x-ms-documentdb-responsecontinuationtokenlimitinkb: 1")
		if longest == 0 || longest > 1024 {
			t.Errorf("%s: a token of %d bytes", q, longest)
		}
		if slices.Sort(want); len(want) < 10 {
			t.Errorf("%s: %d rows", q, len(want))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %d rows in pages, %d at once", q, len(got), len(want))
		}
	}
	if _, longest := a.pages("SELECT DISTINCT VALUE c.m FROM c", "x-ms-max-item-count: 7"); longest < 1500 {
		t.Errorf("without a limit DISTINCT remembers its rows: %d", longest)
	}
	for _, bad := range []string{"0", "-1", "x", "99999999999"} {
		a.do("POST", docs, `{"query":"SELECT * FROM c"}`, isQuery, cross,
			"x-ms-documentdb-responsecontinuationtokenlimitinkb: "+bad).is(400)
	}
}

// The reply headers that SDKs or people read.
func TestReplyHeaders(t *testing.T) {
	a := withItems(t, 20)
	has := func(r *reply, name, want string) {
		t.Helper()
		if got := r.h.Get(name); got != want {
			t.Errorf("%s: %s is %q, want %q", r.what, name, got, want)
		}
	}
	for q, info := range map[string]string{
		"SELECT * FROM c":                                    `{"reverseRidEnabled":false,"reverseIndexScan":false}`,
		"SELECT * FROM c ORDER BY c.n":                       `{"reverseRidEnabled":false,"reverseIndexScan":false}`,
		"SELECT * FROM c ORDER BY c.n DESC":                  `{"reverseRidEnabled":false,"reverseIndexScan":true}`,
		"SELECT * FROM c ORDER BY c.pk, c.n DESC":            `{"reverseRidEnabled":false,"reverseIndexScan":false}`,
		"SELECT VALUE COUNT(1) FROM c":                       `{"reverseRidEnabled":false,"reverseIndexScan":false}`,
		"SELECT c.pk FROM c WHERE c.n > 3 ORDER BY c.n DESC": `{"reverseRidEnabled":false,"reverseIndexScan":true}`,
	} {
		r := a.do("POST", docs, `{"query":"`+q+`"}`, isQuery, cross, "x-ms-documentdb-partitionkeyrangeid: 1").is(200)
		has(r, "x-ms-cosmos-query-execution-info", info)
		has(r, "x-ms-documentdb-partitionkeyrangeid", "1")
		has(r, "x-ms-cosmos-physical-partition-id", "1")
		has(r, "x-ms-global-Committed-lsn", r.h.Get("lsn"))
	}
	for _, path := range []string{"/", "/dbs/db/colls/c"} {
		r := a.do("GET", path, "").is(200)
		has(r, "x-ms-schemaversion", "1.21")
		has(r, "x-ms-number-of-read-regions", "0")
		has(r, "x-ms-last-state-change-utc", testNow.UTC().Format("Mon, 02 Jan 2006 15:04:05.000 GMT"))
		if n, err := strconv.Atoi(r.h.Get("x-ms-transport-request-id")); err != nil || n < 1 {
			t.Error(err, n)
		}
		if r.h.Get("x-ms-serviceversion") == "" || r.h.Get("x-ms-gatewayversion") == "" {
			t.Error("no versions")
		}
	}
	r := a.do("GET", "/", "").is(200) // the first SDK for Java parses these as numbers
	has(r, "x-ms-max-media-storage-usage-mb", "2048")
	has(r, "x-ms-media-storage-usage-mb", "0")
	a.do("POST", "/dbs/db/colls", `{"id":"lazy","partitionKey":{"paths":["/pk"],"version":2},`+
		`"indexingPolicy":{"indexingMode":"lazy"}}`).is(201)
	has(a.do("GET", "/dbs/db/colls/lazy", "").is(200), "x-ms-documentdb-collection-lazy-indexing-progress", "100")
	has(a.do("GET", "/dbs/db/colls/c", "").is(200), "x-ms-documentdb-collection-lazy-indexing-progress", "")
	var f struct{ Offers []struct{ ID string } }
	if err := json.Unmarshal([]byte(a.do("GET", "/offers", "").is(200).body), &f); err != nil {
		t.Fatal(err)
	}
	has(a.do("GET", "/offers/"+f.Offers[0].ID, "").is(200), "x-ms-offer-replace-pending", "false")
}
