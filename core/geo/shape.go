package geo

import (
	"math"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"github.com/orrerydb/orrery/core/value"
)

// Shape is a place in one of the forms that MongoDB has: GeoJSON of every type, or a legacy pair, which is an array or
// an object of two numbers. Its parts lie on the earth. A single point lies in a plane too. Unlike in a Geometry, the
// direction of a ring has no meaning: its inside is the smaller side. Distances are angles on a sphere. A Shape is
// immutable.
//
// Example: [10, 20], {lng: 10, lat: 20} and {type: "Point", coordinates: [10, 20]} are the same point of the earth.
// [500, 20] is a point of a plane only.
type Shape struct {
	parts []*Geometry
	at    pos
	point bool
	json  bool
}

// strictWinding is the name of the coordinate reference system of a polygon whose inside is to the left of its ring,
// even if that is the larger side.
const strictWinding = "urn:x-mongodb:crs:strictwinding:EPSG:4326"

// maxNested limits the nesting of geometry collections, and maxParts the geometries of one value.
const (
	maxNested = 20
	maxParts  = maxPositions
)

// ParseShape reads a shape. It copies the data that it keeps. For other values it returns nil and the reason.
func ParseShape(v value.Value) (s *Shape, reason string) { return parseShape(v, &Work{math.MaxInt}) }

func parseShape(v value.Value, w *Work) (*Shape, string) {
	switch {
	case v.Kind() == value.Array, v.Kind() == value.Object && v.Get("type").Kind() != value.String:
		return parsePair(v)
	case v.Kind() != value.Object:
		return nil, "Point must be an array or object"
	}
	strict, reason := crs(v.Get("crs"))
	if reason != "" {
		return nil, reason
	}
	s := &Shape{json: true}
	if reason = s.json1(v, w, strict, 0); reason != "" {
		return nil, reason
	}
	if s.point = len(s.parts) == 1 && s.parts[0].point; s.point {
		p, _ := readPoint(v)
		s.at = p
	}
	return s, ""
}

// parsePair reads a legacy pair.
func parsePair(v value.Value) (*Shape, string) {
	var xy [2]float64
	n := 0
	for it := v.Iter(); it.Next() && n < 2; n++ {
		if !it.Value().IsNumber() {
			return nil, "Point must only contain numeric elements"
		}
		if xy[n] = number(it.Value()); math.IsNaN(xy[n]) || math.IsInf(xy[n], 0) {
			return nil, "Point coordinates must be finite numbers"
		}
	}
	if n < 2 {
		return nil, "Point must contain at least two numbers"
	}
	s := &Shape{at: pos{xy[0], xy[1]}, point: true}
	if checkLatLng(s.at) == "" {
		s.parts = []*Geometry{pointAt(s.at)}
	}
	return s, ""
}

// crs checks a coordinate reference system. strict means that the direction of rings matters.
func crs(v value.Value) (strict bool, reason string) {
	if !v.IsDefined() {
		return false, ""
	}
	if v.Kind() != value.Object || v.Get("type").Str() != "name" {
		return false, "GeoJSON CRS must have field \"type\": \"name\""
	}
	name := v.Get("properties").Get("name")
	switch name.Str() {
	case "urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326":
		return false, ""
	case strictWinding:
		return true, ""
	}
	return false, "Unknown CRS name: " + name.Str()
}

// json1 adds a GeoJSON value.
func (s *Shape) json1(v value.Value, w *Work, strict bool, depth int) string {
	if depth > maxNested {
		return "The geometry collection is nested too deeply"
	}
	kind, coords := v.Get("type"), v.Get("coordinates")
	if strict && kind.Str() != "Polygon" {
		return "Strict winding order is only supported by polygon"
	}
	if kind.Str() == "GeometryCollection" {
		list := v.Get("geometries")
		if list.Kind() != value.Array || list.Len() == 0 {
			return "GeometryCollection geometries must be an array with at least 1 element"
		}
		for it := list.Iter(); it.Next(); {
			if it.Value().Kind() != value.Object {
				return "Element of \"geometries\" must be an object"
			}
			if reason := s.json1(it.Value(), w, false, depth+1); reason != "" {
				return reason
			}
		}
		return ""
	}
	if coords.Kind() != value.Array {
		return "GeoJSON coordinates must be an array"
	}
	switch kind.Str() {
	case "MultiPoint", "MultiLineString":
		if coords.Len() == 0 {
			return kind.Str() + " coordinates must have at least 1 element"
		}
		for it := coords.Iter(); it.Next(); {
			r := reader{check: checkLatLng}
			var reason string
			if kind.Str() == "MultiPoint" {
				r.s.point = true
				var p pos
				if p, reason = r.position(it.Value()); reason == "" {
					r.s.chains = [][]pos{{p}}
				}
			} else {
				r.s.line = true
				reason = r.chain(it.Value(), 2, "A LineString must have at least two positions.")
			}
			if reason == "" {
				reason = s.add(&r.s, w, false)
			}
			if reason != "" {
				return reason
			}
		}
		return ""
	case "Point", "LineString", "Polygon", "MultiPolygon":
		read, reason := read(v, checkLatLng)
		if reason != "" {
			return reason
		}
		return s.add(read, w, strict)
	}
	return "unknown GeoJSON type: " + kind.Str()
}

