package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/plan/access"
)

// A process rebuilds the index of slots to which another process writes all the time: it gets its turn.
func TestRebuildBesideWritersOfAnotherProcess(t *testing.T) {
	t.Parallel()
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{})
	for i := range 400 {
		put(t, cs[0], core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"n":1}`, i, i%40, i))
	}
	defer keepWriting(t, cs[1], func(w, i int) string {
		return fmt.Sprintf(`{"id":"w%d","pk":"p%d","a":%d}`, w, i%40, i)
	})()
	begun := time.Now()
	spec := cs[0].Spec().Clone()
	spec.IndexingPolicy = []byte(onlyA)
	if _, err := ps.all[0].ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(bg, 60*time.Second)
	defer cancel()
	if err := cs[0].WaitIndex(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("rebuilt in %v", time.Since(begun))
	if !cs[0].Indexes(access.NewPath("a")) || cs[0].Indexes(access.NewPath("n")) {
		t.Error("the index doesn't follow the policy")
	}
}

// Two processes change the indexing policy again and again. The definition keeps only the policies that index entries
// follow.
func TestPolicyIsChangedAllTheTime(t *testing.T) {
	ps := startProcesses(t, 2, network)
	cs := ps.containers(core.ContainerSpec{})
	for i := range 40 {
		put(t, cs[0], core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"n":1}`, i, i, i))
	}
	cat, err := catalog.Open(ps.store.Engine(), clock.New(), catalog.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	former := 0
	for i := range 60 {
		spec := cs[0].Spec().Clone()
		spec.IndexingPolicy = []byte([]string{onlyA, noIndex, ""}[i%3])
		if _, err := ps.all[i%2].ReplaceContainer(bg, "db", "c", spec); err != nil {
			t.Fatal(err)
		}
		if _, err := cat.Refresh(bg); err != nil {
			t.Fatal(err)
		}
		def, err := cat.Container(bg, "db", "c")
		if err != nil {
			t.Fatal(err)
		}
		former = max(former, len(def.Former))
	}
	if former > 3 {
		t.Errorf("%d former policies", former)
	}
}

// keepWriting writes items with eight writers that never pause, until the function that it returns is called. item
// returns the i-th item of a writer.
func keepWriting(t *testing.T, c *core.Container, item func(w, i int) string) (end func()) {
	stop, wg := make(chan bool), waiter{}
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				put(t, c, core.Upsert, item(w, i))
			}
		})
	}
	return func() {
		close(stop)
		wg.Wait()
	}
}
