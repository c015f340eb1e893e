package geo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

func valueOf(t testing.TB, json string) value.Value {
	t.Helper()
	v, err := doc.ValueFromJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// around writes a random shape of n positions near (x, y), at most size away. With wrap, longitudes and latitudes
// outside of their ranges are changed to equivalent ones inside.
func around(r *rand.Rand, x, y, size float64, wrap bool) string {
	put := func(x, y float64) string {
		if wrap {
			if y = max(-90, min(90, y)); x > 180 {
				x -= 360
			} else if x < -180 {
				x += 360
			}
		}
		return fmt.Sprintf("[%v,%v]", x, y)
	}
	switch r.IntN(3) {
	case 0:
		return `{"type":"Point","coordinates":` + put(x, y) + `}`
	case 1:
		var ps []string
		for range 2 + r.IntN(5) {
			ps = append(ps, put(x+size*(r.Float64()*2-1), y+size*(r.Float64()*2-1)))
		}
		return `{"type":"LineString","coordinates":[` + strings.Join(ps, ",") + `]}`
	}
	var ps []string
	n := 3 + r.IntN(8)
	for i := range n {
		a := 2 * math.Pi * (float64(i) + r.Float64()/2) / float64(n)
		d := size * (0.2 + 0.8*r.Float64())
		ps = append(ps, put(x+d*math.Cos(a), y+d*math.Sin(a)))
	}
	if r.IntN(8) == 0 { // on the earth: the complement
		slices.Reverse(ps)
	}
	return `{"type":"Polygon","coordinates":[[` + strings.Join(append(ps, ps[0]), ",") + `]]}`
}

func overlap(region, shape []Cell) bool {
	for _, c := range region {
		lo, hi := c.Range()
		for _, s := range shape {
			if lo <= s && s <= hi {
				return true
			}
		}
	}
	for _, c := range Around(region) {
		for _, s := range shape {
			if s == c {
				return true
			}
		}
	}
	return false
}

// TestCellsOnEarth: the cells of a region find each shape that meets it, and don't find most other shapes.
func TestCellsOnEarth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	met, missed, found := 0, 0, 0
	for range race.Fewer(6000, 600) {
		x, y := r.Float64()*360-180, r.Float64()*180-90
		switch r.IntN(5) {
		case 0:
			y = 89.9 - r.Float64() // the pole
		case 1:
			x = 179.9 // the antimeridian
		case 2:
			x, y = float64(r.IntN(8))*45-180, float64(r.IntN(4))*45-90 // corners and borders of cells
		}
		size := math.Pow(10, r.Float64()*6-4.5)
		a, _ := Parse(valueOf(t, around(r, x, y, size, true)))
		b, _ := Parse(valueOf(t, around(r, x+size*3*(r.Float64()-0.5), y+size*3*(r.Float64()-0.5), size, true)))
		if a == nil || b == nil {
			continue
		}
		d := a.Distance(b)
		limit := 0.0
		if r.IntN(2) == 0 {
			limit = d * math.Pow(10, r.Float64()-0.5)
			if r.IntN(3) == 0 {
				limit = d // exactly at the limit
			}
		}
		cells, region := a.shapeCells(&Work{1 << 30}), Near(b, limit).Cells(Box{})
		if len(cells) > maxShapeCells || len(region) > maxRegionCells {
			t.Fatalf("%d cells of a shape, %d of a region", len(cells), len(region))
		}
		hit := overlap(region, cells)
		if d <= limit {
			if met++; !hit {
				t.Fatalf("distance %v is at most %v, and no cell of the one is one of the other:\n%v\n%v", d, limit,
					cells, region)
			}
		} else if missed++; hit {
			found++
		}
	}
	if met < race.Fewer(1000, 100) || missed < race.Fewer(1000, 100) || found*3 > missed*2 {
		t.Errorf("%d met, %d not, of which the cells let %d through", met, missed, found)
	}
}

