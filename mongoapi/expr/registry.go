package expr

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// operator is one entry of the registry. It has either fn, which is called with min..max evaluated arguments (max -1:
// any number), or special, which compiles the argument itself.
type operator struct {
	min, max int
	fn       func(e *Env, a []value.Value) (value.Value, error)
	special  func(name string, arg value.Value, s *Scope, depth int) (Expr, error)
}

var operators map[string]operator

// Unsupported lists operators of MongoDB that this server doesn't support.
var Unsupported = map[string]bool{}

func init() {
	operators = map[string]operator{}
	for _, group := range []map[string]operator{arithmeticOps, logicOps, stringOps, arrayOps, objectOps, setOps,
		dateOps, convertOps, accumulatorOps()} {
		for name, op := range group {
			if _, twice := operators[name]; twice || Unsupported[name] {
				panic("expr: " + name + " is registered twice")
			}
			operators[name] = op
		}
	}
}

func fixed(n int, fn func(e *Env, a []value.Value) (value.Value, error)) operator {
	return operator{min: n, max: n, fn: fn}
}

//go:noinline // see named
func unary(fn func(v value.Value) (value.Value, error)) operator {
	return fixed(1, func(_ *Env, a []value.Value) (value.Value, error) { return fn(a[0]) })
}

// nullUnary is unary with the result null for null and missing arguments.
//
//go:noinline // see named
func nullUnary(fn func(v value.Value) (value.Value, error)) operator {
	return unary(func(v value.Value) (value.Value, error) {
		if nullish(v) {
			return value.NullValue(), nil
		}
		return fn(v)
	})
}

func variadic(fn func(e *Env, a []value.Value) (value.Value, error)) operator {
	return operator{max: -1, fn: fn}
}

func ranged(lo, hi int, fn func(e *Env, a []value.Value) (value.Value, error)) operator {
	return operator{min: lo, max: hi, fn: fn}
}

// unstable are the operators of MongoDB 7.0 that came into the Stable API only later. The accumulators of these names
// are in it.
var unstable = map[string]bool{"$bitAnd": true, "$bitNot": true, "$bitOr": true, "$bitXor": true, "$median": true,
	"$percentile": true}

func compileOperator(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	op, ok := operators[name]
	if !ok {
		if Unsupported[name] {
			return nil, merr.NotSupported(name)
		}
		return nil, merr.New(merr.InvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	if s != nil && s.stable && unstable[name] {
		return nil, merr.New(merr.APIStrictError, "%s is not allowed with 'apiStrict: true' in API Version 1", name)
	}
	if op.special != nil {
		return op.special(name, arg, s, depth+1)
	}
	xs, err := arguments(arg, s, depth+1)
	if err != nil {
		return nil, err
	}
	if err := checkCount(name, op, len(xs)); err != nil {
		return nil, err
	}
	fn := op.fn
	if len(xs) == 1 {
		x := xs[0]
		return func(e *Env) (value.Value, error) {
			if err := e.Run.Step(); err != nil {
				return value.Undef(), err
			}
			v, err := x(e)
			if err != nil {
				return v, err
			}
			return fn(e, []value.Value{v})
		}, nil
	}
	return func(e *Env) (value.Value, error) {
		if err := e.Run.Step(); err != nil {
			return value.Undef(), err
		}
		a := make([]value.Value, len(xs))
		for i, x := range xs {
			v, err := x(e)
			if err != nil {
				return v, err
			}
			a[i] = v
		}
		return fn(e, a)
	}, nil
}

// arguments compiles the arguments `[a, b]`. A single argument needs no array.
func arguments(arg value.Value, s *Scope, depth int) ([]Expr, error) {
	if arg.Kind() != value.Array {
		x, err := compile(arg, s, depth)
		if err != nil {
			return nil, err
		}
		return []Expr{x}, nil
	}
	xs := []Expr{}
	for it := arg.Iter(); it.Next(); {
		x, err := compile(it.Value(), s, depth)
		if err != nil {
			return nil, err
		}
		xs = append(xs, x)
	}
	return xs, nil
}

func checkCount(name string, op operator, n int) error {
	if op.min == op.max && n != op.min {
		return merr.New(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, op.min, n)
	}
	if n < op.min || op.max >= 0 && n > op.max {
		return merr.New(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.",
			name, op.min, op.max, n)
	}
	return nil
}

// named returns an operator whose argument is an object with required and optional fields.
//
// Like the other functions that make many operators it is not inlined: with a copy of their closures for each operator
// the binary would have 150 KB more.
//
//go:noinline
func named(required, optional []string, fn func(e *Env, a map[string]value.Value) (value.Value, error)) operator {
	return operator{special: func(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
		fs, err := namedArgs(name, arg, required, optional)
		if err != nil {
			return nil, err
		}
		xs := make(map[string]Expr, len(fs))
		for k, v := range fs {
			if xs[k], err = compile(v, s, depth); err != nil {
				return nil, err
			}
		}
		return func(e *Env) (value.Value, error) {
			if err := e.Run.Step(); err != nil {
				return value.Undef(), err
			}
			a := make(map[string]value.Value, len(xs))
			for k, x := range xs {
				v, err := x(e)
				if err != nil {
					return v, err
				}
				a[k] = v
			}
			return fn(e, a)
		}, nil
	}}
}

func contains(ss []string, s string) bool {
	for _, x := range ss {
		if x == s {
			return true
		}
	}
	return false
}

// wantArray returns the elements of an array argument; ok is false for null or missing.
func wantArray(name string, code int32, v value.Value) (vs []value.Value, ok bool, err error) {
	if nullish(v) {
		return nil, false, nil
	}
	if v.Kind() != value.Array {
		return nil, false, merr.New(code, "The argument to %s must be an array, but was of type: %s", name, TypeName(v))
	}
	return value.Elements(v), true, nil
}
