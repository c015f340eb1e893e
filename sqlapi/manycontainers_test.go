package sqlapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
)

// A list of very many containers comes in pages, also if the client doesn't request pages: in the order of their
// creation, each container once.
func TestContainersAreListedInPages(t *testing.T) {
	const n = largestPage + 3
	a := newAPI(t)
	e, ctx := a.srv.core, context.Background()
	if _, err := e.EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range n {
		id := fmt.Sprint("c", n-i)
		if _, err := e.CreateContainer(ctx, "db",
			core.ContainerSpec{ID: id, PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}); err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	for _, tc := range []struct {
		size  string
		pages int
	}{{"", 2}, {"-1", 2}, {"400", 3}, {"5000", 1}} {
		var got []string
		pages, token := 0, ""
		for {
			var h []string
			if tc.size != "" {
				h = append(h, "x-ms-max-item-count: "+tc.size)
			}
			if token != "" {
				h = append(h, "x-ms-continuation: "+token)
			}
			r := a.do("GET", "/dbs/db/colls", "", h...)
			r.is(200)
			var f struct {
				DocumentCollections []struct{ ID string }
				Count               int `json:"_count"`
			}
			if err := json.Unmarshal([]byte(r.body), &f); err != nil || f.Count != len(f.DocumentCollections) {
				t.Fatal(f.Count, err)
			}
			for _, c := range f.DocumentCollections {
				got = append(got, c.ID)
			}
			pages++
			if token = r.h.Get("x-ms-continuation"); token == "" {
				break
			}
		}
		if pages != tc.pages || !slices.Equal(got, want) {
			t.Errorf("pages of %q: %d containers in %d pages, want %d", tc.size, len(got), pages, tc.pages)
		}
	}
	a.do("GET", "/dbs/db/colls", "", "x-ms-continuation: rubbish").is(400)
}
