package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// manyVertices adds n vertices to a graph, named v0, v1, .. in the order of creation.
func manyVertices(t testing.TB, g *run.Graph, n int) {
	t.Helper()
	for i := range n {
		binds := map[string]any{"l": fmt.Sprintf("l%d", i%2), "id": fmt.Sprintf("v%d", i),
			"t": fmt.Sprintf("is %d", i%10)}
		req := &message.Request{Script: "g.addV(l).property('id',id).property('text',t)", Bindings: binds}
		if _, err := run.Run(context.Background(), g, req, func(any, int64) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShortPageCost: reading a few elements in creation order has a low cost if the traversal takes no more.
func TestShortPageCost(t *testing.T) {
	_, g := coreGraph(t, "empty")
	manyVertices(t, g, 600)
	cost := func(script string) (float64, string) {
		var out []string
		stats, err := run.Run(context.Background(), g, &message.Request{Script: script}, func(v any, _ int64) error {
			out = append(out, gvalue.Text(v))
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		return stats.Charge, strings.Join(out, " ")
	}
	all, _ := cost("g.V().id()")
	for script, want := range map[string]string{
		"g.V().limit(3).id()":                                         "v0 v1 v2",
		"g.V().range(1,3).id()":                                       "v1 v2",
		"g.V().id().limit(3)":                                         "v0 v1 v2",
		"g.V().as('a').limit(2).select('a').id()":                     "v0 v1",
		"g.V().valueMap('text').by(unfold()).limit(2)":                "{text=is 0} {text=is 1}",
		"g.V().id().next()":                                           "v0",
		"g.V().id().next(2)":                                          "v0 v1",
		"g.V().hasNext()":                                             "true",
		"g.V().has('text',TextP.containing('3')).limit(2).id()":       "v3 v13",
		"g.V().has('text',TextP.endingWith('7')).as('a').id().next()": "v7",
		"g.V().hasLabel('l1').limit(3).id()":                          "v1 v3 v5",
		"g.inject(1,2).map(V().limit(2).id()).limit(2)":               "v0 v0",
	} {
		got, out := cost(script)
		if out != want {
			t.Errorf("%s: got %s, want %s", script, out, want)
		}
		if got > all/2 { // a page of the index costs its entries
			t.Errorf("%s costs %.1f RU; all vertices cost %.1f", script, got, all)
		}
	}
	// If more than the next few elements may be taken, all are there.
	for script, want := range map[string]string{
		"g.V().limit(local,1).count()":             "600",
		"g.V().skip(2).count()":                    "598",
		"g.V().tail(2).id()":                       "v598 v599",
		"g.V().values('text').limit(1000).count()": "600",
		"g.V().has('text',within('is 3','is 4')).values('nothing').limit(1).count()": "0",
		"g.V().filter(has('text','is 9')).limit(1).id()":                             "v9",
		"g.V().sideEffect(identity()).hasId('v599').limit(1).id()":                   "v599",
		"g.V().limit(0).count()":                                                     "0",
		"g.V().limit(-1).count()":                                                    "600",
		"g.inject(1,2).V().id().limit(601).tail(1)":                                  "v0",
	} {
		if _, out := cost(script); out != want {
			t.Errorf("%s: got %s, want %s", script, out, want)
		}
	}
}
