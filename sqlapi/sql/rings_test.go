package sql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// TestNearestInRings: the first rows by distance are the same with and without a spatial index, in one page and in
// several, with other conditions and while items change. The index reads few items.
func TestNearestInRings(t *testing.T) {
	const items = 1500
	for _, planar := range []bool{false, true} {
		t.Run(fmt.Sprintf("planar=%v", planar), func(t *testing.T) {
			t.Parallel()
			g := places{rand.New(rand.NewPCG(21, 22))}
			index, scale := earthIndex, 111e3
			if planar {
				index, scale = planeIndex, 1
			}
			plain, indexed := spatialContainers(t, index)
			write := func(i int) {
				d, err := doc.FromJSON(nil, []byte(g.document(i)), doc.JSONOptions{Names: doc.NoSQL})
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range []*core.Container{plain, indexed["1 slot"], indexed["16 slots"]} {
					if _, err := c.Write(t.Context(), core.Write{Kind: core.Upsert, Doc: d}); err != nil {
						t.Fatal(err)
					}
				}
			}
			for i := range items {
				write(i)
			}
			env := *testEnv
			env.Planar = planar
			rings, read, rows := 0, 0, 0
			for n := range 50 {
				at := g.point()
				where := fmt.Sprintf("ST_DISTANCE(c.loc, %s) < %v", []string{at, at, g.point()}[n%3],
					scale*[]float64{20, 60, 180}[g.IntN(3)])
				if n%7 == 0 {
					where = "ST_INTERSECTS(c.loc, " + g.shape(30) + ")"
				}
				where += []string{"", "", " AND c.n < 3", " AND NOT IS_DEFINED(c.locs)"}[g.IntN(4)]
				dist := "ST_DISTANCE(c.loc, " + at + ")"
				if n%2 == 0 {
					dist = "ST_DISTANCE(" + at + ", c.loc)"
				}
				text := []string{"SELECT TOP 10 VALUE DIST FROM c WHERE COND ORDER BY DIST",
					"SELECT VALUE DIST FROM c WHERE COND ORDER BY DIST OFFSET 3 LIMIT 20",
					"SELECT VALUE DIST FROM c WHERE COND ORDER BY DIST",
					"SELECT TOP 40 VALUE DIST FROM c WHERE COND ORDER BY DIST DESC"}[n%4]
				text = strings.NewReplacer("DIST", dist, "COND", where).Replace(text)
				want, _ := pages(t, plain, &env, Request{PageSize: 1000}, text)
				for name, c := range indexed {
					for _, size := range []int{0, 6} {
						if size > 0 && len(want) > 120 {
							continue
						}
						got, m := pages(t, c, &env, Request{PageSize: size}, text)
						if !slices.Equal(got, want) {
							t.Fatalf("%s, pages of %d: %s\nby %s:\n%v\nwanted\n%v", name, size, text,
								m.Explain, got, want)
						}
						if strings.Contains(m.Explain, "rings") {
							rings++
							if size == 0 && strings.Contains(text, "TOP 10") && strings.Count(text, at) == 3 &&
								!strings.Contains(text, "AND") {
								// the filter is around the same place
								read, rows = read+m.ItemsRead, rows+len(got)
							}
						}
					}
				}
				for range 20 {
					write(g.IntN(items))
				}
			}
			if rings < 30 || rows == 0 || read > 20*rows {
				t.Errorf("%d executions by rings; %d items read for %d rows", rings, read, rows)
			}
		})
	}
}

// TestRingsOnlyOfPlaces: an order by distance has the items without a place first. So only filters that require a place
// can use rings.
func TestRingsOnlyOfPlaces(t *testing.T) {
	g := places{rand.New(rand.NewPCG(1, 2))}
	_, indexed := spatialContainers(t, earthIndex)
	c := indexed["16 slots"]
	for i := range 600 {
		insert(t, c, mustJSON(t, g.document(i)))
	}
	const at = `{"type":"Point","coordinates":[10,50]}`
	for where, want := range map[string]bool{
		"ST_DISTANCE(c.loc, @at) < 2e7":             true,
		"ST_DISTANCE(c.loc, @at) < 2e7 AND c.n > 2": true,
		"IS_DEFINED(c.loc)":                         false,
		"ST_DISTANCE(c.locs[0], @at) < 2e7":         false,
		"ST_DISTANCE(c.loc, @at) < 2e7 OR c.n = 1":  false,
		"c.n = 1": false,
		"EXISTS(SELECT VALUE l FROM l IN c.locs WHERE ST_DISTANCE(l, @at) < 2e7)": false,
	} {
		text := strings.ReplaceAll("SELECT TOP 5 * FROM c WHERE "+where+" ORDER BY ST_DISTANCE(c.loc, @at)", "@at", at)
		if _, m := pages(t, c, testEnv, Request{}, text); strings.Contains(m.Explain, "rings") != want {
			t.Errorf("%s: %s", where, m.Explain)
		}
		if _, m := pages(t, c, testEnv, Request{PK: core.PartitionKey{value.StringOf("p3")}}, text); strings.Contains(
			m.Explain, "rings") {
			t.Errorf("%s in a logical partition: %s", where, m.Explain)
		}
	}
}
