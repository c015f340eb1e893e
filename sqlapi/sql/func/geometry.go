package funcs

import (
	"math"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"github.com/orrerydb/orrery/core/value"
)

// touching is the distance in radians below which two places are the same: 0.6 micrometres on the earth.
const touching = 1e-13

// geometry is a GeoJSON value on the unit sphere. Points are edges of no length. A ring's inside is to its left, so that a
// clockwise outer ring is everything but what it encloses; holes may go either way round.
type geometry struct {
	edges []s2.Edge // all points, lines and rings
	parts []chunk   // edges in runs with a bound around each
	polys []polygon
	lines bool // has a LineString
}

type polygon struct {
	outer *s2.Loop
	holes []*s2.Loop
	rings [][]s2.LatLng // as given, for the area
}

// chunk is a run of neighbouring edges and a cap that holds them.
type chunk struct {
	edges  []s2.Edge
	first  int // number of the first edge
	center s2.Point
	radius s1.Angle
}

const chunkEdges = 32

// maxPositions bounds a geometry, so that two that wind around each other are compared within seconds.
const (
	maxPositions = 8192
	tooLarge     = "A geometry must have at most 8192 positions."
)

// bound cuts the edges into runs.
func bound(edges []s2.Edge) (out []chunk) {
	for i := 0; i < len(edges); i += chunkEdges {
		run := edges[i:min(i+chunkEdges, len(edges))]
		c := chunk{edges: run, first: i, center: run[len(run)/2].V0}
		for _, e := range run {
			c.radius = max(c.radius, c.center.Distance(e.V0), c.center.Distance(e.V1))
		}
		if len(run) > 1 || run[0].V0 != run[0].V1 {
			// A point of an edge is no farther than its ends, but for caps beyond a hemisphere.
			if c.radius *= 1 + 1e-12; c.radius > math.Pi/2 {
				c.radius = math.Pi
			}
		}
		out = append(out, c)
	}
	return out
}

// apart is a lower bound of the distance of two runs.
func (c *chunk) apart(d *chunk) s1.Angle {
	return c.center.Distance(d.center) - c.radius - d.radius - 1e-14
}

// parseGeometry reads a Point, LineString, Polygon or MultiPolygon; reason says why it is none.
func parseGeometry(v value.Value) (g *geometry, reason string) {
	if v.Kind() != value.Object {
		return nil, "The value is not a GeoJSON object."
	}
	kind, coords := v.Get("type"), v.Get("coordinates")
	if kind.Kind() != value.String || coords.Kind() != value.Array {
		return nil, "A GeoJSON object needs a 'type' string and a 'coordinates' array."
	}
	g = &geometry{}
	switch kind.Str() {
	case "Point":
		var ll s2.LatLng
		if ll, reason = position(coords); reason == "" {
			p := s2.PointFromLatLng(ll)
			g.edges = append(g.edges, s2.Edge{V0: p, V1: p})
		}
	case "LineString":
		reason = g.lineString(coords)
	case "Polygon":
		reason = g.polygon(coords)
	case "MultiPolygon":
		if coords.Len() == 0 {
			return nil, "A MultiPolygon must have at least one polygon."
		}
		for it := coords.Iter(); it.Next() && reason == ""; {
			if reason = g.polygon(it.Value()); len(g.edges) > maxPositions {
				reason = tooLarge
			}
		}
	default:
		return nil, "The type must be Point, LineString, Polygon or MultiPolygon."
	}
	if reason == "" && len(g.edges) > maxPositions {
		reason = tooLarge
	}
	if reason != "" {
		return nil, reason
	}
	g.parts = bound(g.edges)
	return g, ""
}

