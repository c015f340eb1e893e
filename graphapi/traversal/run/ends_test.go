package run_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// dense loads a graph of n vertices that have an edge to each vertex, in three partitions of the partition key region.
func dense(w *world, kind string, n int) {
	w.load(kind)
	for i := range n {
		w.run(&message.Request{Script: fmt.Sprintf("g.addV('v').property('id','v%d').property('region',%d)"+
			".property('n',%[1]d)", i, i%3)}, false)
	}
	for i := range n {
		w.run(&message.Request{Script: fmt.Sprintf("g.V('v%d').as('a').V().addE('e').from('a')", i)}, false)
	}
}

// TestVerticesOfADenseGraph: a walk that reaches vertices again and again reads each of them a few times only. The
// results are those of a walk that keeps nothing.
func TestVerticesOfADenseGraph(t *testing.T) {
	const n = 20
	for _, kind := range []string{"empty", "partitioned"} {
		w := &world{t: t}
		dense(w, kind, n)
		for script, want := range map[string]int{
			"g.V('v0').out().out().count()":                              n * n,
			"g.V('v0').repeat(out()).times(3).count()":                   n * n * n,
			"g.V('v0').out().out().path().count()":                       n * n,
			"g.V('v0').in().in().values('n').sum()":                      n * n * (n - 1) / 2,
			"g.V('v0').out().both().values('region').is(1).count()":      2 * n * 7,
			"g.V('v0').out().outE().inV().dedup().count()":               n,
			"g.V('v0').out().out().has('n',7).values('n').dedup().sum()": 7,
		} {
			w.store.log = nil
			if got := strings.TrimSpace(w.run(&message.Request{Script: script}, false)); got != strconv.Itoa(want) {
				t.Errorf("%s, %s: %s, want %d", kind, script, got, want)
			}
			gets := 0
			for _, l := range w.store.log {
				if strings.HasPrefix(l, "get ") {
					gets++
				}
			}
			if most := 1 + 32 + n; gets > most {
				t.Errorf("%s, %s: %d reads of single documents", kind, script, gets)
			}
		}
	}
}

// TestWritesBehindAWalk: a walk that has read the same vertices many times sees what the request then writes. The
// vertices that it held before don't change.
func TestWritesBehindAWalk(t *testing.T) {
	const n = 20
	walk := "g.V('v0').out().out().fold()" // more reads than are done before vertices are kept
	for script, want := range map[string]string{
		"g.V('v0').out().out().has('n',3).fold().sideEffect(unfold().limit(1).property('n',1000))" +
			".unfold().values('n').dedup().order().fold()": "[3, 1000]",
		walk + ".sideEffect(V('v3').property('n',1000)).V('v1').out().has('n',1000).id()": "v3",
		walk + ".sideEffect(V('v3').drop()).V('v1').out().count()":                        "19",
		walk + ".map(V('v1').out().out().count()).sideEffect(V('v3').property('n',77)).V('v1').out()" +
			".values('n').max()": "77",
		walk + ".as('x').addV('v').property('id','new').property('region',1).as('y').V('v1').addE('e').to('y')" +
			".V('v1').out().count()": "21",
	} {
		for _, kind := range []string{"empty", "partitioned"} {
			w := &world{t: t}
			dense(w, kind, n)
			if got := strings.TrimSpace(w.run(&message.Request{Script: script}, false)); got != want {
				t.Errorf("%s, %s: %s, want %s", kind, script, got, want)
			}
		}
	}
}
