package run_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// BenchmarkWalk measures walks over a dense graph on disk: 800 vertices with ten edges each on average, most of which
// lead to few vertices. As in real graphs, these have most of the edges.
func BenchmarkWalk(b *testing.B) {
	eng, err := pebblekv.Open(b.TempDir(),
		pebblekv.Options{Scanned: core.OnlyScanned, Kept: core.GotSingly, Relaxed: true})
	if err != nil {
		b.Fatal(err)
	}
	_, g := coreGraphOn(b, eng, "empty", clock.Fake(frozen), core.ContainerSpec{})
	const vertices = 800
	do := func(script string, binds map[string]any) (n int64) {
		req := &message.Request{Script: script, Bindings: binds}
		_, err := run.Run(context.Background(), g, req, func(v any, _ int64) error {
			n, _ = v.(int64)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	for i := range vertices {
		do("g.addV('song').property('id',id).property('name',id).property('performances',n)",
			map[string]any{"id": fmt.Sprintf("s%d", i), "n": i})
	}
	r := rand.New(rand.NewPCG(1, 2))
	skewed := func() int { f := r.Float64(); return int(math.Pow(f, 2.4) * vertices) }
	for range 10 * vertices {
		do("g.V(a).addE('followedBy').to(g.V(b)).property('weight',1)",
			map[string]any{"a": fmt.Sprintf("s%d", skewed()), "b": fmt.Sprintf("s%d", skewed())})
	}
	for _, walk := range []string{"out()", "out().out()", "out().out().out()", "repeat(out()).times(3)"} {
		b.Run(walk, func(b *testing.B) {
			b.ReportAllocs()
			var n int64
			for i := 0; b.Loop(); i++ {
				n += do("g.V(id)."+walk+".count()", map[string]any{"id": fmt.Sprintf("s%d", i%vertices)})
			}
			b.ReportMetric(float64(n)/float64(b.N), "counted/op")
		})
	}
}
