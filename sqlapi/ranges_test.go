package sqlapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A process knows the partitions that another one has made when a request names one of them. It answers for a partition
// that the other one has split, with all of its items, until a read meets the split: then the id is gone.
func TestPartitionsSplitByAnotherProcess(t *testing.T) {
	store, clk := kvtest.NewShared(memkv.New(), 1), clock.Fake(testNow)
	var doors [2]*api
	for i := range doors {
		doors[i] = processOf(t, store, clk)
	}
	const docs, items = "/dbs/db/colls/c/docs", 40
	doors[0].do("POST", "/dbs", `{"id":"db"}`).is(http.StatusCreated)
	doors[0].do("POST", "/dbs/db/colls",
		`{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`).is(http.StatusCreated)
	for n := range items {
		doors[1].do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"p%[1]d"}`, n),
			fmt.Sprintf(`x-ms-documentdb-partitionkey: ["p%d"]`, n)).is(http.StatusCreated)
	}
	ask := func(id string) *reply {
		return doors[1].do("POST", docs, `{"query":"SELECT VALUE COUNT(1) FROM c WHERE c.id != 'x'"}`,
			"content-type: application/query+json", "x-ms-documentdb-isquery: true",
			"x-ms-documentdb-query-enablecrosspartition: true", "x-ms-documentdb-partitionkeyrangeid: "+id)
	}
	ask("0").is(http.StatusOK).has(fmt.Sprintf(`"Documents":[%d]`, items))
	ct, err := doors[0].srv.core.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	if err := ct.SplitPartition(t.Context(), "0"); err != nil {
		t.Fatal(err)
	}
	ask("0").is(http.StatusOK).has(fmt.Sprintf(`"Documents":[%d]`, items))
	ask("0").is(http.StatusGone).sub("1002")
	found := 0
	for _, id := range []string{"1", "2"} {
		var got struct{ Documents []int }
		if err := json.Unmarshal([]byte(ask(id).is(http.StatusOK).body), &got); err != nil || len(got.Documents) != 1 {
			t.Fatal(got, err)
		}
		found += got.Documents[0]
	}
	if found != items {
		t.Errorf("the halves have %d items", found)
	}
	ask("9").is(http.StatusGone).sub("1002")
}
