package run_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// TestEdgeIDIsTakenOnce: of several requests that concurrently add an edge with the same id, from different vertices
// and through two Graphs on the same container, exactly one succeeds.
func TestEdgeIDIsTakenOnce(t *testing.T) {
	c, g := coreGraph(t, "modern")
	other := run.NewGraph(c, clock.Fake(frozen))
	var claims run.EdgeClaims
	g.ShareClaims(&claims, "g")
	other.ShareClaims(&claims, "g")
	w := &world{t: t, g: g}
	if out := w.run(&message.Request{Script: modern}, false); out == "" {
		t.Fatal("not loaded")
	}
	ctx := context.Background()
	for round := range 20 {
		var added, refused atomic.Int64
		var wg sync.WaitGroup
		for source := 1; source <= 6; source++ {
			for _, graph := range []*run.Graph{g, other} {
				wg.Go(func() {
					s := fmt.Sprintf("g.V(%d).addE('x').to(__.V(1)).property(id, 'e%d')", source, round)
					_, err := run.Run(ctx, graph, &message.Request{Script: s}, func(any, int64) error { return nil })
					switch {
					case err == nil:
						added.Add(1)
					case status.Is(err, status.Conflict):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if added.Load() != 1 || refused.Load() != 11 {
			t.Fatalf(
				"%d of 12 added an edge with one id, and %d were told that it is taken",
				added.Load(),
				refused.Load(),
			)
		}
		if got := w.run(&message.Request{Script: fmt.Sprintf("g.E('e%d').count()", round)}, false); got != "1\n" {
			t.Fatalf("%s edges have the id", got)
		}
	}
}
