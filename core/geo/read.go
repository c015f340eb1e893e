package geo

import (
	"github.com/orrerydb/orrery/core/value"
)

// MaxPositions bounds a geometry, so that two that wind around each other are compared within seconds.
const MaxPositions = 8192

const tooLarge = "A geometry must have at most 8192 positions."

const tooDear = "The geometry is too complex."

// Work bounds what reading and covering geometries may cost: comparisons of two lines, about 0.1 microseconds each.
type Work struct{ Left int }

// pos is a position as it is written: longitude and latitude, or x and y.
type pos struct{ x, y float64 }

// shape is a GeoJSON geometry as it is written, before anybody has said what its numbers mean.
type shape struct {
	point, line bool
	chains      [][]pos // a point of one position, a line, or the rings of all polygons
	ends        []int   // polygon i has the chains up to ends[i]
}

// read reads a Point, LineString, Polygon or MultiPolygon; check says what is wrong with a position. reason says why it
// is none.
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

// readPoint reads a Point without more ado; ok is false for everything else, also for what is wrong with one.
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

// Resembles reports whether a value says that it is one of the geometries that Parse reads, valid or not.
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

// position reads [x, y, ..]; what follows is not looked at.
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

// chain reads positions of which there must be at least least.
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
			if r.edges++; r.edges > MaxPositions {
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

// What is wrong with rings, on the sphere and in the plane.
const (
	ringOpen   = "A ring must end where it begins."
	ringCross  = "A ring must not cross itself."
	ringRepeat = "A ring must not have the same position twice in a row."
)
