package step_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/graphapi/message"
)

// V() and E() give elements as they were made, also those that a label or property selects.
func TestCreationOrder(t *testing.T) {
	for _, kind := range []string{"modern", "roads", "byid"} {
		w := &world{t: t}
		_, w.g = coreGraph(t, kind)
		var vertices, even, edges []string
		for n := range 60 {
			i := n * 37 % 60
			out := w.run(&message.Request{Script: fmt.Sprintf("g.addV('v').property('id','v%d').property('region','p%d').property('even',%v)", i, i%3, i%2 == 0)}, false)
			if strings.Contains(out, "error") {
				t.Fatal(out)
			}
			vertices = append(vertices, fmt.Sprintf("v%d", i))
			if i%2 == 0 {
				even = append(even, fmt.Sprintf("v%d", i))
			}
			if n > 0 {
				w.run(&message.Request{Script: fmt.Sprintf("g.V('v%d').addE('e').to(g.V('%s')).property('id','e%[1]d')", i, vertices[0])}, false)
				edges = append(edges, fmt.Sprintf("e%d", i))
			}
		}
		for script, want := range map[string][]string{
			"g.V().values('id')":          vertices,
			"g.V().id()":                  vertices,
			"g.V().hasLabel('v').id()":    vertices,
			"g.V().has('even',true).id()": even,
			"g.V().limit(9).id()":         vertices[:9],
			"g.E().id()":                  edges,
			"g.V().has('even',true).filter(has('region','p0')).id()": nil,
		} {
			if want == nil {
				for _, v := range even {
					var i int
					fmt.Sscanf(v, "v%d", &i)
					if i%3 == 0 {
						want = append(want, v)
					}
				}
			}
			out := w.run(&message.Request{Script: script}, false)
			at := 0
			for _, id := range want {
				i := strings.Index(out[at:], id)
				if i < 0 {
					t.Errorf("%q: %s: %s isn't where it was made:\n%s", kind, script, id, out)
					break
				}
				at += i + len(id)
			}
		}
	}
}
