package geo

import (
	"math"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"github.com/orrerydb/orrery/core/value"
)

// touching is the distance in radians below which two places count as equal: 0.6 micrometres on the earth.
const touching = 1e-13

// Geometry is a GeoJSON value on the earth. Intersections are computed on the unit sphere, and metres are measured on
// the WGS 84 ellipsoid. A point is an edge of length 0. The inside of a ring is to its left, so a clockwise outer ring
// is everything except the area that it encloses. Holes may have either direction. A Geometry is immutable.
type Geometry struct {
	edges []s2.Edge // all points, lines and rings
	parts []chunk   // runs of edges with a bound for each
	polys []polygon
	point bool
}

type polygon struct {
	outer *s2.Loop
	holes []*s2.Loop
	rings [][]s2.LatLng // as given, for the area
}

// chunk is a run of neighbouring edges and a cap that contains them.
type chunk struct {
	edges  []s2.Edge
	first  int // number of the first edge
	center s2.Point
	radius s1.Angle
}

const chunkEdges = 32

// bound divides the edges into runs.
func bound(edges []s2.Edge) (out []chunk) {
	for i := 0; i < len(edges); i += chunkEdges {
		run := edges[i:min(i+chunkEdges, len(edges))]
		c := chunk{edges: run, first: i, center: run[len(run)/2].V0}
		for _, e := range run {
			c.radius = max(c.radius, c.center.Distance(e.V0), c.center.Distance(e.V1))
		}
		if len(run) > 1 || run[0].V0 != run[0].V1 {
			// A point of an edge is at most as far as the ends of the edge, except in caps larger than a hemisphere.
			if c.radius *= 1 + 1e-12; c.radius > math.Pi/2 {
				c.radius = math.Pi
			}
		}
		out = append(out, c)
	}
	return out
}

// apart returns a lower bound of the distance of two runs.
func (c *chunk) apart(d *chunk) s1.Angle {
	return c.center.Distance(d.center) - c.radius - d.radius - 1e-14
}

// Parse reads a Point, LineString, Polygon or MultiPolygon of longitudes and latitudes in degrees. It copies the data
// that it keeps. For other values it returns nil and the reason.
func Parse(v value.Value) (g *Geometry, reason string) { return parse(v, &Work{math.MaxInt}) }

func parse(v value.Value, w *Work) (g *Geometry, reason string) {
	if p, ok := readPoint(v); ok && checkLatLng(p) == "" {
		return pointAt(p), ""
	}
	s, reason := read(v, checkLatLng)
	if reason != "" {
		return nil, reason
	}
	return s.geometry(w, false)
}

// geometry returns the shape on the earth. With smaller the inside of an outer ring is its smaller side.
func (s *shape) geometry(w *Work, smaller bool) (g *Geometry, reason string) {
	if s.point {
		return pointAt(s.chains[0][0]), ""
	}
	g = &Geometry{}
	if s.line {
		reason = g.chain(s.chains[0])
	}
	from := 0
	for _, end := range s.ends {
		if reason = g.polygon(s.chains[from:end], w, smaller); reason != "" {
			break
		}
		from = end
	}
	if reason != "" {
		return nil, reason
	}
	g.parts = bound(g.edges)
	return g, ""
}

// pointAt makes a point with a single allocation, because most geometries are points.
func pointAt(at pos) *Geometry {
	m := new(struct {
		g     Geometry
		edges [1]s2.Edge
		parts [1]chunk
	})
	p := s2.PointFromLatLng(latLng(at))
	m.edges[0] = s2.Edge{V0: p, V1: p}
	m.parts[0] = chunk{edges: m.edges[:], center: p}
	m.g = Geometry{edges: m.edges[:], parts: m.parts[:], point: true}
	return &m.g
}

func checkLatLng(p pos) string {
	switch {
	case !(math.Abs(p.y) <= 90):
		return "Latitude values must be between -90 and 90 degrees."
	case !(math.Abs(p.x) <= 180):
		return "Longitude values must be between -180 and 180 degrees."
	}
	return ""
}

func latLng(p pos) s2.LatLng { return s2.LatLngFromDegrees(p.y, p.x) }

// chain adds the edges between neighbouring positions.
func (g *Geometry) chain(ps []pos) string {
	prev := s2.PointFromLatLng(latLng(ps[0]))
	for _, at := range ps[1:] {
		p := s2.PointFromLatLng(latLng(at))
		if prev.Distance(p) > math.Pi-1e-9 {
			return "Neighbouring positions must not be antipodal."
		}
		g.edges = append(g.edges, s2.Edge{V0: prev, V1: p})
		prev = p
	}
	return ""
}

func (g *Geometry) polygon(rings [][]pos, w *Work, smaller bool) string {
	var p polygon
	for _, ps := range rings {
		if s2.PointFromLatLng(latLng(ps[0])) != s2.PointFromLatLng(latLng(ps[len(ps)-1])) {
			return ringOpen
		}
		from := len(g.edges)
		if reason := g.chain(ps); reason != "" {
			return reason
		}
		ring := g.edges[from:]
		if crosses(ring, w) {
			return ringCross
		}
		if w.Left <= 0 {
			return tooDear
		}
		pts, lls := make([]s2.Point, 0, len(ring)), make([]s2.LatLng, 0, len(ring))
		for i, e := range ring {
			if e.V0 == e.V1 {
				return ringRepeat
			}
			pts, lls = append(pts, e.V0), append(lls, latLng(ps[i]))
		}
		loop := s2.LoopFromPoints(pts)
		if p.outer == nil {
			if smaller {
				loop.Normalize()
			}
			p.outer = loop
		} else {
			loop.Normalize()
			p.holes = append(p.holes, loop)
		}
		p.rings = append(p.rings, lls)
	}
	g.polys = append(g.polys, p)
	return ""
}

