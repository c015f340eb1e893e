package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// V() and E() return elements in the order of their creation, also with a filter on label or property.
func TestCreationOrder(t *testing.T) {
	for _, kind := range []string{"modern", "roads", "byid"} {
		w := &world{t: t}
		_, w.g = coreGraph(t, kind)
		var vertices, even, edges []string
		for n := range 60 {
			i := n * 37 % 60
			out := w.run(&message.Request{
				Script: fmt.Sprintf("g.addV('v').property('id','v%d').property('region','p%d').property('even',%v)", i,
					i%3, i%2 == 0)}, false)
			if strings.Contains(out, "error") {
				t.Fatal(out)
			}
			vertices = append(vertices, fmt.Sprintf("v%d", i))
			if i%2 == 0 {
				even = append(even, fmt.Sprintf("v%d", i))
			}
			if n > 0 {
				w.run(
					&message.Request{
						Script: fmt.Sprintf("g.V('v%d').addE('e').to(g.V('%s')).property('id','e%[1]d')", i,
							vertices[0])}, false)
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

// Edges and neighbours of a vertex are returned in the order in which the edges were created, if all of them are read.
func TestNeighboursInCreationOrder(t *testing.T) {
	for _, kind := range []string{"modern", "roads", "byid"} {
		w := &world{t: t}
		_, w.g = coreGraph(t, kind)
		do := func(script string) string {
			out := w.run(&message.Request{Script: script}, false)
			if strings.Contains(out, "error") {
				t.Fatalf("%s: %s: %s", kind, script, out)
			}
			return strings.Join(strings.Fields(out), " ")
		}
		add := func(id, region string) {
			do(fmt.Sprintf("g.addV('v').property('id','%s').property('region','%s')", id, region))
		}
		add("hub", "p0")
		var out, in []string
		for n := range 40 {
			i := n * 37 % 60
			v := fmt.Sprintf("v%02d", i)
			add(v, fmt.Sprintf("p%d", i%3))
			if n%2 == 0 {
				do(fmt.Sprintf("g.V('hub').addE('e').to(g.V('%s')).property('id','e%02d')", v, i))
				out = append(out, v)
			} else {
				do(fmt.Sprintf("g.V('%s').addE('e').to(g.V('hub')).property('id','e%02d')", v, i))
				in = append(in, v)
			}
		}
		edges := func(vs []string) string { return strings.ReplaceAll(strings.Join(vs, " "), "v", "e") }
		outs, ins := strings.Join(out, " "), strings.Join(in, " ")
		list := func(vs []string) string { return "[" + strings.Join(vs, ", ") + "]" }
		for script, want := range map[string]string{
			"g.V('hub').out().id()":            outs,
			"g.V('hub').out('e').values('id')": outs,
			"g.V('hub').in().id()":             ins,
			"g.V('hub').both().id()":           outs + " " + ins,
			"g.V('hub').outE().id()":           edges(out),
			"g.V('hub').inE('e').id()":         edges(in),
			"g.V('hub').bothE().id()": edges(
				append(out[:len(out):len(out)], in...)),
			"g.V('hub').outE().inV().id()":                                      outs,
			"g.V('hub').repeat(out()).times(1).id()":                            outs,
			"g.V('hub').repeat(out()).until(__.not(out())).id()":                outs,
			"g.V('hub').union(__.in(), out()).id()":                             ins + " " + outs,
			"g.V('hub').local(out().id())":                                      outs,
			"g.V('hub').project('a').by(out().id().fold()).select('a')":         list(out),
			"g.V('hub').out().id().fold().limit(1)":                             list(out),
			"g.V('hub').out().limit(local, 1).id()":                             outs,
			"g.V('hub').out().where(__.in().hasId('hub')).id()":                 outs,
			"g.V('hub').out().aggregate('x').by(id()).cap('x').unfold().fold()": list(out),
		} {
			if got := do(script); got != want {
				t.Errorf("%s: %s:\ngot  %s\nwant %s", kind, script, got, want)
			}
		}
	}
}

// The order costs no additional reads: a query for a few edges reads few, and all edges of a vertex with very many are
// returned.
func TestNeighboursCost(t *testing.T) {
	w := &world{t: t}
	_, w.g = coreGraph(t, "empty")
	w.run(&message.Request{Script: "g.addV('v').property('id','hub')"}, false)
	const edges = 1100
	for i := range edges {
		w.run(&message.Request{Script: "g.V('hub').addE('e').to(g.V('hub')).property('n',n)",
			Bindings: map[string]any{"n": i}}, false)
	}
	for script, most := range map[string]int64{
		"g.V('hub').out().limit(1)":                                   10,
		"g.V('hub').out().next()":                                     10,
		"g.V('hub').where(out())":                                     10,
		"g.V('hub').where(out().out().out())":                         10,
		"g.V('hub').repeat(identity()).until(out())":                  10,
		"g.V('hub').choose(out(), constant(1), constant(2))":          10,
		"g.V('hub').map(out())":                                       10,
		"g.V('hub').repeat(out()).times(1).limit(1)":                  10,
		"g.V('hub').project('a').by(out().limit(2).fold()).by(out())": 20,
		"g.V('hub').coalesce(out(), constant(1)).limit(1)":            10,
	} {
		req := &message.Request{Script: script}
		stats, err := run.Run(context.Background(), w.g, req, func(any, int64) error { return nil })
		if err != nil || stats.Items > most {
			t.Errorf("%s: %d items are read, %v", script, stats.Items, err)
		}
	}
	seen := map[string]bool{}
	for _, n := range strings.Fields(w.run(&message.Request{Script: "g.V('hub').outE().values('n')"}, false)) {
		seen[n] = true
	}
	if len(seen) != edges {
		t.Errorf("%d edges are given", len(seen))
	}
}