// position reads [longitude, latitude, ..]; what follows is not looked at.
func position(v value.Value) (s2.LatLng, string) {
	lng, lat := v.At(0), v.At(1)
	if v.Kind() != value.Array || !lng.IsNumber() || !lat.IsNumber() {
		return s2.LatLng{}, "A position must be an array of at least two numbers."
	}
	switch {
	case !(math.Abs(lat.Float()) <= 90):
		return s2.LatLng{}, "Latitude values must be between -90 and 90 degrees."
	case !(math.Abs(lng.Float()) <= 180):
		return s2.LatLng{}, "Longitude values must be between -180 and 180 degrees."
	}
	return s2.LatLngFromDegrees(lat.Float(), lng.Float()), ""
}

func positions(v value.Value) (out []s2.LatLng, reason string) {
	if v.Kind() != value.Array {
		return nil, "A line or ring must be an array of positions."
	}
	for it := v.Iter(); it.Next(); {
		ll, reason := position(it.Value())
		if reason != "" {
			return nil, reason
		}
		if out = append(out, ll); len(out) > maxPositions+1 {
			return nil, tooLarge
		}
	}
	return out, ""
}

func (g *geometry) lineString(v value.Value) string {
	lls, reason := positions(v)
	if reason != "" {
		return reason
	}
	if len(lls) < 2 {
		return "A LineString must have at least two positions."
	}
	g.lines = true
	return g.chain(lls)
}

// chain adds the edges between neighbouring positions.
func (g *geometry) chain(lls []s2.LatLng) string {
	prev := s2.PointFromLatLng(lls[0])
	for _, ll := range lls[1:] {
		p := s2.PointFromLatLng(ll)
		if prev.Distance(p) > math.Pi-1e-9 {
			return "Neighbouring positions must not be antipodal."
		}
		g.edges = append(g.edges, s2.Edge{V0: prev, V1: p})
		prev = p
	}
	return ""
}

func (g *geometry) polygon(v value.Value) string {
	if v.Kind() != value.Array || v.Len() == 0 {
		return "A Polygon must have at least one ring."
	}
	var p polygon
	for it := v.Iter(); it.Next(); {
		lls, reason := positions(it.Value())
		if reason != "" {
			return reason
		}
		if len(lls) < 4 {
			return "A ring must have at least four positions."
		}
		if s2.PointFromLatLng(lls[0]) != s2.PointFromLatLng(lls[len(lls)-1]) {
			return "A ring must end where it begins."
		}
		from := len(g.edges)
		if reason := g.chain(lls); reason != "" {
			return reason
		}
		ring := g.edges[from:]
		if crosses(ring) {
			return "A ring must not cross itself."
		}
		pts := make([]s2.Point, 0, len(ring))
		for _, e := range ring {
			if e.V0 == e.V1 {
				return "A ring must not have the same position twice in a row."
			}
			pts = append(pts, e.V0)
		}
		loop := s2.LoopFromPoints(pts)
		if p.outer == nil {
			p.outer = loop
		} else {
			loop.Normalize()
			p.holes = append(p.holes, loop)
		}
		p.rings = append(p.rings, lls[:len(lls)-1])
	}
	g.polys = append(g.polys, p)
	return ""
}

// crosses reports whether two edges of a ring that are not neighbours meet.
func crosses(ring []s2.Edge) bool {
	runs := bound(ring)
	for i := range runs {
		for j := i; j < len(runs); j++ {
			if runs[i].apart(&runs[j]) > 0 {
				continue
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
func (g *geometry) holds(p s2.Point) bool {
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

// nearest returns the places of a and b that are nearest to each other, and their distance: 0 when one holds a part of the other.
func nearest(a, b *geometry) (p, q s2.Point, d s1.Angle) {
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

// touches reports whether a further part of b lies inside a.
func (g *geometry) touches(b *geometry) bool {
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
func (g *geometry) at(p s2.Point) bool { return g.holds(p) || g.onEdge(p) }

func (g *geometry) onEdge(p s2.Point) bool {
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

// within reports whether all of a lies in b, its boundary included.
func within(a, b *geometry) bool {
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
	for _, e := range b.edges { // what b leaves out begins at its rings
		if a.holds(e.V0) && !a.onEdge(e.V0) {
			return false
		}
	}
	return true
}
