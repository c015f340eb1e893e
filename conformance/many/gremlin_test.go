package many

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"

	"github.com/orrerydb/orrery/conformance/harness"
)

// counts returns the result of a traversal that counts, at one server.
func counts(t *testing.T, c *gremlingo.Client, script string) string {
	t.Helper()
	got, err := harness.Submit(c, script)
	ok(t, err)
	return fmt.Sprint(got...)
}

// Each request of Gremlin sees what the requests before it have done at other servers.
func TestGremlinRequests(t *testing.T) {
	cl := start(t, 3)
	cs := cl.gremlins("/dbs/graphdb/colls/g")
	_, err := harness.Submit(cs[0], "g.addV('root').property('id', 'r')")
	ok(t, err)
	for i := range 12 {
		_, err := harness.Submit(cs[i%3], "g.V('r').as('r').addV('leaf').property('id', i).addE('of').to('r')",
			"i", fmt.Sprintf("l%d", i))
		ok(t, err)
		for _, c := range cs {
			if n := counts(t, c, "g.V('r').in('of').count()"); n != fmt.Sprint(i+1) {
				t.Fatalf("after %d leaves: %s", i+1, n)
			}
		}
	}
	_, err = harness.Submit(cs[1], "g.V('r').in('of').limit(5).drop()")
	ok(t, err)
	for _, c := range cs {
		if n := counts(t, c, "g.V().count()"); n != "8" {
			t.Errorf("after the drop: %s vertices", n)
		}
	}
}

// An edge's id is given once, although the edges belong to different vertices and are added at different servers.
func TestIdsOfEdges(t *testing.T) {
	cl := start(t, 3)
	cs := cl.gremlins("/dbs/graphdb/colls/g")
	for i := range cs {
		_, err := harness.Submit(cs[0], "g.addV('v').property('id', i)", "i", fmt.Sprintf("v%d", i))
		ok(t, err)
	}
	for round := range 20 {
		id := fmt.Sprintf("e%d", round)
		var g sync.WaitGroup
		var made atomic.Int64
		for i, c := range cs {
			g.Go(func() {
				_, err := harness.Submit(c, "g.V(v).addE('x').to(__.V('v0')).property('id', e)",
					"v", fmt.Sprintf("v%d", i), "e", id)
				switch {
				case err == nil:
					made.Add(1)
				case !strings.Contains(err.Error(), "Conflict") && !strings.Contains(err.Error(), "exists"):
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		g.Wait()
		if n := counts(t, cs[0], "g.E('"+id+"').count()"); n != "1" || made.Load() != 1 {
			t.Fatalf("%s: %s edges, %d were made", id, n, made.Load())
		}
	}
}
