package tableapi

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
)

// Another API can create containers whose names differ only in case, in another database, to which the tables' naming
// rule doesn't apply. A table's signature doesn't distinguish case, so it must not open either of them.
func TestSignatureOfAnAmbiguousName(t *testing.T) {
	s, _ := newServer(t, true)
	ctx := context.Background()
	if _, err := s.e.EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	make := func(id string) {
		t.Helper()
		if _, err := s.e.CreateContainer(
			ctx, "db", core.ContainerSpec{
				ID: id, PartitionKey: core.PartitionKeyDef{Paths: []string{"/$pk"}}}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(name string) int {
		code, _ := answer(s, "GET", "/"+name+"()?"+
			sas(url.Values{"sv": {"2019-02-02"}, "tn": {name}, "sp": {"r"}, "se": {"2024-03-05T00:00:00Z"}}), nil)
		return code
	}
	make("Secx")
	if got := get("db.Secx"); got != 200 {
		t.Errorf("the only one of its name: got %d", got)
	}
	make("secx")
	for _, name := range []string{"db.Secx", "db.secx"} {
		if got := get(name); got != 403 {
			t.Errorf("%s, which is one of two: got %d, want 403", name, got)
		}
	}
}

// Tables that other APIs create in the tables' database obey the rule too, in either order and when they race.
func TestNamesDifferInMoreThanCase(t *testing.T) {
	s, _ := newServer(t, false)
	ctx := context.Background()
	if out := wire(t, s, "POST /Tables\n~\n{\"TableName\":\"First\"}"); !strings.HasPrefix(out, "201") {
		t.Fatal(out)
	}
	_, err := s.e.CreateContainer(ctx, Database,
		core.ContainerSpec{ID: "FIRST", PartitionKey: core.PartitionKeyDef{Paths: []string{"/$pk"}}})
	if !status.Is(err, status.Conflict) {
		t.Errorf("a container with a table's name in another case: %v", err)
	}
	if _, err := s.e.RenameContainer(ctx, Database, "First", "FIRST", false); err != nil {
		t.Errorf("a table's own name in another case: %v", err)
	}
	names := []string{"racer", "Racer", "RACER", "raceR"}
	made := make([]bool, len(names))
	var wg sync.WaitGroup
	for i, n := range names {
		wg.Go(func() { made[i] = strings.HasPrefix(wire(t, s, "POST /Tables\n~\n{\"TableName\":\""+n+"\"}"), "201") })
	}
	wg.Wait()
	n := 0
	for _, ok := range made {
		if ok {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of %v were made, want one", n, names)
	}
}
