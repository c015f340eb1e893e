package expr

import (
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

var logicOps = map[string]operator{
	"$function": {special: functionOp},
	"$meta":     {special: meta},

	"$and":     {special: junction(false)},
	"$or":      {special: junction(true)},
	"$not":     unary(func(v value.Value) (value.Value, error) { return value.BoolOf(!Truthy(v)), nil }),
	"$cmp":     comparison(func(c int) value.Value { return value.Int32Of(int32(c)) }),
	"$eq":      comparison(func(c int) value.Value { return value.BoolOf(c == 0) }),
	"$ne":      comparison(func(c int) value.Value { return value.BoolOf(c != 0) }),
	"$gt":      comparison(func(c int) value.Value { return value.BoolOf(c > 0) }),
	"$gte":     comparison(func(c int) value.Value { return value.BoolOf(c >= 0) }),
	"$lt":      comparison(func(c int) value.Value { return value.BoolOf(c < 0) }),
	"$lte":     comparison(func(c int) value.Value { return value.BoolOf(c <= 0) }),
	"$cond":    {special: cond},
	"$ifNull":  {special: ifNull},
	"$switch":  {special: switchOp},
	"$let":     {special: let},
	"$literal": {special: func(_ string, arg value.Value, _ *Scope, _ int) (Expr, error) { return constant(arg), nil }},
	"$const":   {special: func(_ string, arg value.Value, _ *Scope, _ int) (Expr, error) { return constant(arg), nil }},
	"$sampleRate": fixed(1, func(e *Env, a []value.Value) (value.Value, error) {
		return value.BoolOf(e.Random() < a[0].Float()), nil
	}),
}

// Compare compares values in the order of expressions: MongoDB's order, with missing below null. Strings are compared
// by c.
func Compare(c *collate.Collation, a, b value.Value) int {
	switch {
	case a.IsDefined() && b.IsDefined():
		return c.Compare(a, b)
	case a.IsDefined():
		if a.Kind() == value.MinKey {
			return -1
		}
		return 1
	case b.IsDefined():
		if b.Kind() == value.MinKey {
			return 1
		}
		return -1
	}
	return 0
}

//go:noinline // see named
func comparison(fn func(c int) value.Value) operator {
	return fixed(2, func(e *Env, a []value.Value) (value.Value, error) {
		c := Compare(e.Run.Collation(), a[0], a[1])
		return fn(max(-1, min(1, c))), nil
	})
}

// junction compiles $or when stop is true, else $and. The evaluation stops at the first operand that decides the
// result.
func junction(stop bool) func(string, value.Value, *Scope, int) (Expr, error) {
	return func(_ string, arg value.Value, s *Scope, depth int) (Expr, error) {
		xs, err := arguments(arg, s, depth)
		if err != nil {
			return nil, err
		}
		return func(e *Env) (value.Value, error) {
			for _, x := range xs {
				v, err := x(e)
				if err != nil {
					return v, err
				}
				if Truthy(v) == stop {
					return value.BoolOf(stop), nil
				}
			}
			return value.BoolOf(!stop), nil
		}, nil
	}
}

func cond(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	var parts [3]value.Value
	switch arg.Kind() {
	case value.Object:
		for it := arg.Iter(); it.Next(); {
			switch string(it.Key()) {
			case "if":
				parts[0] = it.Value()
			case "then":
				parts[1] = it.Value()
			case "else":
				parts[2] = it.Value()
			default:
				return nil, merr.New(17083, "Unrecognized parameter to $cond: %s", it.Key())
			}
		}
		for i, n := range []string{"if", "then", "else"} {
			if !parts[i].IsDefined() {
				return nil, merr.New(int32(17080+i), "Missing '%s' parameter to $cond", n)
			}
		}
	default:
		es := value.Elements(arg)
		if len(es) != 3 {
			return nil, merr.New(16020, "Expression $cond takes exactly 3 arguments. %d were passed in.",
				max(1, len(es)))
		}
		copy(parts[:], es)
	}
	var xs [3]Expr
	for i := range xs {
		var err error
		if xs[i], err = compile(parts[i], s, depth); err != nil {
			return nil, err
		}
	}
	return func(e *Env) (value.Value, error) {
		v, err := xs[0](e)
		if err != nil {
			return v, err
		}
		if Truthy(v) {
			return xs[1](e)
		}
		return xs[2](e)
	}, nil
}

func ifNull(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	xs, err := arguments(arg, s, depth)
	if err != nil {
		return nil, err
	}
	if len(xs) < 2 {
		return nil, merr.New(1257300, "$ifNull needs at least two arguments, had: %d", len(xs))
	}
	return func(e *Env) (v value.Value, err error) {
		for _, x := range xs {
			if v, err = x(e); err != nil || !nullish(v) {
				return v, err
			}
		}
		return v, nil
	}, nil
}

// switchBranch returns the parts of a branch of $switch.
func switchBranch(b value.Value) (when, then value.Value, err error) {
	if b.Kind() != value.Object {
		return b, b, merr.New(40062, "$switch expected each branch to be an object, found: %s", TypeName(b))
	}
	for it := b.Iter(); it.Next(); {
		if k := string(it.Key()); k != "case" && k != "then" {
			return b, b, merr.New(40063, "$switch found an unknown argument to a branch: %s", k)
		}
	}
	if when, then = b.Get("case"), b.Get("then"); !when.IsDefined() {
		return b, b, merr.New(40064, "$switch requires each branch have a 'case' expression")
	} else if !then.IsDefined() {
		return b, b, merr.New(40065, "$switch requires each branch have a 'then' expression.")
	}
	return when, then, nil
}

func switchOp(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(40060, "$switch requires an object as an argument, found: %s", TypeName(arg))
	}
	type branch struct{ when, then Expr }
	var bs []branch
	var otherwise Expr
	var err error
	for it := arg.Iter(); it.Next(); {
		switch string(it.Key()) {
		case "default":
			if otherwise, err = compile(it.Value(), s, depth); err != nil {
				return nil, err
			}
		case "branches":
			if it.Value().Kind() != value.Array {
				return nil, merr.New(40061, "$switch expected an array for 'branches', found: %s", TypeName(it.Value()))
			}
			for _, b := range value.Elements(it.Value()) {
				c, t, err := switchBranch(b)
				if err != nil {
					return nil, err
				}
				var br branch
				if br.when, err = compile(c, s, depth); err != nil {
					return nil, err
				}
				if br.then, err = compile(t, s, depth); err != nil {
					return nil, err
				}
				bs = append(bs, br)
			}
		default:
			return nil, merr.New(40067, "$switch found an unknown argument: %s", it.Key())
		}
	}
	if len(bs) == 0 {
		return nil, merr.New(40068, "$switch requires at least one branch.")
	}
	return func(e *Env) (value.Value, error) {
		for _, b := range bs {
			v, err := b.when(e)
			if err != nil {
				return v, err
			}
			if Truthy(v) {
				return b.then(e)
			}
		}
		if otherwise == nil {
			return value.Undef(), merr.New(40066, "$switch could not find a matching branch for an input, and no "+
				"default was specified.")
		}
		return otherwise(e)
	}, nil
}

func let(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	fs, err := namedArgs(name, arg, []string{"vars", "in"}, nil)
	if err != nil {
		return nil, err
	}
	if fs["vars"].Kind() != value.Object {
		return nil, merr.New(16876, "invalid parameter: expected an object ($let vars)")
	}
	type bound struct {
		slot int
		x    Expr
	}
	var vars []bound
	inner := s
	for it := fs["vars"].Iter(); it.Next(); {
		x, err := compile(it.Value(), s, depth)
		if err != nil {
			return nil, err
		}
		var slot int
		if inner, slot, err = BindUser(inner, string(it.Key())); err != nil {
			return nil, err
		}
		vars = append(vars, bound{slot, x})
	}
	in, err := compile(fs["in"], inner, depth)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (value.Value, error) {
		vals := make([]value.Value, len(vars))
		for i, b := range vars {
			v, err := b.x(e)
			if err != nil {
				return v, err
			}
			vals[i] = v
		}
		for i, b := range vars {
			e.Set(b.slot, vals[i])
		}
		return in(e)
	}, nil
}
