package sql

import (
	"fmt"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core/value"
)

// TestConcurrentExecutions: executions of one text share only its program. The cache of programs stays bounded.
func TestConcurrentExecutions(t *testing.T) {
	c := containers(t)["16 slots, all indexed"]
	for _, d := range fuzzDocs {
		insert(t, c, d)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 100 {
				id := fmt.Sprint(1 + (g+i)%2)
				rows, err := evalCore(c, "SELECT VALUE c.id FROM c WHERE c.id = @id AND EXISTS(SELECT VALUE 1)",
					[]Param{{"@id", value.StringOf(id)}}, 0)
				if err != nil || len(rows) != 1 || rows[0] != `"`+id+`"` {
					t.Errorf("id %s: %v %v", id, rows, err)
					return
				}
				if _, err := Compile(fmt.Sprintf("SELECT %d, %d", g, i), nil, nil); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	for i := range 5000 {
		if _, err := Compile(fmt.Sprintf("SELECT %d", i), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for i := range caches {
		n += len(caches[i].now) + len(caches[i].old)
	}
	if n > 2*cacheEntries {
		t.Errorf("%d programs are kept", n)
	}
}
