// Package geo holds places and shapes: GeoJSON values on the earth (Geometry) and in a plane (Flat), what functions ask
// of them, and the cells under which an index keeps them.
//
// A Cell is a square of a quadtree. On the earth it is an S2 cell; in a plane it is a part of a Box, where the
// outermost squares stand for everything beyond the box too. A shape's cells cover it; a region's cells cover it with
// room to spare. So a shape that meets a region has a cell that lies in one of the region's, or around it: Spans finds
// both. That is all that an index needs: it may find more than what meets, never less.
package geo

import (
	"math"
	"math/bits"
	"slices"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"github.com/orrerydb/orrery/core/value"
)

// How many cells a stored shape and a region have at most. On the earth, up to 6 where they lie on all faces of its
// cube.
const (
	MaxShapeCells  = 8
	MaxRegionCells = 12
)

// maxLevel is the depth of the quadtree: leaves of a square centimetre on the earth, of 2^-60 of a box.
const maxLevel = 30

// Cell is the number of a cell: the path of two bits a level from the root, a one, and zeros. The cells inside a cell
// have the numbers around it.
type Cell uint64

func (c Cell) lsb() uint64 { return uint64(c) & -uint64(c) }

// Leaf reports whether the cell is one of the least.
func (c Cell) Leaf() bool { return c&1 != 0 }

// Range returns the least and the greatest number of the cells inside c, itself included.
func (c Cell) Range() (lo, hi Cell) { return c - Cell(c.lsb()-1), c + Cell(c.lsb()-1) }

func (c Cell) parent() Cell {
	lsb := c.lsb() << 2
	return Cell(uint64(c)&-lsb | lsb)
}

func (c Cell) level() int { return maxLevel - bits.TrailingZeros64(uint64(c))/2 }

func (c Cell) children() [4]Cell {
	step := Cell(c.lsb() >> 1)
	first := c - Cell(c.lsb()) + step>>1
	return [4]Cell{first, first + step, first + 2*step, first + 3*step}
}

// Around returns the cells that hold one of cs and are not among them, each once.
func Around(cs []Cell) (out []Cell) {
	for _, c := range cs {
		for c.level() > 0 {
			c = c.parent()
			if slices.Contains(out, c) {
				break
			}
			out = append(out, c)
		}
	}
	return out
}

// relation is what a region has to do with a cell. Weaker is always correct: some for none, some for all.
type relation byte

const (
	none relation = iota
	some
	all
)

// cover returns at most limit cells below roots that hold everything that rel finds.
func cover(roots []Cell, limit int, rel func(Cell) relation) []Cell {
	var done, open []Cell
	add := func(c Cell, r relation) {
		if r == all || c.Leaf() {
			done = append(done, c)
		} else {
			open = append(open, c)
		}
	}
	for _, c := range roots {
		if r := rel(c); r != none {
			add(c, r)
		}
	}
	for len(open) > 0 { // the greatest come first
		c := open[0]
		open = open[1:]
		var rels [4]relation
		kids, n := c.children(), 0
		for i, k := range kids {
			if rels[i] = rel(k); rels[i] != none {
				n++
			}
		}
		if n == 0 || len(done)+len(open)+n > limit {
			done = append(done, c)
			continue
		}
		for i, k := range kids {
			if rels[i] != none {
				add(k, rels[i])
			}
		}
	}
	slices.Sort(done)
	return done
}

// CellsOf reads a geometry on the earth and returns the cells under which an index keeps it: a leaf for a point, at
// most MaxShapeCells for others. There are none for what is no geometry and for one that takes more work than is left.
// What the work no longer reaches is covered more coarsely.
func CellsOf(v value.Value, w *Work) []Cell {
	g, _ := parse(v, w)
	if g == nil {
		return nil
	}
	return g.shapeCells(w)
}

func (g *Geometry) shapeCells(w *Work) []Cell {
	if g.point {
		return []Cell{Cell(s2.CellFromPoint(g.edges[0].V0).ID())}
	}
	return g.cells(shapeSlack, MaxShapeCells, w)
}

