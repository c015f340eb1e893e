package engine

import (
	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/geo"
)

// spatialFunctions are the members of __.spatial on two geometries on the earth.
var spatialFunctions = map[string]func(a, b *geo.Geometry) any{
	"distance":   func(a, b *geo.Geometry) any { return a.Distance(b) },
	"intersects": func(a, b *geo.Geometry) any { return a.Intersects(b) },
	"within":     func(a, b *geo.Geometry) any { return a.Within(b) },
}

// spatial calls a member of __.spatial: its name, and two geometries as JSON. It is undefined if one of them is
// invalid.
func (m *machine) spatial(c goja.FunctionCall) goja.Value {
	f := spatialFunctions[c.Argument(0).String()]
	a, _ := geometry(c.Argument(1))
	b, _ := geometry(c.Argument(2))
	if f == nil || a == nil || b == nil {
		return goja.Undefined()
	}
	return m.rt.ToValue(f(a, b))
}

// invalid returns why a geometry is invalid, undefined if it is valid.
func (m *machine) invalid(c goja.FunctionCall) goja.Value {
	g, reason := geometry(c.Argument(0))
	if g != nil {
		return goja.Undefined()
	}
	return m.rt.ToValue(reason)
}

// geometry reads a geometry from JSON. It returns nil and the reason when it is invalid.
func geometry(v goja.Value) (*geo.Geometry, string) {
	parsed, err := doc.ValueFromJSON([]byte(v.String()))
	if err != nil {
		return nil, "The value is not a GeoJSON object."
	}
	return geo.Parse(parsed)
}
