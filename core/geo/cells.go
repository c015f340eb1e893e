// Package geo implements places and shapes: GeoJSON values on the earth (Geometry) and in a plane (Flat), the functions
// on them, and the cells under which an index stores them. It is the only importer of S2.
//
// A Cell is a square of a quadtree. On the earth it is an S2 cell. In a plane it is a part of a Box; the outermost
// squares also represent everything outside the box. The cells of a shape cover it. The cells of a region cover it with
// a margin. So if a shape meets a region, then a cell of the shape lies inside a cell of the region (Cell.Range), or
// contains one (Around). This is all that an index needs: it may find shapes that don't meet the region, but it never
// misses one that does.
//
// Example: a query asks for points within 1 km of a place. Region.Cells returns up to 12 cells, which cover a circle of
// slightly more than 1 km. The index entries in the range of each cell and those of the cells around them are the
// candidates. Geometry.Distance decides about each candidate.
package geo

import (
	"math"
	"math/bits"
	"slices"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"github.com/orrerydb/orrery/core/value"
)

// The largest numbers of cells of a stored shape and of a region. On the earth, a shape that touches several faces of
// the S2 cube has at least one cell for each face, up to 6.
const (
	maxShapeCells  = 8
	maxRegionCells = 12
)

// maxLevel is the depth of the quadtree. A leaf is about a square centimetre on the earth, and 2^-60 of the area of a
// box.
const maxLevel = 30

// Cell is the number of a cell: the path from the root with two bits for each level, then a one, then zeros. The cells
// inside a cell have the numbers directly below and above its own, see Range.
type Cell uint64

func (c Cell) lsb() uint64 { return uint64(c) & -uint64(c) }

// Leaf reports whether the cell has the smallest size.
func (c Cell) Leaf() bool { return c&1 != 0 }

// Range returns the smallest and the largest number of the cells inside c. c itself is included.
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

// Around returns the ancestors of the cells cs, each once.
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

// relation says how much of a cell lies in a region. An imprecise answer is always correct: some instead of none or of
// all.
type relation byte

const (
	none relation = iota
	some
	all
)

// cover returns at most limit cells at or below roots. Together they contain everything in the region that rel
// describes. It splits the largest cells first, until all cells lie inside the region or the limit is reached.
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
	for len(open) > 0 { // larger cells first
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

// CellsOf reads a geometry on the earth and returns the cells under which an index stores it: a leaf for a point, at
// most maxShapeCells cells for other shapes. It returns none for a value that isn't a geometry, and for one that is too
// expensive for w to validate. When w is used up during the covering, the remaining cells stay coarse.
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
	return g.cells(shapeSlack, maxShapeCells, w)
}

// shapeSlack is the angle in radians by which the cells of a geometry extend beyond it. Rounding moves a line along the
// border of two cells by less.
const shapeSlack = 1e-10

// cells returns cells that cover all places within angle of g.
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

// roots returns a few cells that contain all places within angle of g, so that cover needn't start with the whole
// earth.
func (g *Geometry) roots(angle s1.Angle) (out []Cell) {
	center := g.parts[0].center
	radius := s1.Angle(0)
	for i := range g.parts {
		radius = max(radius, center.Distance(g.parts[i].center)+g.parts[i].radius)
	}
	if radius += angle + 1e-9; radius > 1.5 {
		return faces()
	}
	// All rings lie in the cap. So the part of the earth outside the cap is either completely inside the polygons or
	// completely outside.
	if g.holds(s2.Point{Vector: center.Mul(-1)}) {
		return faces()
	}
	for _, c := range s2.CapFromCenterAngle(center, radius).CellUnionBound() {
		out = append(out, Cell(c))
	}
	return out
}

// relate returns the relation of a cell to the places within angle of g.
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

// FlatCellsOf is CellsOf for the plane of box b.
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
	return f.cells(b, f.slack(b), maxShapeCells, w)
}

// leaf returns the leaf that contains a place, or the nearest leaf for a place outside the box.
func (b Box) leaf(x, y float64) Cell {
	return Cell(interleave(share(x, b.XMin, b.XMax))<<1|interleave(share(y, b.YMin, b.YMax)))<<1 | 1
}

// slack is a distance much larger than rounding errors in the plane.
func (f *Flat) slack(b Box) float64 {
	size := max(f.size(), math.Abs(b.XMin), math.Abs(b.XMax), math.Abs(b.YMin), math.Abs(b.YMax))
	return 1e-10*max(b.XMax-b.XMin, b.YMax-b.YMin) + 1e-12*size
}

// share divides lo..hi into 2^30 equal parts and returns the number of the part that contains x, or of the nearest
// part.
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

// cells returns cells that cover all places within dist of f in a box.
func (f *Flat) cells(b Box, dist float64, limit int, w *Work) []Cell {
	// The outermost cells extend at least as far as f does.
	reach := rect{min(b.XMin, f.box.x0-dist), min(b.YMin, f.box.y0-dist), max(b.XMax, f.box.x1+dist),
		max(b.YMax, f.box.y1+dist)}
	rel := func(c Cell) relation { return f.relate(c.rect(b, reach), dist, w) }
	root, last := b.leaf(f.box.x0-2*dist, f.box.y0-2*dist), b.leaf(f.box.x1+2*dist, f.box.y1+2*dist)
	for { // the smallest cell that contains two corners contains everything between them
		if lo, hi := root.Range(); lo <= last && last <= hi {
			return cover([]Cell{root}, limit, rel)
		}
		root = root.parent()
	}
}

// rect returns the part of the plane, up to reach, that a cell represents.
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

// relate returns the relation of a rectangle to the places within dist of f.
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

// fromRect returns the distance between a segment and a rectangle.
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
