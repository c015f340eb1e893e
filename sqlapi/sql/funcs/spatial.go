package funcs

import (
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/value"
)

// Spatial functions work on GeoJSON. They compute on the WGS 84 ellipsoid, in metres. In containers whose geospatial
// configuration is Geometry they compute on a plane, in units of the coordinates. A value that is no valid geometry is
// treated as undefined.
func init() {
	earth, plane := spatial(geo.Parse), spatial(geo.ParseFlat)
	for i, f := range earth {
		f.Planar = plane[i]
		plane[i].parseTypes()
	}
	register(earth...)
}

// measured is the interface of a geometry that the functions need.
type measured[G any] interface {
	comparable
	Distance(G) float64
	Within(G) bool
	Intersects(G) bool
	Area() float64
}

// spatial returns the functions for one kind of geometry.
func spatial[G measured[G]](parse func(value.Value) (G, string)) []*Func {
	var none G
	pair := func(name string, fn func(a, b G) value.Value) *Func {
		return &Func{Name: name, Types: "oo", Eval: func(_ *Context, a []value.Value) value.Value {
			x, _ := parse(a[0])
			if x == none {
				return value.Value{}
			}
			if y, _ := parse(a[1]); y != none {
				return fn(x, y)
			}
			return value.Value{}
		}, Prepare: func(consts []value.Value, isConst []bool) func(*Context, []value.Value) value.Value {
			return preparePair(parse, consts, isConst, fn)
		}}
	}
	return []*Func{
		pair("ST_DISTANCE", func(a, b G) value.Value {
			d := a.Distance(b)
			if d == 0 {
				return value.IntOf(0)
			}
			return Num(d)
		}),
		pair("ST_WITHIN", func(a, b G) value.Value { return boolean(a.Within(b)) }),
		pair("ST_INTERSECTS", func(a, b G) value.Value { return boolean(a.Intersects(b)) }),
		{Name: "ST_ISVALID", Types: "d", Eval: func(_ *Context, a []value.Value) value.Value {
			g, _ := parse(a[0])
			return boolean(g != none)
		}},
		{Name: "ST_ISVALIDDETAILED", Types: "d", Eval: func(_ *Context, a []value.Value) value.Value {
			g, reason := parse(a[0])
			var b Builder
			b.Field("valid", boolean(g != none))
			if g == none {
				b.Field("reason", value.StringOf(reason))
			}
			return b.Object()
		}},
		{Name: "ST_AREA", Types: "o", Eval: func(_ *Context, a []value.Value) value.Value {
			if g, _ := parse(a[0]); g != none {
				return Num(g.Area())
			}
			return value.Value{}
		}},
	}
}

// preparePair returns an evaluation of fn that parses each geometry as rarely as possible. A constant is parsed once,
// at compile time. A parameter is parsed once per execution, because it is kept as a memo (memo.go).
func preparePair[G measured[G]](parse func(value.Value) (G, string), consts []value.Value, isConst []bool,
	fn func(a, b G) value.Value) func(*Context, []value.Value) value.Value {
	var none G
	var fixed [2]G
	for i := range consts {
		if isConst[i] {
			fixed[i], _ = parse(consts[i])
		}
	}
	known := [2]bool(isConst)
	site := new([2]byte)
	arg := func(c *Context, a []value.Value, i int) G {
		if known[i] {
			return fixed[i]
		}
		if g, ok := recall[G](c, &site[i], a[i]); ok {
			return g
		}
		g, _ := parse(a[i])
		return keep(c, &site[i], a[i], g)
	}
	return func(c *Context, a []value.Value) value.Value {
		x := arg(c, a, 0)
		if x == none {
			return value.Value{}
		}
		if y := arg(c, a, 1); y != none {
			return fn(x, y)
		}
		return value.Value{}
	}
}
