package geo

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// FuzzGeometry: a value that is read as a geometry, on the earth or in a plane, intersects itself, has an area, and has
// few cells, which a region around it finds.
func FuzzGeometry(f *testing.F) {
	for _, s := range []string{
		`{"type":"Point","coordinates":[0,90]}`, `{"type":"LineString","coordinates":[[0,0],[0,0]]}`,
		`{"type":"LineString","coordinates":[[0,0],[179.999999,0.0001]]}`,
		`{"type":"Polygon","coordinates":[[[0,0],[0,1],[1,1],[0,0]]]}`,
		`{"type":"Polygon","coordinates":[[[0,90],[1,90],[2,90],[0,90]]]}`,
		`{"type":"Polygon","coordinates":[[[0,0],[180,0],[-180,0],[0,0]]]}`,
		`{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,0]]],[[[5,0],[6,0],[6,1],[5,0]]]]}`,
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
		flat(t, v, b)
		g, reason := Parse(v)
		if (g == nil) == (reason == "") || g != nil && !Resembles(v) {
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
		if cells := g.shapeCells(&Work{1 << 30}); len(cells) == 0 || len(cells) > maxShapeCells ||
			!overlap(Near(g, 0).Cells(Box{}), cells) {
			t.Errorf("%s: cells %v", b, cells)
		}
	})
}

func flat(t *testing.T, v value.Value, b []byte) {
	f, reason := ParseFlat(v)
	if (f == nil) == (reason == "") || f != nil && !Resembles(v) {
		t.Fatalf("%s: geometry %v, reason %q", b, f != nil, reason)
	}
	if f == nil {
		return
	}
	if d := f.Distance(f); d != 0 {
		t.Errorf("%s is %v away from itself", b, d)
	}
	if a := f.Area(); math.IsNaN(a) {
		t.Errorf("%s has no area", b)
	}
	f.Within(f)
	for _, box := range []Box{{0, 0, 1, 1}, {-1e100, -1e100, 1e100, 1e100}, {5, -1e-300, 6, 1e-300}} {
		if cells := f.shapeCells(box, &Work{1 << 30}); len(cells) == 0 || len(cells) > maxShapeCells ||
			!overlap(NearFlat(f, 0).Cells(box), cells) {
			t.Errorf("%s: cells %v of %v", b, cells, box)
		}
	}
}

// TestGeometryBounds: a geometry with maxPositions positions is compared with itself; a larger one is refused.
func TestGeometryBounds(t *testing.T) {
	ring := func(n int) string {
		var b strings.Builder
		for i := range n {
			a := 2 * math.Pi * float64(i) / float64(n)
			fmt.Fprintf(&b, "[%v,%v],", 5+math.Cos(a), 5+math.Sin(a))
		}
		return `{"type":"Polygon","coordinates":[[` + b.String() + `[6,5]]]}`
	}
	for n, want := range map[int]string{maxPositions: "", maxPositions + 1: tooLarge, 3 * maxPositions: tooLarge} {
		v, err := doc.ValueFromJSON([]byte(ring(n)))
		if err != nil {
			t.Fatal(err)
		}
		g, reason := Parse(v)
		if reason != want {
			t.Errorf("%d positions: %q, wanted %q", n, reason, want)
		}
		if race.Enabled {
			continue // the rest is quadratic, in one goroutine
		}
		if f, _ := ParseFlat(v); f != nil &&
			(!f.Within(f) || len(f.shapeCells(Box{0, 0, 10, 10}, &Work{1 << 30})) == 0) {
			t.Errorf("in a plane a ring of %d positions is not within itself", n)
		}
		if g != nil && (!g.Within(g) || len(g.shapeCells(&Work{1 << 30})) == 0) {
			t.Errorf("a ring of %d positions is not within itself", n)
		}
	}
}

// TestWork: shapes that are expensive to process cost at most the given work. What is given up is visible in the
// result.
func TestWork(t *testing.T) {
	var zigzag strings.Builder
	for i := range maxPositions / 2 {
		fmt.Fprintf(&zigzag, "[%v,-60],[%v,60],", float64(i)/100-40, float64(i)/100-39.995)
	}
	line := valueOf(t, `{"type":"LineString","coordinates":[`+strings.TrimSuffix(zigzag.String(), ",")+`]}`)
	ring := valueOf(t, `{"type":"Polygon","coordinates":[[`+zigzag.String()+`[50,70],[-41,70],[-40,-60]]]}`)
	for _, box := range []*Box{nil, {-180, -90, 180, 90}} {
		for _, v := range []value.Value{line, ring} {
			w := Work{100_000}
			var cells []Cell
			if box != nil {
				cells = FlatCellsOf(v, *box, &w)
			} else {
				cells = CellsOf(v, &w)
			}
			if w.Left < -200_000 || (len(cells) == 0) != (v.Get("type").Str() == "Polygon") {
				t.Errorf("%v: %d cells, work left %d", box, len(cells), w.Left)
			}
		}
	}
}
