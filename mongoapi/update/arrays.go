package update

import (
	"sort"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// elements returns the elements of the array at p, or nil without an error if there is no value.
func elements(root *node, p place, path []string, what string) ([]value.Value, error) {
	if p.at == nil {
		return nil, nil
	}
	v := p.at.value()
	if v.Kind() != value.Array {
		if what == "" {
			return nil, merr.New(merr.BadValue, "The field '%s' must be an array but is of type %s in document {%s}",
				joined(path), expr.TypeName(v), idText(root))
		}
		return nil, merr.New(merr.BadValue, what, joined(path), expr.TypeName(v))
	}
	return value.Elements(v), nil
}

func joined(path []string) string {
	s := path[0]
	for _, p := range path[1:] {
		s += "." + p
	}
	return s
}

// pushArgs are the modifiers of $push.
type pushArgs struct {
	each     []value.Value
	position *int
	slice    *int
	less     func(c *collate.Collation, a, b value.Value) bool
}

func parsePush(arg value.Value) (pushArgs, error) {
	a := pushArgs{each: []value.Value{arg}}
	if arg.Kind() != value.Object || !arg.Get("$each").IsDefined() {
		if arg.Kind() == value.Object {
			if it := arg.Iter(); it.Next() && len(it.Key()) > 1 && it.Key()[0] == '$' && isModifier(string(it.Key())) {
				return a, merr.New(merr.DollarPrefixedFieldName, "The dollar ($) prefixed field '%s' is not valid "+
					"for storage.", it.Key())
			}
		}
		return a, nil
	}
	for it := arg.Iter(); it.Next(); {
		v := it.Value()
		switch key := string(it.Key()); key {
		case "$each":
			if v.Kind() != value.Array {
				return a, merr.New(merr.BadValue, "The argument to $each in $push must be an array but it was of "+
					"type: %s", expr.TypeName(v))
			}
			a.each = value.Elements(v)
		case "$position", "$slice":
			n, ok := num.ToInt64(v, false)
			if !ok {
				return a, merr.New(merr.BadValue, "The value for %s must be an integer value but was given type: %s",
					key, expr.TypeName(v))
			}
			i := int(max(-1<<31, min(n, 1<<31)))
			if key == "$slice" {
				a.slice = &i
			} else {
				a.position = &i
			}
		case "$sort":
			less, err := expr.SortBy(v)
			if err != nil {
				return a, err
			}
			a.less = less
		default:
			return a, merr.New(merr.BadValue, "Unrecognized clause in $push: %s", key)
		}
	}
	return a, nil
}

func isModifier(s string) bool {
	switch s {
	case "$position", "$slice", "$sort":
		return true
	}
	return false
}

func push(_ string, arg value.Value, _ Options) (applyFn, error) {
	a, err := parsePush(arg)
	if err != nil {
		return nil, err
	}
	return func(root *node, path []string, c *Context) error {
		p := root.find(path)
		vs, err := elements(root, p, path, "")
		if err != nil {
			return err
		}
		at := len(vs)
		if a.position != nil {
			if at = *a.position; at < 0 {
				at = max(0, len(vs)+at)
			}
			at = min(at, len(vs))
		}
		out := make([]value.Value, 0, len(vs)+len(a.each))
		out = append(append(append(out, vs[:at]...), a.each...), vs[at:]...)
		if a.less != nil {
			coll := c.Env.Run.Collation()
			sort.SliceStable(out, func(i, j int) bool { return a.less(coll, out[i], out[j]) })
		}
		if a.slice != nil {
			out = expr.Slice(out, false, *a.slice, 0)
		}
		return p.put(value.MakeArray(out))
	}, nil
}

func addToSet(_ string, arg value.Value, _ Options) (applyFn, error) {
	add := []value.Value{arg}
	if arg.Kind() == value.Object && arg.Get("$each").IsDefined() {
		each := arg.Get("$each")
		if each.Kind() != value.Array {
			return nil, merr.New(merr.TypeMismatch, "The argument to $each in $addToSet must be an array but it was "+
				"of type %s", expr.TypeName(each))
		}
		if arg.Len() != 1 {
			return nil, merr.New(merr.BadValue, "Found unexpected fields after $each in $addToSet: %s", merr.Show(arg))
		}
		add = value.Elements(each)
	}
	return func(root *node, path []string, c *Context) error {
		p := root.find(path)
		vs, err := elements(root, p, path, "Cannot apply $addToSet to non-array field. Field named '%s' has "+
			"non-array type %s")
		if err != nil {
			return err
		}
		s := expr.NewSet(c.Env.Run.Collation())
		for _, v := range vs {
			s.Add(v)
		}
		out := vs
		for _, v := range add {
			if s.Add(v) {
				out = append(out, v)
			}
		}
		return p.put(value.MakeArray(out))
	}, nil
}

func pop(path string, arg value.Value, _ Options) (applyFn, error) {
	n, ok := num.ToInt64(arg, false)
	if !ok || n != 1 && n != -1 {
		return nil, merr.New(merr.FailedToParse, "$pop expects 1 or -1, found: %s", merr.Show(arg))
	}
	return func(root *node, path []string, _ *Context) error {
		p := root.find(path)
		if p.at == nil {
			return p.missing(path)
		}
		v := p.at.value()
		if v.Kind() != value.Array {
			return merr.New(merr.TypeMismatch, "Path '%s' contains an element of non-array type '%s'", joined(path),
				expr.TypeName(v))
		}
		vs := value.Elements(v)
		if len(vs) == 0 {
			return nil
		}
		if n == 1 {
			return p.put(value.MakeArray(vs[:len(vs)-1]))
		}
		return p.put(value.MakeArray(vs[1:]))
	}, nil
}

// removeIf makes the operators that remove elements from an array.
//
//go:noinline // each caller would get its own copy of the closure
func removeIf(gone func(v value.Value) bool) applyFn {
	return func(root *node, path []string, _ *Context) error {
		p := root.find(path)
		if p.at == nil {
			return p.missing(path)
		}
		v := p.at.value()
		if v.Kind() != value.Array {
			return merr.New(merr.BadValue, "Cannot apply $pull to a non-array value")
		}
		var out []value.Value
		for it := v.Iter(); it.Next(); {
			if !gone(it.Value()) {
				out = append(out, it.Value())
			}
		}
		return p.put(value.MakeArray(out))
	}
}

func pull(_ string, arg value.Value, o Options) (applyFn, error) {
	gone, err := filter.Element(arg, filter.Options{Scope: o.Scope, Run: o.Run})
	if err != nil {
		return nil, err
	}
	return removeIf(gone), nil
}

func pullAll(path string, arg value.Value, o Options) (applyFn, error) {
	if arg.Kind() != value.Array {
		return nil, merr.New(merr.BadValue, "$pullAll requires an array argument but was given a %s",
			expr.TypeName(arg))
	}
	s := expr.NewSet(o.Run.Collation())
	for it := arg.Iter(); it.Next(); {
		s.Add(it.Value())
	}
	return removeIf(s.Has), nil
}