// shapeSlack is the angle by which a geometry's cells reach beyond it: what a line along the border of two cells may
// lose to rounding.
const shapeSlack = 1e-10

// cells covers everything within angle of g.
func (g *Geometry) cells(angle s1.Angle, limit int, w *Work) []Cell {
	if angle > 3 {
		return faces()
	}
	return cover(g.roots(angle), limit, func(c Cell) relation { return g.relate(c, angle, w) })
}

func faces() (out []Cell) {
	for i := range 6 {
		out = append(out, Cell(s2.CellIDFromFace(i)))
	}
	return out
}

// roots returns a few cells that hold everything within angle of g, so that a cover needn't begin with the whole earth.
func (g *Geometry) roots(angle s1.Angle) (out []Cell) {
	center := g.parts[0].center
	radius := s1.Angle(0)
	for i := range g.parts {
		radius = max(radius, center.Distance(g.parts[i].center)+g.parts[i].radius)
	}
	if radius += angle + 1e-9; radius > 1.5 {
		return faces()
	}
	// All rings lie in the cap. So what is beyond it lies in the polygons all together or not at all.
	if g.holds(s2.Point{Vector: center.Mul(-1)}) {
		return faces()
	}
	for _, c := range s2.CapFromCenterAngle(center, radius).CellUnionBound() {
		out = append(out, Cell(c))
	}
	return out
}

// relate compares a cell with the places within angle of g.
func (g *Geometry) relate(c Cell, angle s1.Angle, w *Work) relation {
	if w.Left <= 0 {
		return some
	}
	cell := s2.CellFromCellID(s2.CellID(c))
	bound := cell.CapBound()
	center, radius := bound.Center(), bound.Radius()
	chord := s1.ChordAngleFromAngle(angle)
	near, least := false, s1.InfAngle() // least: the distance of the cell's centre from the boundary, where near
	for i := range g.parts {
		p := &g.parts[i]
		if w.Left--; center.Distance(p.center)-p.radius-radius > angle+1e-12 {
			continue
		}
		w.Left -= 10 * len(p.edges)
		for _, e := range p.edges {
			var d s1.ChordAngle
			if e.V0 == e.V1 {
				d = cell.Distance(e.V0)
			} else {
				d = cell.DistanceToEdge(e.V0, e.V1)
			}
			if d > chord {
				continue
			}
			if near = true; angle <= shapeSlack {
				return some
			}
			least = min(least, s2.DistanceFromSegment(center, e.V0, e.V1))
		}
	}
	switch {
	case near && least+radius <= angle, !near && g.holds(center):
		return all
	case near:
		return some
	}
	return none
}

// FlatCellsOf is CellsOf for a plane's box.
func FlatCellsOf(v value.Value, b Box, w *Work) []Cell {
	f, _ := parseFlat(v, w)
	if f == nil {
		return nil
	}
	return f.shapeCells(b, w)
}

func (f *Flat) shapeCells(b Box, w *Work) []Cell {
	if f.point {
		return []Cell{b.leaf(f.box.x0, f.box.y0)}
	}
	return f.cells(b, f.slack(b), MaxShapeCells, w)
}

// leaf returns the leaf that a place lies in, or is nearest to.
func (b Box) leaf(x, y float64) Cell {
	return Cell(interleave(share(x, b.XMin, b.XMax))<<1|interleave(share(y, b.YMin, b.YMax)))<<1 | 1
}

// slack is a distance that rounding in the plane stays far below.
func (f *Flat) slack(b Box) float64 {
	size := max(f.size(), math.Abs(b.XMin), math.Abs(b.XMax), math.Abs(b.YMin), math.Abs(b.YMax))
	return 1e-10*max(b.XMax-b.XMin, b.YMax-b.YMin) + 1e-12*size
}

// share returns which of 2^30 equal parts of lo..hi x lies in, or is nearest to.
func share(x, lo, hi float64) uint64 {
	const n = 1 << maxLevel
	return uint64(max(0, min(n-1, math.Floor((x-lo)/(hi-lo)*n))))
}

