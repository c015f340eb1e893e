package run_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// counted runs a script with one result and returns the result and the number of documents that were read.
func counted(t *testing.T, g *run.Graph, script string) (out string, read int64) {
	t.Helper()
	st, err := run.Run(context.Background(), g, &message.Request{Script: script}, func(v any, _ int64) error {
		out += gvalue.Text(v)
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out, st.Items
}

// TestCountsOfTheGraph: V().count() and E().count() read no elements, and stay right while elements come and go.
func TestCountsOfTheGraph(t *testing.T) {
	for _, name := range []string{"empty", "partitioned", "byid"} {
		t.Run(name, func(t *testing.T) {
			c, g := coreGraph(t, name)
			want := func(vertices, edges int, reads bool) {
				t.Helper()
				for script, n := range map[string]int{
					"g.V().count()": vertices, "g.E().count()": edges,
					"g.inject(1,2).V().count()": 2 * vertices, "g.V().E().count()": vertices * edges,
					"g.inject(1,2).map(E().count()).fold().is([" + strconv.Itoa(edges) + "l," + strconv.Itoa(edges) +
						"l]).count()": 1,
				} {
					out, read := counted(t, g, script)
					if out != strconv.Itoa(n) {
						t.Errorf("%s: %s, want %d", script, out, n)
					}
					if source := script[:3] == "g.V" && script != "g.V().E().count()" || script[:3] == "g.E"; source &&
						(read > 0) != reads {
						t.Errorf("%s reads %d documents", script, read)
					}
				}
			}
			want(0, 0, false)
			for i := range 40 {
				counted(t, g, fmt.Sprintf("g.addV('a').property('id','v%d').property('region','r%d')", i, i%3))
			}
			want(40, 0, false)
			for i := range 60 {
				counted(t, g, fmt.Sprintf("g.V('v%d').addE('to').to(__.V('v%d'))", i%40, i%7))
			}
			want(40, 60, false)
			counted(t, g, "g.V('v39').drop()") // with its one edge
			counted(t, g, "g.V('v0').outE().limit(1).drop()")
			want(39, 58, false)

			// A document of another API is a vertex whatever _isEdge is, except true.
			put := func(id, isEdge string) {
				d, err := doc.FromJSON(nil, []byte(`{"id":"`+id+`","region":"r","_partitionKey":"`+id+
					`","_isEdge":`+isEdge+`}`), doc.JSONOptions{Names: doc.NoSQL})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Write(context.Background(), core.Write{Kind: core.Upsert, Doc: d}); err != nil {
					t.Fatal(err)
				}
			}
			put("x", "true")
			want(39, 59, false)
			for _, isEdge := range []string{"false", "null", `"true"`, "[true]", "[]", "{}"} {
				put("x", isEdge)
				want(40, 58, true)
			}
		})
	}
}

// TestGroupsOfLabels: groups of elements by their labels are those of the elements one by one.
func TestGroupsOfLabels(t *testing.T) {
	c, g := coreGraph(t, "empty")
	ctx := context.Background()
	for i := range 30 {
		counted(t, g, fmt.Sprintf("g.addV('l%d').property('id','v%d').property('n',%[2]d)", i%4, i))
		counted(t, g, fmt.Sprintf("g.V('v%d').addE('e%d').to(__.V('v0'))", i, i%3))
	}
	for i, label := range []string{"", `,"label":7`, `,"label":"vertex"`, `,"label":"l1"`, `,"label":["l1"]`} {
		for _, edge := range []string{"", `,"_isEdge":true,"_vertexId":"v1","_sink":"v2","_sinkPartition":"v2"`} {
			text := fmt.Sprintf(`{"id":"other%d%d","_partitionKey":"v1"%s%s}`, i, len(edge), label, edge)
			d, err := doc.FromJSON(nil, []byte(text), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(ctx, core.Write{Kind: core.Create, Doc: d}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, source := range []string{"V()", "E()", "V().has('n',gt(9))", "V('v1','v2','v5')", "E().hasLabel('e1','e2')",
		"inject(1,2).V()"} {
		got, _ := counted(t, g, "g."+source+".groupCount().by(label).order(local).by(keys)")
		want, _ := counted(t, g, "g."+source+".identity().groupCount().by(label).order(local).by(keys)")
		if got != want || len(got) < 6 {
			t.Errorf("%s: %s, one by one %s", source, got, want)
		}
	}
}

// TestCountsFromElements: where index entries don't tell how many elements there are, these are read.
func TestCountsFromElements(t *testing.T) {
	forever := int32(-1)
	for name, spec := range map[string]core.ContainerSpec{
		"no index": {IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)},
		"_isEdge excluded": {IndexingPolicy: []byte(`{"includedPaths":[{"path":"/*"}],` +
			`"excludedPaths":[{"path":"/_isEdge/?"}]}`)},
		"time to live": {DefaultTTL: &forever},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clock.Fake(frozen)
			_, g := coreGraphOf(t, "empty", clk, spec)
			counted(t, g, "g.addV('a').property('id','a').as('x').addV('b').property('id','b').property('ttl',10)"+
				".addE('to').from('x')")
			want := func(script, n string) {
				t.Helper()
				if out, read := counted(t, g, script); out != n || read == 0 {
					t.Errorf("%s: %s of %d documents, want %s", script, out, read, n)
				}
			}
			want("g.V().count()", "2")
			want("g.E().count()", "1")
			if spec.DefaultTTL != nil {
				clk.Advance(time.Minute)
				want("g.V().count()", "1")
			}
		})
	}
}
