package geo

import "math"

// Area is a part of a plane: a rectangle, a polygon or a circle. Its boundary belongs to it. Unlike the ring of a Flat,
// that of a polygon may cross itself; inside is where a ray crosses it an odd number of times.
type Area struct {
	box    rect
	ring   []pos // of a polygon
	center pos   // of a circle
	radius float64
	circle bool
}

// RectangleArea returns the rectangle with two opposite corners.
func RectangleArea(x0, y0, x1, y1 float64) *Area {
	return &Area{box: rect{min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)}}
}

// CircleArea returns a circle.
func CircleArea(x, y, radius float64) *Area {
	return &Area{circle: true, center: pos{x, y}, radius: radius,
		box: rect{x - radius, y - radius, x + radius, y + radius}}
}

// PolygonArea returns the polygon with the corners x and y, of which it has as many.
func PolygonArea(x, y []float64) *Area {
	a := &Area{box: rect{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}}
	for i := range x {
		p := pos{x[i], y[i]}
		a.ring = append(a.ring, p)
		a.box = a.box.join(at(p))
	}
	return a
}

// Holds reports whether a point lies in the area.
func (a *Area) Holds(x, y float64) bool {
	p := pos{x, y}
	if a.circle {
		return math.Hypot(x-a.center.x, y-a.center.y) <= a.radius*(1+1e-15)
	}
	if at(p).apart(a.box) > 0 {
		return false
	}
	if a.ring == nil || insideRing(a.ring, p) {
		return true
	}
	tol := 1e-15 * max(math.Abs(x), math.Abs(y))
	last := a.ring[len(a.ring)-1]
	for _, q := range a.ring {
		if (segment{last, q}).far(p) <= tol {
			return true
		}
		last = q
	}
	return false
}

// Region returns the region of the points that may lie in the area. Only the index over shapes has it.
func (a *Area) Region() *Region {
	if a.circle {
		return &Region{flat: flatPoint(a.center), dist: a.radius, pairs: true}
	}
	ring := a.ring
	b := a.box
	f := flatRing(ring)
	if f == nil {
		f = flatRing([]pos{{b.x0, b.y0}, {b.x1, b.y0}, {b.x1, b.y1}, {b.x0, b.y1}})
	}
	return &Region{flat: f, pairs: true}
}

// NearPoint returns the region of the points of a plane within a distance of one.
func NearPoint(x, y, dist float64) *Region {
	return &Region{flat: flatPoint(pos{x, y}), dist: dist, pairs: true}
}

// regionSegments is the largest number of sides of a polygon whose own form selects the cells. The bounding box of a
// larger one selects them.
const regionSegments = 1000

// flatRing returns the polygon of one ring, nil for a ring that crosses itself or is too large.
func flatRing(ring []pos) *Flat {
	if len(ring) == 0 || len(ring) > regionSegments {
		return nil
	}
	f := &Flat{polys: [][][]pos{{ring}}, ends: ring[:1]}
	for i, p := range ring {
		f.segs = append(f.segs, segment{p, ring[(i+1)%len(ring)]})
	}
	if checkRing(f.segs, &Work{regionWork}) == ringCross {
		return nil
	}
	f.parts = runs(f.segs)
	f.box = f.parts[0].box
	for _, r := range f.parts {
		f.box = f.box.join(r.box)
	}
	return f
}