// interleave moves bit i to bit 2i.
func interleave(x uint64) uint64 {
	for _, s := range [...]struct {
		by   uint
		mask uint64
	}{{16, 0x0000FFFF0000FFFF}, {8, 0x00FF00FF00FF00FF}, {4, 0x0F0F0F0F0F0F0F0F}, {2, 0x3333333333333333},
		{1, 0x5555555555555555}} {
		x = (x | x<<s.by) & s.mask
	}
	return x
}

// gather is the inverse of interleave.
func gather(x uint64) uint64 {
	x &= 0x5555555555555555
	for _, s := range [...]struct {
		by   uint
		mask uint64
	}{{1, 0x3333333333333333}, {2, 0x0F0F0F0F0F0F0F0F}, {4, 0x00FF00FF00FF00FF}, {8, 0x0000FFFF0000FFFF},
		{16, 0x00000000FFFFFFFF}} {
		x = (x | x>>s.by) & s.mask
	}
	return x
}

// cells covers everything within dist of f in a box.
func (f *Flat) cells(b Box, dist float64, limit int, w *Work) []Cell {
	// The outermost cells reach as far as f does, and farther.
	reach := rect{min(b.XMin, f.box.x0-dist), min(b.YMin, f.box.y0-dist), max(b.XMax, f.box.x1+dist),
		max(b.YMax, f.box.y1+dist)}
	rel := func(c Cell) relation { return f.relate(c.rect(b, reach), dist, w) }
	root, last := b.leaf(f.box.x0-2*dist, f.box.y0-2*dist), b.leaf(f.box.x1+2*dist, f.box.y1+2*dist)
	for { // the least cell that holds two corners holds what is between them
		if lo, hi := root.Range(); lo <= last && last <= hi {
			return cover([]Cell{root}, limit, rel)
		}
		root = root.parent()
	}
}

// rect returns the part of the plane up to reach that a cell stands for.
func (c Cell) rect(b Box, reach rect) rect {
	const n = 1 << maxLevel
	first, _ := c.Range()
	i, j := gather(uint64(first)>>2), gather(uint64(first)>>1)
	size := uint64(1) << (maxLevel - c.level())
	edge := func(i uint64, lo, hi, least, most float64) float64 {
		switch i {
		case 0:
			return least
		case n:
			return most
		}
		return lo + float64(i)/n*(hi-lo)
	}
	return rect{edge(i, b.XMin, b.XMax, reach.x0, reach.x1), edge(j, b.YMin, b.YMax, reach.y0, reach.y1),
		edge(i+size, b.XMin, b.XMax, reach.x0, reach.x1), edge(j+size, b.YMin, b.YMax, reach.y0, reach.y1)}
}

// relate compares a rectangle with the places within dist of f.
func (f *Flat) relate(r rect, dist float64, w *Work) relation {
	if w.Left <= 0 {
		return some
	}
	center := pos{r.x0/2 + r.x1/2, r.y0/2 + r.y1/2}
	radius := math.Hypot(r.x1-r.x0, r.y1-r.y0) / 2 * (1 + 1e-12)
	near, least := false, math.Inf(1)
	for i := range f.parts {
		if w.Left--; f.parts[i].box.apart(r) > dist {
			continue
		}
		w.Left -= len(f.parts[i].segs)
		for _, s := range f.parts[i].segs {
			if s.box().apart(r) > dist || s.fromRect(r) > dist {
				continue
			}
			near, least = true, min(least, s.far(center))
		}
	}
	switch {
	case near && least+radius <= dist, !near && f.holds(center):
		return all
	case near:
		return some
	}
	return none
}

// fromRect is the distance of a segment and a rectangle.
func (s segment) fromRect(r rect) float64 {
	d := min(r.apart(at(s.a)), r.apart(at(s.b)))
	if d == 0 {
		return 0
	}
	corners := [...]pos{{r.x0, r.y0}, {r.x1, r.y0}, {r.x1, r.y1}, {r.x0, r.y1}}
	for i, c := range corners {
		if s.crosses(segment{c, corners[(i+1)&3]}) {
			return 0
		}
		d = min(d, s.far(c))
	}
	return d
}
