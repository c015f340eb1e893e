package many

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// rest sends a signed request of the NoSQL API: azcosmos has no methods for programs and users. link is the resource's,
// or the parent's with a POST. token replaces the signature; "": none. It returns the status and the body.
func (cl *cluster) rest(method, kind, link, body, token string) (int, string) {
	cl.t.Helper()
	path := link
	if method == "POST" && !strings.Contains(link, "/"+kind+"/") {
		path += "/" + kind
	}
	r, err := http.NewRequest(method, cl.sql+"/"+path, strings.NewReader(body))
	ok(cl.t, err)
	date := time.Now().UTC().Format(http.TimeFormat)
	if token == "" {
		secret, err := base64.StdEncoding.DecodeString(key)
		ok(cl.t, err)
		h := hmac.New(sha256.New, secret)
		fmt.Fprintf(h, "%s\n%s\n%s\n%s\n\n", strings.ToLower(method), kind, link, strings.ToLower(date))
		token = "type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	r.Header.Set("Authorization", url.QueryEscape(token))
	r.Header.Set("x-ms-date", date)
	r.Header.Set("x-ms-version", "2018-12-31")
	r.Header.Set("x-ms-documentdb-partitionkey", `["p1"]`)
	resp, err := http.DefaultClient.Do(r)
	ok(cl.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	ok(cl.t, err)
	return resp.StatusCode, string(b)
}

// want sends a request and checks its status.
func (cl *cluster) want(status int, method, kind, link, body string) string {
	cl.t.Helper()
	got, reply := cl.rest(method, kind, link, body, "")
	if got != status {
		cl.t.Fatalf("%s %s: %d %s", method, link, got, reply)
	}
	return reply
}

// A program is the stored one at every server, also right after another server has replaced or removed it.
func TestPrograms(t *testing.T) {
	cl := start(t, 2)
	ct := cl.container(400)
	const link = "dbs/db/colls/c"
	define := func(method, kind, at, id, text, more string) {
		quoted, err := json.Marshal(text)
		ok(t, err)
		status := map[string]int{"POST": 201, "PUT": 200}[method]
		cl.want(status, method, kind, at, fmt.Sprintf(`{"id":%q,"body":%s%s}`, id, quoted, more))
	}
	key := azcosmos.NewPartitionKeyString("p1")
	trigger := `,"triggerOperation":"Create","triggerType":"Pre"`
	for round := range 6 {
		method, at := "PUT", [3]string{link + "/sprocs/p", link + "/udfs/f", link + "/triggers/t"}
		if round == 0 {
			method, at = "POST", [3]string{link, link, link}
		}
		define(method, "sprocs", at[0], "p",
			fmt.Sprintf("function () { getContext().getResponse().setBody(%d) }", round), "")
		define(method, "udfs", at[1], "f", fmt.Sprintf("function (n) { return n * 100 + %d }", round), "")
		define(method, "triggers", at[2], "t", fmt.Sprintf(`function () {
			var r = getContext().getRequest(), d = r.getBody();
			d.by = %d;
			r.setBody(d);
		}`, round), trigger)
		for s := range cl.all {
			if got := cl.want(200, "POST", "sprocs", link+"/sprocs/p", "[]"); got != fmt.Sprint(round) {
				t.Fatalf("round %d: the procedure returns %s", round, got)
			}
			got := queryPages(t, ct, key, "SELECT VALUE udf.f(c.n) FROM c WHERE c.n = 7", 10)
			if fmt.Sprint(got) != fmt.Sprintf("[%d]", 700+round) {
				t.Fatalf("round %d: the function returns %s", round, got)
			}
			id := fmt.Sprintf("t%d-%d", round, s)
			r, err := ct.CreateItem(bg, key, fmt.Appendf(nil, `{"id":%q,"pk":"p1"}`, id),
				&azcosmos.ItemOptions{PreTriggers: []string{"t"}, EnableContentResponseOnWrite: true})
			ok(t, err)
			if !strings.Contains(string(r.Value), fmt.Sprintf(`"by":%d,`, round)) {
				t.Fatalf("round %d: the trigger makes %s", round, r.Value)
			}
		}
	}
	cl.want(204, "DELETE", "sprocs", link+"/sprocs/p", "")
	for range cl.all {
		cl.want(404, "POST", "sprocs", link+"/sprocs/p", "[]")
	}
}

// Users and permissions that one server creates are there at the others. A token of one server is accepted by all.
func TestUsers(t *testing.T) {
	cl := start(t, 2)
	cl.container(400)
	const item = "dbs/db/colls/c/docs/01"
	for round := range 3 {
		cl.want(201, "POST", "users", "dbs/db", `{"id":"u"}`)
		reply := cl.want(201, "POST", "permissions", "dbs/db/users/u",
			`{"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"}`)
		var p struct {
			Token string `json:"_token"`
		}
		ok(t, json.Unmarshal([]byte(reply), &p))
		for range cl.all {
			cl.want(200, "GET", "permissions", "dbs/db/users/u/permissions/p", "")
			if code, body := cl.rest("GET", "docs", item, "", p.Token); code != 200 {
				t.Fatalf("round %d, with a token: %d %s", round, code, body)
			}
			if code, _ := cl.rest("DELETE", "docs", item, "", p.Token); code != 403 {
				t.Fatalf("round %d, a delete with a token for reading: %d", round, code)
			}
		}
		cl.want(204, "DELETE", "users", "dbs/db/users/u", "")
		for range cl.all {
			cl.want(404, "GET", "permissions", "dbs/db/users/u/permissions/p", "")
		}
	}
}
