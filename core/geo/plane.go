package geo

import (
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/value"
)

// maxFlat limits the coordinates of the plane, so that products of them don't overflow.
const maxFlat = 1e100

// Flat is a GeoJSON value in a plane with straight lines. Its unit is that of the coordinates. The direction of a ring
// has no meaning. A Flat is immutable.
type Flat struct {
	segs  []segment // all points (with length 0), lines and rings
	parts []run     // runs of segments with a bounding rectangle for each
	polys [][][]pos // the rings of each polygon, without the last position
	ends  []pos     // one position of each point, line and outer ring
	box   rect
	point bool
}

type segment struct{ a, b pos }

type rect struct{ x0, y0, x1, y1 float64 }

type run struct {
	segs  []segment
	first int
	box   rect
}

// Box is a rectangle of the plane. Max is greater than Min in both directions. All coordinates are finite, up to 1e100.
type Box struct{ XMin, YMin, XMax, YMax float64 }

// Valid reports whether the box satisfies the rules of Box.
func (b Box) Valid() bool {
	for _, x := range [...]float64{b.XMin, b.YMin, b.XMax, b.YMax} {
		if !(math.Abs(x) <= maxFlat) {
			return false
		}
	}
	return b.XMin < b.XMax && b.YMin < b.YMax
}

func (s segment) box() rect {
	return rect{min(s.a.x, s.b.x), min(s.a.y, s.b.y), max(s.a.x, s.b.x), max(s.a.y, s.b.y)}
}

func (r rect) join(o rect) rect {
	return rect{min(r.x0, o.x0), min(r.y0, o.y0), max(r.x1, o.x1), max(r.y1, o.y1)}
}

// apart returns the distance of two rectangles.
func (r rect) apart(o rect) float64 {
	return math.Hypot(max(0, o.x0-r.x1, r.x0-o.x1), max(0, o.y0-r.y1, r.y0-o.y1))
}

func at(p pos) rect { return rect{p.x, p.y, p.x, p.y} }

func runs(segs []segment) (out []run) {
	for i := 0; i < len(segs); i += chunkEdges {
		r := run{segs: segs[i:min(i+chunkEdges, len(segs))], first: i, box: segs[i].box()}
		for _, s := range r.segs {
			r.box = r.box.join(s.box())
		}
		out = append(out, r)
	}
	return out
}

// ParseFlat reads a Point, LineString, Polygon or MultiPolygon of the plane. It copies the data that it keeps. For
// other values it returns nil and the reason.
func ParseFlat(v value.Value) (f *Flat, reason string) { return parseFlat(v, &Work{math.MaxInt}) }

func parseFlat(v value.Value, w *Work) (f *Flat, reason string) {
	if p, ok := readPoint(v); ok && checkFlat(p) == "" {
		return flatPoint(p), ""
	}
	s, reason := read(v, checkFlat)
	if reason != "" {
		return nil, reason
	}
	if s.point {
		return flatPoint(s.chains[0][0]), ""
	}
	f = &Flat{}
	for i, c := range s.chains {
		from := len(f.segs)
		for j := range c[1:] {
			f.segs = append(f.segs, segment{c[j], c[j+1]})
		}
		switch {
		case s.line:
		default:
			if c[0] != c[len(c)-1] {
				return nil, ringOpen
			}
			if reason := checkRing(f.segs[from:], w); reason != "" {
				return nil, reason
			}
			s.chains[i] = c[:len(c)-1]
		}
	}
	from := 0
	for _, end := range s.ends {
		f.polys = append(f.polys, s.chains[from:end])
		f.ends = append(f.ends, s.chains[from][0])
		from = end
	}
	if len(s.ends) == 0 {
		f.ends = []pos{s.chains[0][0]}
	}
	f.parts = runs(f.segs)
	f.box = f.parts[0].box
	for _, r := range f.parts {
		f.box = f.box.join(r.box)
	}
	return f, ""
}