// crosses reports whether two edges of a ring that aren't neighbours meet. It stops when the work is used up.
func crosses(ring []s2.Edge, w *Work) bool {
	runs := bound(ring)
	for i := range runs {
		for j := i; j < len(runs); j++ {
			if w.Left--; runs[i].apart(&runs[j]) > 0 {
				continue
			}
			if w.Left -= len(runs[i].edges) * len(runs[j].edges); w.Left <= 0 {
				return false
			}
			for a, x := range runs[i].edges {
				for b, y := range runs[j].edges {
					m, n := runs[i].first+a, runs[j].first+b
					if n <= m+1 || m == 0 && n == len(ring)-1 {
						continue
					}
					if x.V0 == y.V0 || s2.CrossingSign(x.V0, x.V1, y.V0, y.V1) == s2.Cross {
						return true
					}
				}
			}
		}
	}
	return false
}

// holds reports whether p is inside one of the polygons.
func (g *Geometry) holds(p s2.Point) bool {
next:
	for _, poly := range g.polys {
		if !poly.outer.ContainsPoint(p) {
			continue
		}
		for _, h := range poly.holes {
			if h.ContainsPoint(p) {
				continue next
			}
		}
		return true
	}
	return false
}

// nearest returns the places of a and b that are nearest to each other, and their distance. The distance is 0 when one
// contains a part of the other.
func nearest(a, b *Geometry) (p, q s2.Point, d s1.Angle) {
	if b.holds(a.edges[0].V0) || a.holds(b.edges[0].V0) {
		return a.edges[0].V0, a.edges[0].V0, 0
	}
	d = s1.InfAngle()
	for i := range a.parts {
		for j := range b.parts {
			if a.parts[i].apart(&b.parts[j]) >= d {
				continue
			}
			for _, x := range a.parts[i].edges {
				for _, y := range b.parts[j].edges {
					s, t := s2.EdgePairClosestPoints(x.V0, x.V1, y.V0, y.V1)
					if e := s.Distance(t); e < d {
						if p, q, d = s, t, e; d == 0 {
							return p, q, 0
						}
					}
				}
			}
		}
	}
	if d < touching || a.touches(b) || b.touches(a) {
		d = 0
	}
	return p, q, d
}

// touches reports whether b has several polygons and one of them begins inside g.
func (g *Geometry) touches(b *Geometry) bool {
	if len(g.polys) == 0 || len(b.polys) < 2 {
		return false
	}
	for _, p := range b.polys {
		if g.holds(p.outer.Vertex(0)) {
			return true
		}
	}
	return false
}

// at reports whether p is on a point, line or ring of g, or inside.
func (g *Geometry) at(p s2.Point) bool { return g.holds(p) || g.onEdge(p) }

func (g *Geometry) onEdge(p s2.Point) bool {
	at := chunk{center: p}
	for i := range g.parts {
		if at.apart(&g.parts[i]) > touching {
			continue
		}
		for _, e := range g.parts[i].edges {
			if s2.DistanceFromSegment(p, e.V0, e.V1) < touching {
				return true
			}
		}
	}
	return false
}

// Intersects reports whether a and b have a place in common. Boundaries count.
func (a *Geometry) Intersects(b *Geometry) bool {
	_, _, d := nearest(a, b)
	return d == 0
}

// Distance returns the metres between the nearest places of a and b, 0 when they intersect.
func (a *Geometry) Distance(b *Geometry) float64 {
	p, q, d := nearest(a, b)
	if d == 0 {
		return 0
	}
	return metres(s2.LatLngFromPoint(p), s2.LatLngFromPoint(q))
}

// Within reports whether all of a lies in b. The boundary of b counts.
func (a *Geometry) Within(b *Geometry) bool {
	if len(a.polys) > 0 && len(b.polys) == 0 {
		return false
	}
	for _, e := range a.edges {
		if !b.at(e.V0) || e.V0 != e.V1 && (!b.at(e.V1) || !b.at(s2.Interpolate(0.5, e.V0, e.V1))) {
			return false
		}
	}
	if len(b.polys) == 0 {
		return true
	}
	for i := range a.parts {
		for j := range b.parts {
			if a.parts[i].apart(&b.parts[j]) > 0 {
				continue
			}
			for _, x := range a.parts[i].edges {
				for _, y := range b.parts[j].edges {
					if s2.CrossingSign(x.V0, x.V1, y.V0, y.V1) == s2.Cross {
						return false
					}
				}
			}
		}
	}
	for _, e := range b.edges { // the outside of b begins at its rings
		if a.holds(e.V0) && !a.onEdge(e.V0) {
			return false
		}
	}
	return true
}
