package sqlapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestPagesOfWhatIsDeleted: a client that lists resources page by page, and deletes each page before it asks for the
// next one, meets all of them.
func TestPagesOfWhatIsDeleted(t *testing.T) {
	const n = 8
	for _, x := range []struct {
		feed, member string
		body         string // of one, with its name
		made         string // where they are made; "": in the feed
		headers      string
	}{
		{"/dbs", "Databases", `{"id":"%s"}`, "", ""},
		{"/dbs/db/colls", "DocumentCollections", `{"id":"%s","partitionKey":{"paths":["/pk"]}}`, "", ""},
		{"/dbs/db/users", "Users", `{"id":"%s"}`, "", ""},
		{"/dbs/db/clientencryptionkeys", "ClientEncryptionKeys", `{"id":"%s","encryptionAlgorithm":"a",` +
			`"wrappedDataEncryptionKey":"a","keyWrapMetadata":{}}`, "", ""},
		{"/dbs/db/colls/c/sprocs", "StoredProcedures", `{"id":"%s","body":"function f() {}"}`, "", ""},
		{"/offers", "Offers", `{"id":"%s","partitionKey":{"paths":["/pk"]}}`, "/dbs/db/colls",
			"x-ms-offer-throughput: 400"},
	} {
		for _, query := range []bool{false, true} {
			a := newAPI(t)
			if x.feed != "/dbs" {
				a.do("POST", "/dbs", `{"id":"db"}`).is(201)
			}
			if strings.HasSuffix(x.feed, "sprocs") {
				a.do("POST", "/dbs/db/colls", collC).is(201)
			}
			at := x.feed
			if x.made != "" {
				at = x.made
			}
			for i := range n {
				a.do("POST", at, fmt.Sprintf(x.body, fmt.Sprint("r", i)), x.headers).is(201)
			}
			page := func(token string) (links []string, next string) {
				headers := []string{"x-ms-max-item-count: 3"}
				if token != "" {
					headers = append(headers, "x-ms-continuation: "+token)
				}
				r := a.do("GET", x.feed, "", headers...)
				if query {
					r = a.do("POST", x.feed, `{"query":"SELECT * FROM r"}`, append(headers,
						"content-type: application/query+json", "x-ms-documentdb-isquery: true")...)
				}
				var got map[string]json.RawMessage
				var rows []struct{ ID, Resource string }
				if err := json.Unmarshal([]byte(r.is(200).body), &got); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(got[x.member], &rows); err != nil {
					t.Fatal(err)
				}
				for _, row := range rows {
					link := x.feed + "/" + row.ID
					if row.Resource != "" { // an offer goes with its container
						link = "/" + strings.TrimSuffix(row.Resource, "/")
					}
					links = append(links, link)
				}
				return links, r.h.Get("x-ms-continuation")
			}
			met := 0
			for links, next := page(""); ; links, next = page(next) {
				for _, link := range links {
					a.do("DELETE", link, "").is(204)
				}
				if met += len(links); next == "" {
					break
				}
			}
			if left, _ := page(""); met != n || len(left) > 0 {
				t.Errorf("%s, query %v: met %d of %d, and %v are left", x.feed, query, met, n, left)
			}
		}
	}
}

// TestPagesOfLargeResources: a page of a list has at most 4 MB, unless one resource alone has more.
func TestPagesOfLargeResources(t *testing.T) {
	const n = 5
	a := newAPI(t)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", collC).is(201)
	const feed = "/dbs/db/colls/c/udfs"
	text := strings.Repeat("x", 1500<<10)
	for i := range n {
		a.do("POST", feed, fmt.Sprintf(`{"id":"f%d","body":"function f() {} //%s"}`, i, text)).is(201)
	}
	var got []string
	for token := "none"; token != ""; {
		headers := []string{"x-ms-continuation: " + token}
		if token == "none" {
			headers = nil
		}
		r := a.do("GET", feed, "", headers...).is(200)
		var f struct{ UserDefinedFunctions []struct{ ID string } }
		if err := json.Unmarshal([]byte(r.body), &f); err != nil {
			t.Fatal(err)
		}
		if len(r.body) > maxReply+1024 {
			t.Errorf("a page of %d bytes", len(r.body))
		}
		for _, u := range f.UserDefinedFunctions {
			got = append(got, u.ID)
		}
		token = r.h.Get("x-ms-continuation")
	}
	if strings.Join(got, " ") != "f0 f1 f2 f3 f4" {
		t.Errorf("%v", got)
	}
}