// TestCellsInPlane is TestCellsOnEarth in planes, with shapes inside and outside of the box.
func TestCellsInPlane(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	met, missed, found := 0, 0, 0
	for range 8000 {
		w, off := math.Pow(10, r.Float64()*8-4), math.Pow(10, r.Float64()*6-3)*float64(r.IntN(3)-1)
		box := Box{off, -w / 2, off + w, w * r.Float64()}
		if !box.Valid() {
			continue
		}
		x, y := off+w*(r.Float64()*1.6-0.3), w*(r.Float64()*2-1)
		if r.IntN(4) == 0 {
			x, y = off+w*float64(r.IntN(9))/8, box.YMin+(box.YMax-box.YMin)*float64(r.IntN(9))/8
		}
		size := w * math.Pow(10, r.Float64()*4-4)
		a, _ := ParseFlat(valueOf(t, around(r, x, y, size, false)))
		b, _ := ParseFlat(valueOf(t, around(r, x+size*3*(r.Float64()-0.5), y+size*3*(r.Float64()-0.5), size, false)))
		if a == nil || b == nil {
			continue
		}
		d := a.Distance(b)
		limit := 0.0
		if r.IntN(2) == 0 {
			limit = d * math.Pow(10, r.Float64()-0.5)
			if r.IntN(3) == 0 {
				limit = d
			}
		}
		cells, region := a.shapeCells(box, &Work{1 << 30}), NearFlat(b, limit).Cells(box)
		if len(cells) > maxShapeCells || len(region) > maxRegionCells {
			t.Fatalf("%d cells of a shape, %d of a region", len(cells), len(region))
		}
		hit := overlap(region, cells)
		if d <= limit {
			if met++; !hit {
				t.Fatalf("box %v: distance %v is at most %v, and no cell of the one is one of the other:\n%v %v\n%v %v",
					box, d, limit, a.segs, cells, b.segs, region)
			}
		} else if missed++; hit {
			found++
		}
	}
	if met < 1000 || missed < 1000 || found*3 > missed*2 {
		t.Errorf("%d met, %d not, of which the cells let %d through", met, missed, found)
	}
}

// TestCellTree: parents contain their children, and the quarters of a square are numbered in the documented order.
func TestCellTree(t *testing.T) {
	box := Box{0, 0, 8, 8}
	p, _ := ParseFlat(valueOf(t, `{"type":"Point","coordinates":[5,2]}`))
	c := p.shapeCells(box, &Work{1 << 30})[0]
	if !c.Leaf() || c.level() != maxLevel {
		t.Fatalf("the cell of a point is %x", uint64(c))
	}
	for n, side := maxLevel, 8.0/(1<<maxLevel); ; n, side = n-1, side*2 {
		r := c.rect(box, rect{0, 0, 8, 8})
		if !(r.x0 <= 5 && 5 <= r.x1 && r.y0 <= 2 && 2 <= r.y1) || r.x1-r.x0 != side || c.level() != n {
			t.Fatalf("level %d: %v", n, r)
		}
		if n == 0 {
			break
		}
		up := c.parent()
		if lo, hi := up.Range(); c < lo || c > hi {
			t.Fatalf("%x is not inside its parent %x", uint64(c), uint64(up))
		}
		kids := up.children()
		if c != kids[0] && c != kids[1] && c != kids[2] && c != kids[3] {
			t.Fatalf("%x is no child of its parent %x", uint64(c), uint64(up))
		}
		c = up
	}
}

// TestCellsStay pins the cells of some shapes. Indexes store them, and an item's entries are removed by computing its
// cells again. A better choice of cells needs a rebuild of all indexes (a new store format), and new figures here.
func TestCellsStay(t *testing.T) {
	for json, want := range map[string][2]string{
		`{"type":"Point","coordinates":[13.4,52.5]}`: {"[47a84fd52ba654f7]",
			"[1aeaebafbfbaeffb]"},
		`{"type":"LineString","coordinates":[[13.4,52.5],[13.5,52.6],[-3,40]]}`: {"[d50000000000000 12ac000000000000 4794000000000000 47a4000000000000 47a8500000000000 47a8c00000000000 47bd400000000000 47f0000000000000]",
			"[fd6c00000000000 fdd000000000000 fdf540000000000 1a8b000000000000 1aa4000000000000 1aad540000000000 1abc000000000000 1aeac00000000000]"},
		`{"type":"Polygon","coordinates":[[[0,0],[20,0],[20,20],[0,20],[0,0]],[[5,5],[6,5],[6,6],[5,5]]]}`: {"[555555555555555 e40000000000000 fc0000000000000 1040000000000000 10c0000000000000 1140000000000000 11c0000000000000 1b00000000000000]",
			"[7ffffffffffffff d50000000000000 d70000000000000 dd0000000000000 df5000000000000 12c0000000000000 1840000000000000 18c0000000000000]"},
		`{"type":"MultiPolygon","coordinates":[[[[179,1],[-179,1],[-179,2],[179,2],[179,1]]],[[[10,88],[130,88],[-110,88],[10,88]]]]}`: {"[4555000000000000 4557000000000000 4ffc000000000000 5001000000000000 5003000000000000 5aac000000000000 6554000000000000 7aac000000000000]",
			"[900000000000000 b00000000000000 d00000000000000 f00000000000000 1900000000000000 1b00000000000000 1d00000000000000 1f00000000000000]"},
	} {
		v := valueOf(t, json)
		w := Work{1 << 30}
		if got := fmt.Sprintf("%x", CellsOf(v, &w)); got != want[0] {
			t.Errorf("%s: %s", json, got)
		}
		if got := fmt.Sprintf("%x", FlatCellsOf(v, Box{-100, -50, 100, 50}, &w)); got != want[1] {
			t.Errorf("in a plane %s: %s", json, got)
		}
	}
}