// flatPoint makes a point with a single allocation.
func flatPoint(p pos) *Flat {
	m := new(struct {
		f     Flat
		segs  [1]segment
		parts [1]run
		ends  [1]pos
	})
	m.segs[0], m.ends[0] = segment{p, p}, p
	m.parts[0] = run{segs: m.segs[:], box: at(p)}
	m.f = Flat{segs: m.segs[:], parts: m.parts[:], ends: m.ends[:], box: at(p), point: true}
	return &m.f
}

func checkFlat(p pos) string {
	if !(math.Abs(p.x) <= maxFlat && math.Abs(p.y) <= maxFlat) {
		return "Coordinates must be numbers between -1e100 and 1e100."
	}
	return ""
}

// checkRing returns what is wrong with the segments of a ring, "" if nothing. It stops when the work is used up.
func checkRing(ring []segment, w *Work) string {
	for _, s := range ring {
		if s.a == s.b {
			return ringRepeat
		}
	}
	rs := runs(ring)
	for i := range rs {
		for j := i; j < len(rs); j++ {
			if w.Left--; rs[i].box.apart(rs[j].box) > 0 {
				continue
			}
			if w.Left -= len(rs[i].segs) * len(rs[j].segs); w.Left <= 0 {
				return tooDear
			}
			for k, s := range rs[i].segs {
				for l, t := range rs[j].segs {
					m, n := rs[i].first+k, rs[j].first+l
					if n <= m+1 || m == 0 && n == len(ring)-1 {
						continue
					}
					if s.a == t.a || s.crosses(t) {
						return ringCross
					}
				}
			}
		}
	}
	return ""
}

// side is positive when p lies to the left of s, and negative when it lies to the right.
func (s segment) side(p pos) float64 {
	return (s.b.x-s.a.x)*(p.y-s.a.y) - (s.b.y-s.a.y)*(p.x-s.a.x)
}

// crosses reports whether two segments cross at a point that isn't an end of either.
func (s segment) crosses(t segment) bool {
	return opposite(s.side(t.a), s.side(t.b)) && opposite(t.side(s.a), t.side(s.b))
}

func opposite(a, b float64) bool { return a > 0 && b < 0 || a < 0 && b > 0 }

// along returns the position on s (0..1) that is nearest to p.
func (s segment) along(p pos) float64 {
	dx, dy := s.b.x-s.a.x, s.b.y-s.a.y
	n := math.Hypot(dx, dy)
	if n == 0 {
		return 0
	}
	return max(0, min(1, ((p.x-s.a.x)/n)*(dx/n)+((p.y-s.a.y)/n)*(dy/n)))
}

func (s segment) point(t float64) pos {
	return pos{s.a.x + t*(s.b.x-s.a.x), s.a.y + t*(s.b.y-s.a.y)}
}

func (s segment) far(p pos) float64 {
	q := s.point(s.along(p))
	return math.Hypot(p.x-q.x, p.y-q.y)
}

// apart returns the distance of two segments.
func (s segment) apart(t segment) float64 {
	if s.crosses(t) {
		return 0
	}
	return min(s.far(t.a), s.far(t.b), t.far(s.a), t.far(s.b))
}

// same returns the distance below which two places of a and b count as equal: a bound of the rounding error for
// coordinates of this size.
func same(a, b *Flat) float64 { return 1e-13 * max(a.size(), b.size()) }

func (f *Flat) size() float64 {
	return max(math.Abs(f.box.x0), math.Abs(f.box.x1), math.Abs(f.box.y0), math.Abs(f.box.y1))
}

// holds reports whether p is inside one of the polygons. On a boundary either answer is possible.
func (f *Flat) holds(p pos) bool {
next:
	for _, rings := range f.polys {
		for i, r := range rings {
			if insideRing(r, p) != (i == 0) {
				continue next
			}
		}
		return true
	}
	return false
}

