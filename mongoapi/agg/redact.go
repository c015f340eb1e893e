package agg

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// redactor is a compiled $redact. Its expression is evaluated for the document and, where it answers $$DESCEND, for
// each object in it. There "$level" is a field of that object, and $$ROOT still is the document.
//
// Example: {$redact: {$cond: [{$eq: ["$level", 5]}, "$$PRUNE", "$$DESCEND"]}} of {level: 1, a: {level: 5}, b: [{level:
// 5}, 7]} gives {level: 1, b: [7]}.
type redactor struct {
	x    expr.Expr
	root int // slot of $$ROOT
}

func redact(c *compiler, arg value.Value) (stage, error) {
	r := &redactor{}
	scope := c.o.Scope
	scope, r.root = scope.Bind("ROOT")
	var err error
	if r.x, err = expr.Compile(arg, scope); err != nil {
		return nil, err
	}
	return func(x *Exec, src Iter) (Iter, error) {
		return &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
			x.Env.Set(r.root, d)
			return r.object(x.Env, d)
		}}, nil
	}, nil
}

// object returns what is left of an object, Undefined for nothing.
func (r *redactor) object(e *expr.Env, d value.Value) (value.Value, error) {
	if err := e.Run.Step(); err != nil {
		return d, err
	}
	v, err := r.x(e.With(d))
	if err != nil {
		return v, err
	}
	if v.Kind() == value.String {
		switch v.Str() {
		case "$$KEEP":
			return d, nil
		case "$$PRUNE":
			return value.Undef(), nil
		case "$$DESCEND":
			at, b := bson.Begin(nil)
			for it := d.Iter(); it.Next(); {
				in, err := r.inner(e, it.Value())
				if err != nil {
					return in, err
				}
				b = value.AppendElement(b, it.Key(), in)
			}
			return value.ObjectOf(bson.End(b, at)), nil
		}
	}
	return v, merr.New(17053, "$redact's expression should not return anything aside from the variables $$KEEP, "+
		"$$DESCEND, and $$PRUNE, but returned %s", merr.Show(v))
}

// inner returns what is left of a value in an object or an array.
func (r *redactor) inner(e *expr.Env, v value.Value) (value.Value, error) {
	switch v.Kind() {
	case value.Object:
		return r.object(e, v)
	case value.Array:
		at, b := bson.Begin(nil)
		n := 0
		for it := v.Iter(); it.Next(); {
			in, err := r.inner(e, it.Value())
			if err != nil {
				return in, err
			}
			if in.IsDefined() {
				b = value.AppendIndexed(b, n, in)
				n++
			}
		}
		return value.ArrayOf(bson.End(b, at)), nil
	}
	return v, nil
}
