package core_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

const spatialPolicy = `{"includedPaths":[{"path":"/*"}],"spatialIndexes":[{"path":"/loc/?","types":["Point"]}]}`

// placeDoc is an item with a place on a grid. Every fifth item has a square, with several entries.
func placeDoc(r *rand.Rand, i int) string {
	x, y := float64(r.IntN(300)-150), float64(r.IntN(160)-80)
	loc := fmt.Sprintf(`{"type":"Point","coordinates":[%v,%v]}`, x, y)
	if i%5 == 0 {
		loc = fmt.Sprintf(`{"type":"Polygon","coordinates":[[[%v,%v],[%v,%v],[%v,%v],[%v,%v],[%v,%v]]]}`, x, y, x+5, y,
			x+5, y+5, x, y+5, x, y)
	}
	return fmt.Sprintf(`{"id":"i%d","pk":"p%d","n":%d,"loc":%s}`, i, i%9, r.IntN(50), loc)
}

// nearby is a query for places within metres of a place: its predicate and its filter.
func nearby(t *testing.T, x, y int, metres float64) exec.Query {
	t.Helper()
	at := mustDoc(t, fmt.Sprintf(`{"id":"","pk":"","at":{"type":"Point","coordinates":[%d,%d]}}`, x, y))
	g, reason := geo.Parse(doc.Get(at, "at"))
	if g == nil {
		t.Fatal(reason)
	}
	return exec.Query{
		Pred:     access.Spatial(access.NewPath("loc"), geo.Near(g, metres)),
		PlanHash: uint64(x*1000 + y),
		Match: func(it *core.Item) (bool, error) {
			o, _ := geo.Parse(doc.Get(it.Doc, "loc"))
			return o != nil && g.Distance(o) <= metres, nil
		},
	}
}

// TestSpatialPagesOverChanges reads queries on places in pages while items move and are created and deleted, and while
// the policy loses its spatial index. Every item that doesn't change comes once.
func TestSpatialPagesOverChanges(t *testing.T) {
	for n, slots := range []int{1, 16, 2} {
		t.Run(fmt.Sprintf("%d slots", slots), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, uint64(slots)))
			e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: slots})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			spec := core.ContainerSpec{PartitionKey: keyDefs["V2"], IndexingPolicy: []byte(spatialPolicy)}
			if n == 2 {
				spec.PartitionKey = keyIsID
			}
			c := newContainer(t, e, spec)
			docs := map[string]string{}
			for i := range 1200 {
				docs[fmt.Sprint("i", i)] = placeDoc(r, i)
				put(t, c, core.Create, docs[fmt.Sprint("i", i)])
			}
			used := 0
			for n := range 12 {
				q := nearby(t, r.IntN(300)-150, r.IntN(100)-50, 1.2e6)
				if n%3 == 0 {
					q.OrderBy, q.Compare = orderBy(n%2 == 0, "n"), value.CompareCosmos
				}
				p, err := c.Explain(bg, &q)
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(p.Explain(), "index on /loc (spatial)") {
					used++
				}
				touched, seen := map[string]bool{}, map[string]int{}
				want := wanted(t, docs, &q)
				for page := 0; ; page++ {
					rows, err := c.Query(bg, &q)
					if err != nil {
						t.Fatal(err)
					}
					for k := 0; k < 4 && rows.Next(); k++ {
						seen[doc.Get(rows.Item().Doc, "_id").Str()]++
					}
					if rows.Err() != nil {
						t.Fatal(rows.Err())
					}
					q.Continuation = rows.Continuation()
					rows.Close()
					if q.Continuation == "" {
						break
					}
					for range 3 { // an item moves
						i := r.IntN(1200)
						id := fmt.Sprint("i", i)
						touched[id] = true
						docs[id] = placeDoc(r, i)
						put(t, c, core.Upsert, docs[id])
					}
					if n == 11 && page == 1 { // the pages continue by number over all items
						c = replacePolicy(
							t, e, c, `{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}`)
					}
				}
				for id := range want {
					if !touched[id] && seen[id] != 1 {
						t.Errorf("query %d: %s was given %d times", n, id, seen[id])
					}
				}
			}
			if used < 10 { // with few items in a slot, random samples may suggest that many are near
				t.Errorf("only %d of 12 queries used the index", used)
			}
			clean(t, e)
		})
	}
}

// wanted returns the ids of the items that pass a query's filter.
func wanted(t *testing.T, docs map[string]string, q *exec.Query) map[string]bool {
	out := map[string]bool{}
	for id, d := range docs {
		it := core.Item{Doc: mustDoc(t, d)}
		if ok, _ := q.Match(&it); ok {
			out[id] = true
		}
	}
	return out
}

func replacePolicy(t *testing.T, e *core.Engine, c *core.Container, policy string) *core.Container {
	t.Helper()
	spec := c.Spec().Clone()
	spec.IndexingPolicy = []byte(policy)
	c, err := e.ReplaceContainer(bg, c.Database(), c.ID(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSpatialEntriesFollowThePolicy: places, arrays of places and other values, under several policies.
func TestSpatialEntriesFollowThePolicy(t *testing.T) {
	d := `{"id":"1","pk":"a","loc":{"type":"Point","coordinates":[1,2]},"bad":{"type":"Point","coordinates":[1,` +
		`200]},"none":{"type":"Line","coordinates":[]},` +
		`"list":[{"type":"Point","coordinates":[1,2]},{"type":"Point","coordinates":[3,4]},7],"deep":{"at":{"type":"Point","coordinates":[5,6]}}}`
	for _, x := range []struct {
		rules   string
		path    string
		plane   bool
		entries int // -1: no index
	}{
		{`{"path":"/loc/?"}`, "loc", false, 1}, {`{"path":"/loc/?"}`, "loc.x", false, -1},
		{`{"path":"/loc/?"}`, "loc", true, -1}, {`{"path":"/loc"}`, "loc", false, 1},
		{`{"path":"/loc/*"}`, "loc", false, 1}, {`{"path":"/loc/*"}`, "loc.x", false, 0},
		{`{"path":"/*"}`, "deep.at", false, 1}, {`{"path":"/deep/*"}`, "deep.at", false, 1},
		{`{"path":"/bad/?"}`, "bad", false, 1}, {`{"path":"/none/?"}`, "none", false, 0},
		{`{"path":"/list/[]/?"}`, "list", false, 2}, {`{"path":"/list/?"}`, "list", false, 2},
		{`{"path":"/bad/?","boundingBox":{"xmin":0,"ymin":0,"xmax":1,"ymax":1}}`, "bad", true, 1},
		{`{"path":"/bad/?","boundingBox":{"xmin":0,"ymin":0,"xmax":1,"ymax":1}}`, "bad", false, -1},
		{`{"path":"/loc/?","boundingBox":{"xmin":0}}`, "loc", true, -1},
		{`{"path":"/loc/?","boundingBox":7}`, "loc", false, -1}, {`7`, "loc", false, -1},
	} {
		pol, err := index.Compile([]byte(`{"includedPaths":[],"excludedPaths":[{"path":"/*"}],"spatialIndexes":[`+
			x.rules+`]}`), 1)
		if err != nil {
			t.Fatal(err)
		}
		r, id := pol.Spatial(strings.Split(x.path, "."), x.plane, false)
		n := -1
		if r != nil {
			var terms index.Terms
			pol.Collect(&terms, mustDoc(t, d), 1)
			n = 0
			terms.Path(id, func([]byte, byte) bool { n++; return true })
		}
		if n != x.entries {
			t.Errorf("%s at %s: %d entries, wanted %d", x.rules, x.path, n, x.entries)
		}
	}
}
