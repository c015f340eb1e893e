package server

import (
	"context"
	"fmt"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// graphQueries are traversals over the items of loadUnindexed as vertices, which need more memory than a request has.
func graphQueries(e *core.Engine, c *core.Container, items int) map[string]func() error {
	g := run.NewGraph(c, e.Clock())
	g.ChargeTo(e.Budget())
	g.SpillTo(e.Spill())
	return map[string]func() error{
		"order()": func() error {
			return traverse(g, "g.V().order().by('n').values('n')", items, func(v any, i int) bool {
				n, ok := gvalue.Integer(v)
				return ok && n == int64(i)
			})
		},
		"group()": func() error {
			return traverse(g, "g.V().group().by('g')", items/2, func(v any, _ int) bool {
				l, ok := v.([]any)
				return ok && len(l) == 2
			})
		},
		"groupCount()": func() error {
			return traverse(g, "g.V().groupCount().by('g').unfold().select(values)", items/2, func(v any, _ int) bool {
				return v == int64(2)
			})
		},
		"dedup()": func() error {
			return traverse(g, "g.V().dedup().by('n')", items, func(v any, _ int) bool {
				_, ok := v.(*gvalue.Vertex)
				return ok
			})
		},
	}
}

// traverse runs a traversal, and checks each of its results, or each value of the map that it returns.
func traverse(g *run.Graph, script string, want int, ok func(v any, i int) bool) error {
	n := 0
	check := func(v any) error {
		if n++; !ok(v, n-1) {
			return fmt.Errorf("%s: result %d is %s", script, n-1, gvalue.Text(v))
		}
		return nil
	}
	_, err := run.Run(context.Background(), g, &message.Request{Script: script, Lazy: true},
		func(v any, bulk int64) error {
			if m, ok := v.(*gvalue.LazyMap); ok {
				return m.Each(func(e gvalue.Entry) error { return check(e.Value) })
			}
			return check(v)
		})
	if err == nil && n != want {
		return fmt.Errorf("%s: %d results, want %d", script, n, want)
	}
	return err
}
