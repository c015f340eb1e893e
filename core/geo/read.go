package geo

import (
	"github.com/orrerydb/orrery/core/value"
)

// maxPositions limits the positions of a geometry, so that a comparison of two geometries takes seconds at most.
const maxPositions = 8192

const tooLarge = "A geometry must have at most 8192 positions."

const tooDear = "The geometry is too complex."

// Work limits the cost of reading and covering geometries. Its unit is a comparison of two lines, about 0.1
// microseconds.
type Work struct{ Left int }

// pos is a position as written: longitude and latitude, or x and y.
type pos struct{ x, y float64 }

// shape is a GeoJSON geometry as written, before the coordinates are interpreted.
type shape struct {
	point, line bool
	chains      [][]pos // a point as one position, a line, or the rings of all polygons
	ends        []int   // the chains of polygon i end at ends[i]
}

// read reads a Point, LineString, Polygon or MultiPolygon. check returns what is wrong with a position, "" if nothing.
// For other values, reason says why they aren't a geometry.
func read(v value.Value, check func(pos) string) (s *shape, reason string) {
	if v.Kind() != value.Object {
		return nil, "The value is not a GeoJSON object."
	}
	kind, coords := v.Get("type"), v.Get("coordinates")
	if kind.Kind() != value.String || coords.Kind() != value.Array {
		return nil, "A GeoJSON object needs a 'type' string and a 'coordinates' array."
	}
	r := reader{check: check}
	switch string(kind.Bytes()) {
	case "Point":
		r.s.point = true
		var p pos
		if p, reason = r.position(coords); reason == "" {
			r.s.chains = [][]pos{{p}}
		}
	case "LineString":
		r.s.line = true
		reason = r.chain(coords, 2, "A LineString must have at least two positions.")
	case "Polygon":
		reason = r.polygon(coords)
	case "MultiPolygon":
		if coords.Len() == 0 {
			return nil, "A MultiPolygon must have at least one polygon."
		}
		for it := coords.Iter(); it.Next() && reason == ""; {
			reason = r.polygon(it.Value())
		}
	default:
		return nil, "The type must be Point, LineString, Polygon or MultiPolygon."
	}
	if reason != "" {
		return nil, reason
	}
	return &r.s, ""
}

// readPoint is a fast path for a valid Point. ok is false for all other values.
func readPoint(v value.Value) (p pos, ok bool) {
	if v.Kind() != value.Object {
		return p, false
	}
	kind, coords := v.Get("type"), v.Get("coordinates")
	if kind.Kind() != value.String || string(kind.Bytes()) != "Point" || coords.Kind() != value.Array {
		return p, false
	}
	it := coords.Iter()
	if !it.Next() || !it.Value().IsNumber() {
		return p, false
	}
	p.x = number(it.Value())
	if !it.Next() || !it.Value().IsNumber() {
		return p, false
	}
	p.y = number(it.Value())
	return p, true
}

// Resembles reports whether a value has the type of a geometry that Parse reads, valid or not.
func Resembles(v value.Value) bool {
	if v.Kind() != value.Object {
		return false
	}
	kind := v.Get("type")
	if kind.Kind() != value.String {
		return false
	}
	switch string(kind.Bytes()) {
	case "Point", "LineString", "Polygon", "MultiPolygon":
		return v.Get("coordinates").Kind() == value.Array
	}
	return false
}

type reader struct {
	s     shape
	check func(pos) string
	edges int
}

// position reads [x, y, ..]. Further numbers are ignored.
func (r *reader) position(v value.Value) (pos, string) {
	x, y := v.At(0), v.At(1)
	if v.Kind() != value.Array || !x.IsNumber() || !y.IsNumber() {
		return pos{}, "A position must be an array of at least two numbers."
	}
	p := pos{number(x), number(y)}
	return p, r.check(p)
}

func number(v value.Value) float64 {
	if v.Kind() == value.Decimal {
		return value.KeyOfNumber(v).Floor
	}
	return v.Float()
}

// chain reads a list of at least least positions. few is the fault of a shorter list.
func (r *reader) chain(v value.Value, least int, few string) string {
	if v.Kind() != value.Array {
		return "A line or ring must be an array of positions."
	}
	var out []pos
	for it := v.Iter(); it.Next(); {
		p, reason := r.position(it.Value())
		if reason != "" {
			return reason
		}
		if len(out) > 0 {
			if r.edges++; r.edges > maxPositions {
				return tooLarge
			}
		}
		out = append(out, p)
	}
	if len(out) < least {
		return few
	}
	r.s.chains = append(r.s.chains, out)
	return ""
}

func (r *reader) polygon(v value.Value) string {
	if v.Kind() != value.Array || v.Len() == 0 {
		return "A Polygon must have at least one ring."
	}
	for it := v.Iter(); it.Next(); {
		if reason := r.chain(it.Value(), 4, "A ring must have at least four positions."); reason != "" {
			return reason
		}
	}
	r.s.ends = append(r.s.ends, len(r.s.chains))
	return ""
}

// The faults of rings, on the sphere and in the plane.
const (
	ringOpen   = "A ring must end where it begins."
	ringCross  = "A ring must not cross itself."
	ringRepeat = "A ring must not have the same position twice in a row."
)