// add adds a geometry as a part.
func (s *Shape) add(r *shape, w *Work, strict bool) string {
	g, reason := r.geometry(w, !strict)
	if reason != "" {
		return reason
	}
	if s.parts = append(s.parts, g); len(s.parts) > maxParts {
		return tooLarge
	}
	return ""
}

// GeoJSON reports whether the shape isn't a legacy pair.
func (s *Shape) GeoJSON() bool { return s.json }

// Round reports whether the shape lies on the earth.
func (s *Shape) Round() bool { return len(s.parts) > 0 }

// XY returns the coordinates of a single point. ok is false for other shapes.
func (s *Shape) XY() (x, y float64, ok bool) { return s.at.x, s.at.y, s.point }

// Polygons reports whether all parts are polygons.
func (s *Shape) Polygons() bool {
	for _, g := range s.parts {
		if len(g.polys) == 0 {
			return false
		}
	}
	return len(s.parts) > 0
}

// Intersects reports whether a and b have a place of the earth in common.
func (a *Shape) Intersects(b *Shape) bool {
	for _, x := range a.parts {
		for _, y := range b.parts {
			if x.Intersects(y) {
				return true
			}
		}
	}
	return false
}

// Within reports whether all of a lies in one part of b.
func (a *Shape) Within(b *Shape) bool {
next:
	for _, x := range a.parts {
		for _, y := range b.parts {
			if x.Within(y) {
				continue next
			}
		}
		return false
	}
	return len(a.parts) > 0
}

// Angle returns the distance of a and b on the sphere in radians: that of their nearest places.
func (a *Shape) Angle(b *Shape) float64 {
	least := math.Inf(1)
	for _, x := range a.parts {
		for _, y := range b.parts {
			_, _, d := nearest(x, y)
			least = min(least, d.Radians())
		}
	}
	return least
}

// InCap reports whether all of a lies within an angle in radians of the point b.
func (a *Shape) InCap(b *Shape, angle float64) bool {
	if angle >= math.Pi {
		return len(a.parts) > 0
	}
	center, most := b.parts[0].edges[0].V0, s1.Angle(angle)+touching
	for _, g := range a.parts {
		for _, e := range g.edges {
			if center.Distance(e.V0) > most || center.Distance(e.V1) > most {
				return false
			}
		}
		if g.holds(s2.Point{Vector: center.Mul(-1)}) {
			return false
		}
	}
	return len(a.parts) > 0
}

// Regions returns the regions of the places within an angle in radians of the parts. A shape meets that of s if and
// only if it meets one of them.
func (s *Shape) Regions(angle float64) []*Region {
	var out []*Region
	for _, g := range s.parts {
		out = append(out, &Region{round: g, dist: angle * leastRadius, pairs: true})
	}
	return out
}

// IsShape reports whether a value has the form of a shape, valid or not. A list of pairs or of objects hasn't.
func IsShape(v value.Value) bool {
	switch v.Kind() {
	case value.Object:
		it := v.Iter()
		return v.Get("type").Kind() == value.String && (v.Get("coordinates").IsDefined() ||
			v.Get("geometries").IsDefined()) || it.Next() && it.Value().IsNumber()
	case value.Array:
		it := v.Iter()
		return it.Next() && it.Value().IsNumber()
	}
	return false
}

// ShapeCellsOf is CellsOf for a shape. With a box it is for the plane of that box, in which only points are.
func ShapeCellsOf(v value.Value, b *Box, w *Work) []Cell {
	s, _ := parseShape(v, w)
	switch {
	case s == nil:
		return nil
	case b != nil && s.point:
		return []Cell{b.leaf(s.at.x, s.at.y)}
	case b != nil:
		return nil
	}
	var out []Cell
	for _, g := range s.parts {
		out = append(out, g.shapeCells(w)...)
	}
	return out
}
