package geo

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
)

// FuzzGeometry: a value that is taken as a geometry meets itself, lies no negative distance away and has an area on the earth.
func FuzzGeometry(f *testing.F) {
	for _, s := range []string{
		`{"type":"Point","coordinates":[0,90]}`, `{"type":"LineString","coordinates":[[0,0],[0,0]]}`, `{"type":"LineString","coordinates":[[0,0],[179.999999,0.0001]]}`,
		`{"type":"Polygon","coordinates":[[[0,0],[0,1],[1,1],[0,0]]]}`, `{"type":"Polygon","coordinates":[[[0,90],[1,90],[2,90],[0,90]]]}`,
		`{"type":"Polygon","coordinates":[[[0,0],[180,0],[-180,0],[0,0]]]}`, `{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,0]]],[[[5,0],[6,0],[6,1],[5,0]]]]}`,
		`{"type":"Polygon","coordinates":[[[0,0],[1e-300,0],[0,1e-300],[0,0]]]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			return
		}
		v, err := doc.ValueFromJSON(b)
		if err != nil {
			return
		}
		g, reason := Parse(v)
		if (g == nil) == (reason == "") {
			t.Fatalf("%s: geometry %v, reason %q", b, g != nil, reason)
		}
		if g == nil {
			return
		}
		if _, _, d := nearest(g, g); d != 0 {
			t.Errorf("%s is %v away from itself", b, d)
		}
		g.Within(g)
		if a := g.Area(); !(a > -1 && a < 511e12*float64(len(g.polys))+1) {
			t.Errorf("%s: area %v", b, a)
		}
	})
}

// TestGeometryBounds: a geometry at the limit is compared with itself, one beyond it is refused.
func TestGeometryBounds(t *testing.T) {
	ring := func(n int) string {
		var b strings.Builder
		for i := range n {
			a := 2 * math.Pi * float64(i) / float64(n)
			fmt.Fprintf(&b, "[%v,%v],", 5+math.Cos(a), 5+math.Sin(a))
		}
		return `{"type":"Polygon","coordinates":[[` + b.String() + `[6,5]]]}`
	}
	for n, want := range map[int]string{MaxPositions: "", MaxPositions + 1: tooLarge, 3 * MaxPositions: tooLarge} {
		v, err := doc.ValueFromJSON([]byte(ring(n)))
		if err != nil {
			t.Fatal(err)
		}
		g, reason := Parse(v)
		if reason != want {
			t.Errorf("%d positions: %q, wanted %q", n, reason, want)
		}
		if g != nil && !g.Within(g) {
			t.Errorf("a ring of %d positions is not within itself", n)
		}
	}
}