// insideRing reports whether the ring crosses the horizontal ray from p to the right an odd number of times.
func insideRing(ring []pos, p pos) (in bool) {
	a := ring[len(ring)-1]
	for _, b := range ring {
		if a.y > p.y != (b.y > p.y) {
			if left := (segment{a, b}).side(p); left > 0 == (b.y > a.y) && left != 0 {
				in = !in
			}
		}
		a = b
	}
	return in
}

func (f *Flat) onEdge(p pos, tol float64) bool {
	for i := range f.parts {
		if at(p).apart(f.parts[i].box) > tol {
			continue
		}
		for _, s := range f.parts[i].segs {
			if s.far(p) <= tol {
				return true
			}
		}
	}
	return false
}

// Distance returns the distance of the nearest places of a and b, 0 when they intersect.
func (a *Flat) Distance(b *Flat) float64 {
	for _, p := range a.ends {
		// without a common boundary, a polygon contains all of the other shape's part or nothing of it
		if b.holds(p) {
			return 0
		}
	}
	for _, p := range b.ends {
		if a.holds(p) {
			return 0
		}
	}
	d := math.Inf(1)
	for i := range a.parts {
		for j := range b.parts {
			if a.parts[i].box.apart(b.parts[j].box) >= d {
				continue
			}
			for _, s := range a.parts[i].segs {
				for _, t := range b.parts[j].segs {
					d = min(d, s.apart(t))
				}
			}
		}
	}
	if d <= same(a, b) {
		return 0
	}
	return d
}

// Intersects reports whether a and b have a place in common. Boundaries count.
func (a *Flat) Intersects(b *Flat) bool { return a.Distance(b) == 0 }

// Within reports whether all of a lies in b. The boundary of b counts.
func (a *Flat) Within(b *Flat) bool {
	if len(a.polys) > 0 && len(b.polys) == 0 {
		return false
	}
	tol := same(a, b)
	in := func(p pos) bool { return b.holds(p) || b.onEdge(p, tol) }
	var cuts []float64
	for _, s := range a.segs {
		if !in(s.a) || !in(s.b) {
			return false
		}
		// Between two neighbouring cuts, s stays on one side of the boundary.
		cuts = b.cuts(append(cuts[:0], 0), s, tol)
		cuts = append(cuts, 1)
		slices.Sort(cuts)
		for i, t := range cuts[1:] {
			if t > cuts[i] && !in(s.point((t+cuts[i])/2)) {
				return false
			}
		}
	}
	for _, rings := range b.polys { // the outside of b begins at its rings
		for _, r := range rings {
			for _, p := range r {
				if a.holds(p) && !a.onEdge(p, tol) {
					return false
				}
			}
		}
	}
	return true
}

// cuts appends the positions on s (0..1) where it meets the boundary of f.
func (f *Flat) cuts(dst []float64, s segment, tol float64) []float64 {
	box := s.box()
	for i := range f.parts {
		if box.apart(f.parts[i].box) > tol {
			continue
		}
		for _, t := range f.parts[i].segs {
			if s.crosses(t) {
				u, v := t.side(s.a), t.side(s.b)
				dst = append(dst, u/(u-v))
				continue
			}
			for _, p := range [...]pos{t.a, t.b} {
				if s.far(p) <= tol {
					dst = append(dst, s.along(p))
				}
			}
		}
	}
	return dst
}

// Area returns the area in square units; points and lines have area 0.
func (f *Flat) Area() float64 {
	sum := 0.0
	for _, rings := range f.polys {
		for i, r := range rings {
			a, o := 0.0, r[0]
			for j := 1; j+1 < len(r); j++ {
				a += (r[j].x-o.x)*(r[j+1].y-o.y) - (r[j+1].x-o.x)*(r[j].y-o.y)
			}
			if a = math.Abs(a) / 2; i > 0 {
				a = -a
			}
			sum += a
		}
	}
	return sum
}
