package expr

import (
	"slices"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// loop compiles the common part of $map and $filter: the input, and the body in a scope with a variable for the
// element.
func loop(name, body string, optional []string, arg value.Value, s *Scope, depth int) (
	input, in Expr, slot int, fs map[string]value.Value, err error) {
	fs, err = namedArgs(name, arg, []string{"input", body}, append(optional, "as"))
	if err != nil {
		return
	}
	as := "this"
	if v, ok := fs["as"]; ok {
		as = v.Str()
	}
	if input, err = compile(fs["input"], s, depth); err != nil {
		return
	}
	inner, slot, err := BindUser(s, as)
	if err != nil {
		return
	}
	in, err = compile(fs[body], inner, depth)
	return input, in, slot, fs, err
}

func mapOp(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	input, in, slot, _, err := loop(name, "in", nil, arg, s, depth)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (value.Value, error) {
		v, err := input(e)
		if err != nil || nullish(v) {
			return value.NullValue(), err
		}
		if v.Kind() != value.Array {
			return v, merr.New(16883, "input to $map must be an array not %s", TypeName(v))
		}
		out := newArray(e)
		defer out.drop()
		for it := v.Iter(); it.Next(); {
			e.Set(slot, it.Value())
			x, err := in(e)
			if err != nil {
				return x, err
			}
			if err := out.add(x); err != nil {
				return x, err
			}
		}
		return out.done(), nil
	}, nil
}

func filterOp(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	input, in, slot, fs, err := loop(name, "cond", []string{"limit"}, arg, s, depth)
	if err != nil {
		return nil, err
	}
	limit := constant(value.NullValue())
	if l, ok := fs["limit"]; ok {
		if limit, err = compile(l, s, depth); err != nil {
			return nil, err
		}
	}
	return func(e *Env) (value.Value, error) {
		v, err := input(e)
		if err != nil || nullish(v) {
			return value.NullValue(), err
		}
		if v.Kind() != value.Array {
			return v, merr.New(28651, "input to $filter must be an array not %s", TypeName(v))
		}
		most := -1
		if l, err := limit(e); err != nil {
			return l, err
		} else if !nullish(l) {
			n, ok := num.ToInt64(l, false)
			if !ok || n < 1 {
				return l, merr.New(327392, "$filter: limit must be represented as a 32-bit integral value greater "+
					"than 0")
			}
			most = int(n)
		}
		out := newArray(e)
		defer out.drop()
		for it := v.Iter(); it.Next() && out.n != most; {
			e.Set(slot, it.Value())
			x, err := in(e)
			if err == nil {
				err = e.Run.Step()
			}
			if err != nil {
				return x, err
			}
			if !Truthy(x) {
				continue
			}
			if err := out.add(it.Value()); err != nil {
				return x, err
			}
		}
		return out.done(), nil
	}, nil
}

func reduce(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	fs, err := namedArgs(name, arg, []string{"input", "initialValue", "in"}, nil)
	if err != nil {
		return nil, err
	}
	input, err := compile(fs["input"], s, depth)
	if err != nil {
		return nil, err
	}
	first, err := compile(fs["initialValue"], s, depth)
	if err != nil {
		return nil, err
	}
	inner, this := s.Bind("this")
	inner, val := inner.Bind("value")
	in, err := compile(fs["in"], inner, depth)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (value.Value, error) {
		v, err := input(e)
		if err != nil || nullish(v) {
			return value.NullValue(), err
		}
		if v.Kind() != value.Array {
			return v, merr.New(40080, "$reduce requires that 'input' be an array, found: %s", TypeName(v))
		}
		acc, err := first(e)
		if err != nil {
			return acc, err
		}
		for it := v.Iter(); it.Next(); {
			e.Set(this, it.Value())
			e.Set(val, acc)
			if acc, err = in(e); err == nil {
				err = e.Run.Step()
			}
			if err != nil {
				return acc, err
			}
			if len(acc.Bytes()) > 16<<20 {
				return acc, merr.New(merr.BSONObjectTooLarge, "$reduce result exceeds the size limit")
			}
		}
		return acc, nil
	}, nil
}

func sortArray(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	fs, err := namedArgs(name, arg, []string{"input", "sortBy"}, nil)
	if err != nil {
		return nil, err
	}
	input, err := compile(fs["input"], s, depth)
	if err != nil {
		return nil, err
	}
	less, err := SortBy(fs["sortBy"])
	if err != nil {
		return nil, err
	}
	return func(e *Env) (value.Value, error) {
		v, err := input(e)
		if err != nil || nullish(v) {
			return value.NullValue(), err
		}
		if v.Kind() != value.Array {
			return v, merr.New(2942504, "The input argument to $sortArray must be an array, but was of type: %s",
				TypeName(v))
		}
		return stepSort(e, value.Elements(v), less)
	}, nil
}

// stepSort sorts values. It stops when the run has ended.
func stepSort(e *Env, vs []value.Value, less func(c *collate.Collation, a, b value.Value) bool) (value.Value, error) {
	err := error(nil)
	slices.SortStableFunc(vs, func(a, b value.Value) int {
		if err != nil {
			return 0 // all values count as equal, so the sort ends soon
		}
		switch err = e.Run.Step(); {
		case less(e.Run.Collation(), a, b):
			return -1
		case less(e.Run.Collation(), b, a):
			return 1
		}
		return 0
	})
	if err != nil {
		return value.Undef(), err
	}
	return value.MakeArray(vs), nil
}

// SortBy compiles the order of $sortArray and of $push: 1, -1, or {path: 1, ..} for elements that are documents.
func SortBy(v value.Value) (func(c *collate.Collation, a, b value.Value) bool, error) {
	if v.IsNumber() {
		dir, ok := num.ToInt64(v, false)
		if !ok || dir != 1 && dir != -1 {
			return nil, merr.New(merr.BadValue, "The $sort element value must be either 1 or -1")
		}
		return func(c *collate.Collation, a, b value.Value) bool { return int(dir)*c.Compare(a, b) < 0 }, nil
	}
	if v.Kind() != value.Object || v.Len() == 0 {
		return nil, merr.New(merr.BadValue, "The $sort is invalid: use 1/-1 to sort the whole element, or "+
			"{field:1/-1} to sort embedded fields")
	}
	type col struct {
		path []string
		dir  int
	}
	var cols []col
	for it := v.Iter(); it.Next(); {
		dir, ok := num.ToInt64(it.Value(), false)
		if !ok || dir != 1 && dir != -1 {
			return nil, merr.New(merr.BadValue, "The $sort element value must be either 1 or -1")
		}
		path, err := FieldPath(string(it.Key()))
		if err != nil {
			return nil, err
		}
		cols = append(cols, col{path, int(dir)})
	}
	return func(coll *collate.Collation, a, b value.Value) bool {
		for _, c := range cols {
			if r := c.dir * compareNull(coll, Path(a, c.path), Path(b, c.path)); r != 0 {
				return r < 0
			}
		}
		return false
	}, nil
}

// compareNull compares values in the order of sorts, in which missing equals null.
func compareNull(c *collate.Collation, a, b value.Value) int {
	if !a.IsDefined() {
		a = value.NullValue()
	}
	if !b.IsDefined() {
		b = value.NullValue()
	}
	return c.Compare(a, b)
}

func zip(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	fs, err := namedArgs(name, arg, []string{"inputs"}, []string{"useLongestLength", "defaults"})
	if err != nil {
		return nil, err
	}
	if fs["inputs"].Kind() != value.Array {
		return nil, merr.New(34461, "inputs must be an array of expressions, found %s", TypeName(fs["inputs"]))
	}
	inputs, err := arguments(fs["inputs"], s, depth)
	if err != nil {
		return nil, err
	}
	var defaults []Expr
	if d, ok := fs["defaults"]; ok {
		if defaults, err = arguments(d, s, depth); err != nil {
			return nil, err
		}
	}
	flag, given := fs["useLongestLength"]
	longest := flag.Bool()
	switch {
	case len(inputs) == 0:
		return nil, merr.New(34465, "$zip requires at least one input array")
	case given && flag.Kind() != value.Bool:
		return nil, merr.New(34463, "useLongestLength must be a bool, found %s", TypeName(flag))
	case defaults != nil && len(defaults) != len(inputs):
		return nil, merr.New(34467, "defaults and inputs must have the same length")
	}
	if defaults != nil && !longest {
		return nil, merr.New(34466, "cannot specify defaults unless useLongestLength is true")
	}
	return func(e *Env) (value.Value, error) {
		cols := make([][]value.Value, len(inputs))
		rows := 0
		for i, x := range inputs {
			v, err := x(e)
			if err != nil || nullish(v) {
				return value.NullValue(), err
			}
			if v.Kind() != value.Array {
				return v, merr.New(34468, "$zip found a non-array expression in input: %s", TypeName(v))
			}
			cols[i] = value.Elements(v)
			if i == 0 || longest == (len(cols[i]) > rows) {
				rows = len(cols[i])
			}
		}
		out := newArray(e)
		defer out.drop()
		row := make([]value.Value, len(cols))
		for r := range rows {
			for i, c := range cols {
				row[i] = value.NullValue()
				if r < len(c) {
					row[i] = c[r]
				} else if i < len(defaults) {
					if row[i], err = defaults[i](e); err != nil {
						return row[i], err
					}
				}
			}
			if err := out.add(value.MakeArray(row)); err != nil {
				return value.Undef(), err
			}
		}
		return out.done(), nil
	}, nil
}
