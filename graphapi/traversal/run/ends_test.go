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

// TestMeetingTraversers: walks read the edges of a vertex once for each step, however many traversers have met there.
// Where the order of the results or the paths matter, or the request writes, traversers stay apart, and the results are
// the same.
func TestMeetingTraversers(t *testing.T) {
	const n = 8
	for _, kind := range []string{"empty", "partitioned"} {
		w := &world{t: t}
		dense(w, kind, n)
		for script, want := range map[string]struct{ result, finds int }{
			"g.V('v0').out().out().out().count()":                                   {n * n * n, 1 + n + n},
			"g.V('v0').out().out().out().out().count()":                             {n * n * n * n, 1 + n + n + n},
			"g.V('v0').out().in().both().count()":                                   {2 * n * n * n, 1 + n + 2*n},
			"g.V('v0').out().out().outE().inV().count()":                            {n * n * n, 1 + n + n},
			"g.V('v0').out().out().out().has('n',3).values('n').sum()":              {3 * n * n, 1 + n + n},
			"g.V('v0').out().out().has('n',lt(2)).out().count()":                    {2 * n * n, 1 + n + 2},
			"g.V('v0').repeat(out().out()).times(2).count()":                        {n * n * n * n, 1 + 3*n},
			"g.V('v0').repeat(out().out()).emit().times(2).count()":                 {n*n + n*n*n*n, 1 + 3*n},
			"g.V('v0').as('a').out().out().out().count()":                           {n * n * n, 1 + n + n*n},
			"g.V('v0').out().out().out().path().count()":                            {n * n * n, 1 + n + n*n},
			"g.V('v0').out().out().out().fold().count(local)":                       {n * n * n, 1 + n + n*n},
			"g.withBulk(false).V('v0').out().out().out().count()":                   {n * n * n, 1 + n + n*n},
			"g.withSack(1).V('v0').out().out().out().sack().sum()":                  {n * n * n, 1 + n + n*n},
			"g.V('v0').out().out().sideEffect(property('m',1)).out().count()":       {n * n * n, 1 + n + n*n},
			"g.V('v0').local(out().out()).out().count()":                            {n * n * n, 1 + n + n},
			"g.V('v0').union(out(),out()).out().count()":                            {2 * n * n, 2 + n},
			"g.V('v0').out().out().limit(5).out().count()":                          {5 * n, 1 + 1 + 5},
			"g.V('v0').out().out().out().aggregate('x').count()":                    {n * n * n, 1 + n + n*n},
			"g.V('v0').out().out().out().groupCount().unfold().count()":             {n, 1 + n + n},
			"g.V('v0').out().out().out().dedup().count()":                           {n, 1 + n + n},
			"g.V('v0').repeat(out().out()).times(2).values('n').max()":              {n - 1, 1 + 3*n},
			"g.V('v0').out().out().barrier().out().count()":                         {n * n * n, 1 + n + n},
			"g.V('v0').out().choose(has('n',lt(4)),out(),in()).out().count()":       {n * n * n, 1 + n + n},
			"g.V('v0').out().where(out().out().count().is(64)).out().out().count()": {n * n * n, 1 + 2*n + n*(1+n)},
		} {
			w.store.log = nil
			got := strings.TrimSpace(w.run(&message.Request{Script: script}, false))
			if got != strconv.Itoa(want.result) {
				t.Errorf("%s, %s: %s, want %d", kind, script, got, want.result)
			}
			finds := 0
			for _, l := range w.store.log {
				if strings.HasPrefix(l, "find") && !strings.HasPrefix(l, "find _id=") {
					finds++
				}
			}
			if finds != want.finds {
				t.Errorf("%s, %s: edges read %d times, want %d", kind, script, finds, want.finds)
			}
		}
	}
}
