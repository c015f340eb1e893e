package sarg

import (
	"math"

	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// distance translates `ST_DISTANCE(path, constant) < constant`. The arguments and the sides may be swapped. It returns
// nil for other comparisons.
func (s Compiler[F]) distance(op string, l, r syntax.Expr) Pred[F] {
	call, ok := l.(*syntax.Call)
	limit := r
	if !ok || !shape.IsDistance(call) {
		if call, ok = r.(*syntax.Call); !ok || !shape.IsDistance(call) {
			return nil
		}
		limit = l
		op = map[string]string{">": "<", ">=": "<=", "=": "="}[op]
	}
	if op != "<" && op != "<=" && op != "=" {
		return nil
	}
	val := s.constant(limit)
	if val == nil {
		return nil
	}
	return s.near(call, func(f F) (float64, bool) {
		v := val(f)
		if v.Kind() == value.Decimal {
			return math.Nextafter(value.KeyOfNumber(v).Floor, math.Inf(1)), true
		}
		return v.Float(), v.IsNumber()
	})
}

// Near returns the path and the place of an ORDER BY ST_DISTANCE(path, constant) in one execution. It returns nil when
// the constant is no geometry.
type Near[F any] func(f F) *exec.Near

// Nearest compiles an ORDER BY of ST_DISTANCE. It returns nil when the arguments aren't a path and a constant.
func (s Compiler[F]) Nearest(call *syntax.Call) Near[F] {
	path, val := s.pathAndPlace(call)
	if val == nil {
		return nil
	}
	planar := s.Planar
	return func(f F) *exec.Near {
		if v := val(f); planar {
			if g, _ := geo.ParseFlat(v); g != nil {
				return &exec.Near{Path: path, First: 1e-3, Last: 1e9, Within: func(d float64) *geo.Region {
					return geo.NearFlat(g, d)
				}}
			}
		} else if g, _ := geo.Parse(v); g != nil {
			return &exec.Near{Path: path, First: 100, Last: 2.1e7, Within: func(d float64) *geo.Region {
				return geo.Near(g, d)
			}}
		}
		return nil
	}
}

// pathAndPlace returns the path and the constant among the arguments of a call, in either order. val is nil for other
// arguments.
func (s Compiler[F]) pathAndPlace(e *syntax.Call) (path access.Path, val Const[F]) {
	if len(e.Args) != 2 {
		return path, nil
	}
	at, fixed := e.Args[0], e.Args[1]
	path, _, ok := s.path(at)
	if !ok {
		if path, _, ok = s.path(fixed); !ok {
			return path, nil
		}
		fixed = at
	}
	if IsAlways(path) {
		return path, nil
	}
	return path, s.constant(fixed)
}

// near returns the predicate that the geometry at a path is at most dist away from a constant geometry. The call has
// the path and the constant in either order; near returns nil for other arguments. If dist reports no distance or the
// constant is no geometry, the call or its comparison is undefined, so no item can pass.
func (s Compiler[F]) near(e *syntax.Call, dist func(F) (float64, bool)) Pred[F] {
	path, val := s.pathAndPlace(e)
	if val == nil {
		return nil
	}
	planar := s.Planar
	return func(f F) *access.Pred {
		d, ok := dist(f)
		if !ok || d < 0 || math.IsNaN(d) {
			return access.None()
		}
		var r *geo.Region
		if v := val(f); planar {
			if g, _ := geo.ParseFlat(v); g != nil {
				r = geo.NearFlat(g, d)
			}
		} else if g, _ := geo.Parse(v); g != nil {
			r = geo.Near(g, d)
		}
		if r == nil {
			return access.None()
		}
		return access.Spatial(path, r)
	}
}
