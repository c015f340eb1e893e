package sqlapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// Items are returned in the order of their creation: by queries without ORDER BY and by the read feed, for all items
// and for one partition key, in one page and in several, after deletes and replaces.
func TestCreationOrder(t *testing.T) {
	for _, path := range []string{"/id", "/pk"} {
		a := newAPI(t)
		a.do("POST", "/dbs", `{"id":"db"}`).is(201)
		a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["`+path+`"],"version":2}}`).is(201)
		keyOf := func(n int) string {
			if path == "/id" {
				return key(fmt.Sprintf("i%d", n))
			}
			return key(fmt.Sprintf("p%d", n%3))
		}
		text := func(n int) string {
			return fmt.Sprintf(`{"id":"i%d","pk":"p%d","n":%d,"g":%d,"l":[%[1]d]}`, n, n%3, n, n%4)
		}
		var made []int
		for n := range 100 {
			a.do("POST", docs, text(n*37%100), keyOf(n*37%100)).is(201)
			made = append(made, n*37%100)
		}
		for n := 0; n < 100; n += 10 {
			a.do("DELETE", docs+fmt.Sprintf("/i%d", n), "", keyOf(n)).is(204)
			a.do("PUT", docs+fmt.Sprintf("/i%d", n+3), text(n+3), keyOf(n+3)).is(200)
		}
		made = slices.DeleteFunc(made, func(n int) bool { return n%10 == 0 })
		a.do("POST", docs, text(50), keyOf(50)).is(201) // made again
		made = append(made, 50)
		wants := func(takes func(n int) bool) (out []string) {
			for _, n := range made {
				if takes(n) {
					out = append(out, strconv.Itoa(n))
				}
			}
			return out
		}
		all := wants(func(int) bool { return true })
		third := wants(func(n int) bool { return n%3 == 1 })
		for _, c := range []struct {
			query string
			want  []string
			key   string
		}{
			{"SELECT VALUE c.n FROM c", all, ""},
			{"SELECT VALUE c.n FROM c WHERE c.g = 2", wants(func(n int) bool { return n%4 == 2 }), ""},
			{"SELECT VALUE c.n FROM c WHERE c.g IN (1, 3) AND c.n >= 0",
				wants(func(n int) bool { return n%2 == 1 }), ""},
			{"SELECT VALUE c.n FROM c WHERE c.n > 90", wants(func(n int) bool { return n > 90 }), ""},
			{"SELECT VALUE c.n FROM c WHERE c.n % 2 = 0", wants(func(n int) bool { return n%2 == 0 }), ""},
			{"SELECT VALUE c.n FROM c WHERE c.pk = 'p1'", third, ""},
			{"SELECT VALUE x FROM c JOIN x IN c.l", all, ""},
			{"SELECT TOP 20 VALUE c.n FROM c", all[:20], ""},
			{"SELECT VALUE c.n FROM c OFFSET 30 LIMIT 25", all[30:55], ""},
			{"SELECT VALUE c.n FROM c", third, key("p1")},
			{"SELECT VALUE c.n FROM c WHERE c.g = 2", wants(func(n int) bool { return n%12 == 10 }), key("p1")},
		} {
			if c.key != "" && path == "/id" {
				continue
			}
			for _, size := range []string{"-1", "7"} {
				h := []string{"x-ms-max-item-count: " + size}
				if c.key != "" {
					h = append(h, c.key)
				}
				if got, _ := a.pages(c.query, h...); !slices.Equal(got, c.want) {
					t.Errorf("%s: %s %s, pages of %s:\n got %v\nwant %v", path, c.query, c.key, size, got, c.want)
				}
			}
		}
		for _, h := range [][]string{{"x-ms-max-item-count: 7"}, {"x-ms-max-item-count: 100"}} {
			var got []string
			for token := ""; ; {
				hs := h
				if token != "" {
					hs = append(slices.Clone(h), "x-ms-continuation: "+token)
				}
				r := a.do("GET", docs, "", hs...).is(200)
				var f struct{ Documents []struct{ N int } }
				if err := json.Unmarshal([]byte(r.body), &f); err != nil {
					t.Fatal(err)
				}
				for _, d := range f.Documents {
					got = append(got, strconv.Itoa(d.N))
				}
				if token = r.h.Get("x-ms-continuation"); token == "" {
					break
				}
			}
			if !slices.Equal(got, all) {
				t.Errorf("%s: the read feed gave %v, not %v", path, got, all)
			}
		}
	}
}

// An item is read by its resource id, also in a container whose partition key is the id.
func TestReadByResourceID(t *testing.T) {
	for _, path := range []string{"/id", "/pk"} {
		a := newAPI(t)
		a.do("POST", "/dbs", `{"id":"db"}`).is(201)
		coll := a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["`+path+`"],"version":2}}`).is(
			201).json()["_rid"].(string)
		db := a.do("GET", "/dbs/db", "").is(200).json()["_rid"].(string)
		for n := range 5 {
			id := fmt.Sprintf("i%d", n)
			rid := a.do("POST", docs, fmt.Sprintf(`{"id":"%s","pk":"%[1]s"}`, id), key(id)).is(
				201).json()["_rid"].(string)
			a.do("GET", "/dbs/"+db+"/colls/"+coll+"/docs/"+rid, "").is(200).has(`"id":"` + id + `"`)
			a.do("DELETE", docs+"/"+id, "", key(id)).is(204)
			a.do("GET", "/dbs/"+db+"/colls/"+coll+"/docs/"+rid, "").is(404)
		}
	}
}
