package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An edge between two vertices is found by the index, although one of them has many edges.
func TestEdgesBetween(t *testing.T) {
	for _, kind := range []string{"empty", "partitioned", "byid"} {
		t.Run(kind, func(t *testing.T) {
			_, g := coreGraph(t, kind)
			for i := range 300 {
				ordered(t, g, fmt.Sprintf("g.addV('v').property('id', 'v%d').property('region', 'r%d')", i, i%3))
			}
			ordered(t, g, "g.addV('v').property('id', 'hub').property('region', 'r1')")
			ordered(t, g, "g.V('hub').as('h').V().hasId(startingWith('v')).addE('to').from('h')")
			ordered(t, g, "g.V('hub').as('h').V().hasId(startingWith('v')).addE('from').to('h')")
			ordered(t, g, "g.V('hub').addE('to').to(__.V('hub'))")
			for _, c := range []struct{ from, rest string }{
				{"g.V('hub').outE('to')", ".where(inV().hasId('v7')).inV().id()"},
				{"g.V('hub').outE('to').as('e')", ".where(__.inV().has(id, within('v7', 'v8', 'none'))).inV().id()"},
				{"g.V('hub').outE()", ".filter(otherV().has('id', 'v7')).label()"},
				{"g.V('hub').outE()", ".inV().hasId('v9').id()"},
				{"g.V('hub').out('to')", ".hasId('v7', 'v8').id()"},
				{"g.V('hub').in('from')", ".hasId(g.V('v7').next()).id()"},
				{"g.V('hub').in()", ".hasId('hub').count()"},
				{"g.V('hub').inE('from')", ".where(outV().hasId('v3')).label()"},
				{"g.V('hub').bothE()", ".where(otherV().hasId('v3')).label()"},
				{"g.V('hub').both()", ".hasId('v3', 'v4').id()"},
				{"g.V('hub').out()", ".hasId('none').id()"},
				{"g.V('hub').out()", ".hasId(neq('v3')).count()"},
				{"g.V('hub').outE()", ".where(inV().hasId(startingWith('v2'))).count()"},
				{"g.V('hub').outE()", ".where(outV().hasId('hub')).count()"},
				{"g.V('hub').outE()", ".where(inV().out().hasId('hub')).count()"},
			} {
				got, st := ordered(t, g, c.from+c.rest)
				want, all := ordered(t, g, c.from+".barrier()"+c.rest)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s%s gives %v, of all edges %v", c.from, c.rest, got, want)
				}
				few := !strings.HasSuffix(c.rest, "count()")
				if few && (st.Items > 20 || all.Items < 300) {
					t.Errorf("%s%s reads %d elements, and of all edges %d", c.from, c.rest, st.Items, all.Items)
				}
			}
			for _, merge := range []string{
				"g.V('hub').as('h').V('v7').as('v').mergeE([(T.label): 'to', (OUT): outV, (IN): inV])" +
					".option(outV, select('h')).option(inV, select('v')).label()",
			} {
				got, st := ordered(t, g, merge)
				if !slices.Equal(got, []string{"to"}) || st.Items > 20 || st.Writes > 0 {
					t.Errorf("%s gives %v, reads %d elements and writes %d", merge, got, st.Items, st.Writes)
				}
			}
		})
	}
}
