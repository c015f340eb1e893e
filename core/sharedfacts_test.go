package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// An order comes from the index also beside writers of another process that never pause. The counts that say that the
// index is right are exact, whatever is written meanwhile: the check at the end compares them with the items.
func TestCountBesideWritersOfAnotherProcess(t *testing.T) {
	t.Parallel()
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{})
	item := func(i, n int) string { // the values at lossy are cut in their entries, others have no value at some
		if n%5 == 0 {
			return fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d}`, i, i%40, n)
		}
		return fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"some":1,"lossy":"%0600d"}`, i, i%40, n, n)
	}
	for i := range 300 {
		put(t, cs[0], core.Create, item(i, i))
	}
	defer keepWriting(t, cs[1], func(w, i int) string { return item((i*8+w)%500, i) })()
	slots := len(slotMap(t, cs[0]).Slots)
	for n, field := range []string{"n", "some", "lossy"} {
		begun := time.Now()
		for exact := 0; exact < (n+1)*slots; exact = exactFacts(t, ps.kvs[0]) {
			if time.Since(begun) > 30*time.Second {
				t.Fatalf("order by %s: the path is counted in %d slots", field, exact-n*slots)
			}
			firstRows(t, cs[0], byField(field), 10)
		}
		t.Logf("%s: %v", field, time.Since(begun))
	}
	wantSorted(t, cs[0], "n", false)
}

// exactFacts returns the number of facts in an engine that are exact.
func exactFacts(t *testing.T, e kv.Engine) (n int) {
	ks, vs := every(t, e)
	for i, key := range ks {
		if _, kind, _ := keys.ParseSlot(key); kind == keys.KindFact && vs[i][1] == 2 {
			n++
		}
	}
	return n
}
