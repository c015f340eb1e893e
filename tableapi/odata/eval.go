package odata

import (
	"bytes"
	"cmp"

	"github.com/orrerydb/orrery/core/value"
)

// Compile turns a filter into a function of a row. It calls field once for each property that the filter names, to get
// the function that reads the property; that function returns Undefined for a row without the property. A nil filter
// matches every row.
//
// A comparison with a missing property, or between values of different types, is false for all operators (also `ne`). A
// literal without a suffix and a fraction compares with all three numeric types, one with a fraction with Double and
// Int32, one with the suffix L only with Int64: the service converts an Int32 literal to the property's type, and never
// converts the property's value.
//
//	n eq 5    on n = Int64 5: true
//	n eq 5L   on n = Double 5: false
//	n ne 5    without n: false
func Compile[R any](n *Node, field func(prop string) func(R) value.Value) func(R) bool {
	if n == nil {
		return func(R) bool { return true }
	}
	switch n.Kind {
	case Or:
		args := compileAll(n.Args, field)
		return func(r R) bool {
			for _, a := range args {
				if a(r) {
					return true
				}
			}
			return false
		}
	case And:
		args := compileAll(n.Args, field)
		return func(r R) bool {
			for _, a := range args {
				if !a(r) {
					return false
				}
			}
			return true
		}
	case Not:
		arg := Compile(n.Args[0], field)
		return func(r R) bool { return !arg(r) }
	case Truth:
		if n.Left.Prop == "" {
			is := n.Left.Lit.Bool()
			return func(R) bool { return is }
		}
		get := field(n.Left.Prop)
		return func(r R) bool { return get(r).Bool() }
	}
	return compileCompare(n, field)
}

func compileAll[R any](args []*Node, field func(string) func(R) value.Value) []func(R) bool {
	out := make([]func(R) bool, len(args))
	for i, a := range args {
		out[i] = Compile(a, field)
	}
	return out
}

func compileCompare[R any](n *Node, field func(string) func(R) value.Value) func(R) bool {
	left, right, op := n.Left, n.Right, n.Op
	if left.Prop == "" {
		left, right, op = right, left, mirrored[op]
	}
	if left.Prop == "" {
		is := holds(op, left.Lit, right.Lit)
		return func(R) bool { return is }
	}
	get := field(left.Prop)
	if right.Prop != "" {
		other := field(right.Prop)
		return func(r R) bool {
			a, b := get(r), other(r)
			return holds(op, a, b) || holds(mirrored[op], b, a)
		}
	}
	lit := right.Lit
	return func(r R) bool { return holds(op, get(r), lit) }
}

// holds evaluates a comparison of a property's value with a literal.
func holds(op Op, a, b value.Value) bool {
	c, ok := compare(a, b)
	if !ok {
		return false
	}
	switch op {
	case Eq:
		return c == 0
	case Ne:
		return c != 0
	case Gt:
		return c > 0
	case Ge:
		return c >= 0
	case Lt:
		return c < 0
	}
	return c <= 0
}

// compare orders a property's value a and a literal b. ok is false if their types don't match or have no order here
// (also NaN).
func compare(a, b value.Value) (c int, ok bool) {
	ka, kb := a.Kind(), b.Kind()
	if ka == kb {
		switch ka {
		case value.Bool:
			return int(b2i(a.Bool()) - b2i(b.Bool())), true
		case value.Int32, value.Int64:
			return cmp.Compare(a.Int(), b.Int()), true
		case value.String, value.Binary, value.UUID:
			return bytes.Compare(a.Bytes(), b.Bytes()), true
		case value.Date:
			if c := cmp.Compare(a.DateMS(), b.DateMS()); c != 0 {
				return c, true
			}
			return cmp.Compare(a.Ticks(), b.Ticks()), true
		}
	}
	switch {
	case kb == value.Int32 && ka == value.Int64:
		return cmp.Compare(a.Int(), b.Int()), true
	case (kb == value.Int32 || kb == value.Double) && (ka == value.Int32 || ka == value.Double):
		x, y := a.Float(), b.Float()
		return cmp.Compare(x, y), x == x && y == y
	}
	return 0, false
}

func b2i(b bool) int8 {
	if b {
		return 1
	}
	return 0
}
