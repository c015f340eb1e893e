package filter

import (
	"math"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// earthRadius is the radius in metres of the sphere on which MongoDB measures.
const earthRadius = 6378100

// Near is the condition $near or $nearSphere. A query with it gives documents by their distance.
//
// The unit of distances depends on the place: metres for GeoJSON, radians for a pair on the earth, and the unit of the
// coordinates for a pair in a plane.
type Near struct {
	Path   string
	Flat   bool // in a plane: it needs a 2d index
	Either bool // a 2d index serves it too
	at     *geo.Shape
	unit   float64 // of distances, for an angle of 1; not for a plane
	least  float64
	most   float64
}

// Distance returns the distance of a document, and the shape that is nearest. ok is false when it has no shape within
// the bounds.
func (n *Near) Distance(doc value.Value) (d float64, loc value.Value, ok bool) {
	d = math.Inf(1)
	visit(doc, splitPath(n.Path), true, func(v value.Value, _ int) bool {
		if v.Kind() != value.Object && v.Kind() != value.Array {
			return false
		}
		if s, _ := geo.ParseShape(v); s != nil {
			if x, here := n.distance(s); here && x < d && x >= n.least && x <= n.most {
				d, loc, ok = x, v, true
			}
		}
		return false
	})
	return d, loc, ok
}

func (n *Near) distance(s *geo.Shape) (float64, bool) {
	if !n.Flat {
		return s.Angle(n.at) * n.unit, s.Round()
	}
	x, y, ok := s.XY()
	a, b, _ := n.at.XY()
	return math.Hypot(x-a, y-b), ok
}

// within returns the region of the shapes within a distance.
func (n *Near) within(d float64) *geo.Region {
	if !n.Flat {
		return n.at.Regions(min(d/n.unit, math.Pi))[0]
	}
	x, y, _ := n.at.XY()
	return geo.NearPoint(x, y, d)
}

// Order returns the order of the distances for the core.
func (n *Near) Order() *plan.Near {
	o := &plan.Near{Path: access.NewPath(splitPath(n.Path)...), Within: n.within, First: 1e-3, Last: 1e9}
	if !n.Flat {
		o.First, o.Last = 1e-5*n.unit, math.Pi*n.unit
	}
	return o
}

// nearNode is the condition as a part of a filter.
type nearNode struct{ *Near }

func (n nearNode) match(_ *expr.Env, doc value.Value) (bool, error) {
	_, _, ok := n.Distance(doc)
	return ok, nil
}

func (n nearNode) pred() *access.Pred {
	return placePred(access.NewPath(splitPath(n.Path)...), []*geo.Region{n.within(n.most)})
}

// Near returns the $near or $nearSphere of the filter, nil if it has none.
func (f *Filter) Near() *Near { return f.near }

// near compiles $near, $nearSphere and $geoNear.
//
//go:noinline // each caller would get its own copy of the closure
func near(op string) operator {
	return func(c *compiler, path string, arg, all value.Value, _ int) (node, error) {
		n := &Near{Path: path, most: math.Inf(1)}
		geometry := arg.Get("$geometry")
		var err error
		if arg.Kind() == value.Object && geometry.IsDefined() {
			err = n.modern(arg, all)
		} else {
			err = n.legacy(op, arg, all)
		}
		if err != nil {
			return nil, err
		}
		if c.inside > 0 {
			return nil, merr.New(merr.BadValue, "geo $near must be top-level expr")
		}
		if c.near != nil {
			return nil, merr.New(merr.BadValue, "Too many geoNear expressions")
		}
		if c.opts.NoNear {
			return nil, merr.New(5626500, "$geoNear, $near, and $nearSphere are not allowed in this context, as "+
				"these operators require sorting geospatial data. If you do not need sort, consider using "+
				"$geoWithin instead.")
		}
		c.near = n
		return nearNode{n}, nil
	}
}

// distances reads $minDistance and $maxDistance. The codes are those of a value that isn't a number, and of a negative
// one.
func (n *Near) distances(name string, v value.Value, notNumber, negative int32) error {
	d := num.ToFloat(v)
	switch {
	case !v.IsNumber():
		return merr.New(notNumber, "%s must be a number", name)
	case !(d >= 0) || math.IsInf(d, 0) && notNumber == merr.BadValue:
		return merr.New(negative, "%s must be non-negative", name)
	case name == "$minDistance":
		n.least = d
	default:
		n.most = d
	}
	return nil
}

// modern reads {$geometry: point, $minDistance: 1, $maxDistance: 2}.
func (n *Near) modern(arg, all value.Value) error {
	if all.Len() > 1 {
		return badGeo("geo near accepts just one argument when querying for a GeoJSON point. Extra field found: %s",
			merr.Show(all))
	}
	for it := arg.Iter(); it.Next(); {
		switch name := string(it.Key()); name {
		case "$geometry":
			s, reason := geo.ParseShape(it.Value())
			if s == nil {
				return badGeo("invalid point in geo near query $geometry argument: %s  %s", merr.Show(it.Value()),
					reason)
			}
			if _, _, point := s.XY(); !point || !s.GeoJSON() {
				return badGeo("$near requires a point, given %s", merr.Show(it.Value()))
			}
			n.at, n.unit = s, earthRadius
		case "$minDistance", "$maxDistance":
			if err := n.distances(name, it.Value(), merr.BadValue, merr.BadValue); err != nil {
				return err
			}
		default:
			return badGeo("invalid argument in geo near query: %s", name)
		}
	}
	return nil
}

// legacy reads {$near: [x, y], $maxDistance: 1} and {$near: [x, y, 1]}.
func (n *Near) legacy(op string, arg, all value.Value) error {
	if arg.Kind() != value.Object && arg.Kind() != value.Array {
		return badGeo("geo near query argument is not an object")
	}
	s, reason := geo.ParseShape(arg)
	if s == nil {
		if arg.Kind() == value.Object {
			return badGeo("$geometry is required for geo near query")
		}
		return badGeo("%s", reason)
	}
	if _, _, point := s.XY(); !point {
		return badGeo("$near requires a point, given %s", merr.Show(arg))
	}
	n.at, n.unit, n.Flat = s, 1, op != "$nearSphere"
	if s.GeoJSON() {
		n.unit, n.Flat = earthRadius, false
	}
	if n.Either = !n.Flat && !s.GeoJSON(); n.Either && !s.Round() {
		return badGeo("Legacy point is out of bounds for spherical query")
	}
	if !s.GeoJSON() && arg.Len() > 2 {
		third := value.Undef()
		i := 0
		for it := arg.Iter(); it.Next(); i++ {
			if i == 2 {
				third = it.Value()
			}
		}
		if third.IsNumber() {
			if n.most = num.ToFloat(third); !(n.most >= 0) {
				return merr.New(18522, "max distance must be non-negative")
			}
		}
	}
	for it := all.Iter(); it.Next(); {
		var err error
		switch name := string(it.Key()); name {
		case op, "$uniqueDocs":
		case "$minDistance":
			err = n.distances(name, it.Value(), 16893, 16894)
		case "$maxDistance":
			err = n.distances(name, it.Value(), 16895, 16896)
		default:
			err = merr.New(34413, "invalid argument in geo near query: %s", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CompileNear compiles the query of $geoNear with the condition for the place at path: {op: place, $minDistance: ..}.
func CompileNear(q value.Value, path, op string, place, least, most value.Value, o Options) (*Filter, error) {
	all := []value.Value{place, least, most}
	names := []string{op, "$minDistance", "$maxDistance"}
	spec := wrapAll(names, all)
	o.NoNear = false
	if place.Kind() == value.Object && place.Get("type").Kind() == value.String {
		spec = wrapAll([]string{op}, []value.Value{wrapAll([]string{"$geometry", "$minDistance", "$maxDistance"}, all)})
	}
	if !q.IsDefined() {
		return Compile(wrapAll([]string{path}, []value.Value{spec}), o)
	}
	both := value.MakeArray([]value.Value{wrapAll([]string{path}, []value.Value{spec}), q})
	return Compile(wrapAll([]string{"$and"}, []value.Value{both}), o)
}

// wrapAll returns the object with those of the values that are defined.
func wrapAll(names []string, vs []value.Value) value.Value {
	at, b := bson.Begin(nil)
	for i, v := range vs {
		b = value.AppendElement(b, names[i], v)
	}
	return value.ObjectOf(bson.End(b, at))
}
