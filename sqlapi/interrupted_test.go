package sqlapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// processOf is the API of one more process over a store.
func processOf(t *testing.T, store *kvtest.Shared, clk *clock.Clock) *api {
	e, err := core.Open(t.Context(), store.Engine(), core.Options{Clock: clk})
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

// Two processes have one store. What the one tells of a container's contents after the other has written is right, or
// the reply is 503: it is never what was in memory before, whichever of its reads fail.
func TestRepliesAreNotFromMemory(t *testing.T) {
	store, clk := kvtest.NewShared(memkv.New(), 1), clock.Fake(testNow)
	var doors [2]*api
	for i := range doors {
		doors[i] = processOf(t, store, clk)
	}
	const docs = "/dbs/db/colls/c/docs"
	doors[0].do("POST", "/dbs", `{"id":"db"}`).is(201)
	doors[0].do("POST", "/dbs/db/colls",
		`{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`).is(201)
	query := func(headers ...string) func() *reply {
		headers = append(headers, "content-type: application/query+json", "x-ms-documentdb-isquery: true",
			"x-ms-documentdb-query-enablecrosspartition: true")
		return func() *reply {
			return doors[0].do("POST", docs, `{"query":"SELECT VALUE COUNT(1) FROM c"}`, headers...)
		}
	}
	n := 0
	for name, c := range map[string]struct {
		ask  func() *reply
		want string // %d is the number of items
		in   string // the header that has it; "": the body
	}{
		"COUNT":                  {query(), `"Documents":[%d]`, ""},
		"COUNT of a partition":   {query("x-ms-documentdb-partitionkeyrangeid: 0"), `"Documents":[%d]`, ""},
		"COUNT of a logical one": {query(`x-ms-documentdb-partitionkey: ["p"]`), `"Documents":[%d]`, ""},
		"usage": {func() *reply {
			return doors[0].do("GET", "/dbs/db/colls/c", "", "x-ms-documentdb-populatequotainfo: true")
		}, "documentsCount=%d;", "x-ms-resource-usage"},
		"ranges": {func() *reply { return doors[0].do("GET", "/dbs/db/colls/c/pkranges", "") }, `"lsn":%d,`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			right, refused := 0, 0
			write := func() {
				n++
				doors[1].do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"p"}`, n),
					`x-ms-documentdb-partitionkey: ["p"]`).is(http.StatusCreated)
			}
			store.Interrupt(kv.ErrUnavailable, true, write, func() {
				r := c.ask()
				text := r.body
				if c.in != "" {
					text = r.h.Get(c.in)
				}
				switch {
				case r.code == http.StatusServiceUnavailable:
					refused++
				case r.code != http.StatusOK || !strings.Contains(text, fmt.Sprintf(c.want, n)):
					t.Errorf("with %d items: %d %s", n, r.code, text)
				default:
					right++
				}
			})
			if right == 0 || refused == 0 {
				t.Errorf("%d right answers, %d refusals", right, refused)
			}
		})
	}
}
