package filter

import (
	"math"

	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// The conditions on places: $geoWithin and $geoIntersects. $near and $nearSphere are in near.go.
//
// $box, $polygon and $center are areas of a plane, in which only points lie. $centerSphere and $geometry are on the
// earth. A stored value is a shape (geo.Shape); an array of shapes satisfies the condition if one of them does.

func badGeo(format string, args ...any) error { return merr.New(merr.BadValue, format, args...) }

// placeNode makes the condition on a path. test gets shapes, regions are those that one of the matching shapes meets.
func placeNode(path string, test func(*geo.Shape) bool, regions []*geo.Region) *pathNode {
	n := newLeaf(path, true, func(v value.Value) bool {
		if v.Kind() != value.Object && v.Kind() != value.Array {
			return false
		}
		s, _ := geo.ParseShape(v)
		return s != nil && test(s)
	})
	n.sarg = sarg{kind: sargPlace, regions: regions}
	return n
}

func (c *compiler) geoWithin(path string, arg, _ value.Value, _ int) (node, error) {
	if arg.Kind() != value.Object {
		return nil, badGeo("geometry must be an object")
	}
	var n node
	for it := arg.Iter(); it.Next(); {
		if string(it.Key()) == "$uniqueDocs" {
			continue
		}
		if n != nil {
			return nil, badGeo("$geoWithin doesn't accept multiple shapes %s", merr.Show(arg))
		}
		var err error
		if n, err = within(path, string(it.Key()), it.Value(), arg); err != nil {
			return nil, err
		}
	}
	if n == nil {
		return nil, badGeo("geo query doesn't have any geometry")
	}
	return n, nil
}

// within compiles one form of $geoWithin.
func within(path, form string, v, all value.Value) (node, error) {
	switch form {
	case "$geometry":
		q, err := queryShape(v)
		if err != nil {
			return nil, err
		}
		if !q.Polygons() {
			return nil, badGeo("$within not supported with provided geometry: %s", merr.Show(all))
		}
		return placeNode(path, func(s *geo.Shape) bool { return s.Within(q) }, q.Regions(0)), nil
	case "$box", "$polygon", "$center":
		a, err := area(form, v)
		if err != nil {
			return nil, err
		}
		return placeNode(path, func(s *geo.Shape) bool {
			x, y, ok := s.XY()
			return ok && a.Holds(x, y)
		}, []*geo.Region{a.Region()}), nil
	case "$centerSphere":
		at, radius, err := circle(form, v)
		if err != nil {
			return nil, err
		}
		if !at.Round() {
			return nil, badGeo("Spherical distance would require (unimplemented) wrapping, or the center is out of "+
				"bounds: %s", merr.Show(v))
		}
		return placeNode(path, func(s *geo.Shape) bool { return s.InCap(at, radius) }, at.Regions(radius)), nil
	}
	return nil, badGeo("unknown geo specifier: %s: %s", form, merr.Show(v))
}

// queryShape reads the argument $geometry.
func queryShape(v value.Value) (*geo.Shape, error) {
	if v.Kind() != value.Object {
		return nil, badGeo("$geometry must be an object, but found %s", expr.TypeName(v))
	}
	s, reason := geo.ParseShape(v)
	if reason != "" {
		return nil, badGeo("%s: %s", reason, merr.Show(v))
	}
	if !s.GeoJSON() || !s.Round() {
		return nil, badGeo("unknown GeoJSON type: %s", merr.Show(v))
	}
	return s, nil
}

// points reads an array, or an object, of pairs.
func points(v value.Value) (x, y []float64, err error) {
	if v.Kind() != value.Array && v.Kind() != value.Object {
		return nil, nil, badGeo("unknown geo specifier: %s", merr.Show(v))
	}
	for it := v.Iter(); it.Next(); {
		s, reason := geo.ParseShape(it.Value())
		if s == nil {
			return nil, nil, badGeo("%s", reason)
		}
		a, b, ok := s.XY()
		if !ok || s.GeoJSON() {
			return nil, nil, badGeo("Point must only contain numeric elements")
		}
		x, y = append(x, a), append(y, b)
	}
	return x, y, nil
}

// area reads a shape of the plane.
func area(form string, v value.Value) (*geo.Area, error) {
	if form == "$center" {
		at, radius, err := circle(form, v)
		if err != nil {
			return nil, err
		}
		x, y, _ := at.XY()
		return geo.CircleArea(x, y, radius), nil
	}
	x, y, err := points(v)
	switch {
	case err != nil:
		return nil, err
	case form == "$box" && len(x) != 2:
		return nil, badGeo("Box must have exactly two corners: %s", merr.Show(v))
	case form == "$box":
		return geo.RectangleArea(x[0], y[0], x[1], y[1]), nil
	case len(x) < 3:
		return nil, badGeo("Polygon must have at least 3 points")
	}
	return geo.PolygonArea(x, y), nil
}

// circle reads a centre and a radius.
func circle(form string, v value.Value) (*geo.Shape, float64, error) {
	if v.Kind() != value.Array && v.Kind() != value.Object {
		return nil, 0, badGeo("unknown geo specifier: %s: %s", form, merr.Show(v))
	}
	list := value.Elements(v)
	if v.Kind() == value.Object {
		list = nil
		for it := v.Iter(); it.Next(); {
			list = append(list, it.Value())
		}
	}
	if len(list) == 0 {
		return nil, 0, badGeo("Point must be an array or object")
	}
	s, reason := geo.ParseShape(list[0])
	if s == nil {
		return nil, 0, badGeo("%s", reason)
	}
	if _, _, ok := s.XY(); !ok {
		return nil, 0, badGeo("Point must only contain numeric elements")
	}
	if len(list) < 2 || !list[1].IsNumber() {
		return nil, 0, badGeo("radius must be a non-negative number")
	}
	radius := num.ToFloat(list[1])
	if !(radius >= 0) || math.IsInf(radius, 0) && form == "$center" {
		return nil, 0, badGeo("radius must be a non-negative number")
	}
	if len(list) > 2 {
		return nil, 0, badGeo("Only 2 fields allowed for circular region, but more were provided")
	}
	return s, radius, nil
}

func (c *compiler) geoIntersects(path string, arg, _ value.Value, _ int) (node, error) {
	if arg.Kind() != value.Object {
		return nil, badGeo("geometry must be an object")
	}
	var q *geo.Shape
	for it := arg.Iter(); it.Next(); {
		var err error
		switch string(it.Key()) {
		case "$uniqueDocs":
			continue
		case "$geometry":
			q, err = queryShape(it.Value())
		case "$box", "$polygon", "$center", "$centerSphere":
			err = badGeo("$geoIntersect not supported with provided geometry: %s", merr.Show(arg))
		default:
			err = badGeo("unknown geo specifier: %s: %s", it.Key(), merr.Show(it.Value()))
		}
		if err != nil {
			return nil, err
		}
	}
	if q == nil {
		return nil, badGeo("geo query doesn't have any geometry")
	}
	return placeNode(path, func(s *geo.Shape) bool { return s.Intersects(q) }, q.Regions(0)), nil
}

// placePred returns the part of a condition on places that a spatial index can answer.
func placePred(path access.Path, regions []*geo.Region) *access.Pred {
	if len(regions) == 0 || len(regions) > maxRegions {
		return access.All()
	}
	var any []*access.Pred
	for _, r := range regions {
		any = append(any, access.Spatial(path, r))
	}
	if len(any) == 1 {
		return any[0]
	}
	return access.Or(any...)
}

// maxRegions is the largest number of parts of a geometry that an index is asked for.
const maxRegions = 16
