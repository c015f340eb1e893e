package filter

import (
	"math"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

func (c *compiler) typeOp(path string, arg, _ value.Value, _ int) (node, error) {
	var want [256]bool
	add := func(v value.Value) error {
		if v.Kind() == value.String {
			if v.Str() == "number" {
				for _, t := range []byte{0x01, 0x10, 0x12, 0x13} {
					want[t] = true
				}
				return nil
			}
			t, ok := expr.TypeByName(v.Str())
			if !ok {
				return merr.New(merr.BadValue, "Unknown type name alias: %s", v.Str())
			}
			want[t] = true
			return nil
		}
		n, ok := num.ToInt64(v, false)
		if !v.IsNumber() {
			return merr.New(merr.TypeMismatch, "type must be represented as a number or a string")
		}
		if n == 0 && ok || !ok || n < -1 || n > 19 && n != 127 {
			return merr.New(merr.BadValue, "Invalid numerical type code: %v", num.ToFloat(v))
		}
		want[byte(n)] = true
		return nil
	}
	if arg.Kind() == value.Array {
		if arg.Len() == 0 {
			return nil, merr.New(merr.FailedToParse, "a must match at least one type")
		}
		for it := arg.Iter(); it.Next(); {
			if err := add(it.Value()); err != nil {
				return nil, err
			}
		}
	} else if err := add(arg); err != nil {
		return nil, err
	}
	return newLeaf(path, true, func(v value.Value) bool { return v.IsDefined() && want[expr.TypeCode(v)] }), nil
}

// bits makes the $bits operators: holds says whether a value matches by how many of the bits at
// the given positions are ones.
// Numbers are in two's complement, and have the bit of their sign at all further positions. Binaries are little-endian
// bit strings, and have zeros there.
func bits(name string, holds func(ones, all int) bool) operator {
	return func(_ *compiler, path string, arg, _ value.Value, _ int) (node, error) {
		at, err := bitPositions(name, arg)
		if err != nil {
			return nil, err
		}
		return newLeaf(path, true, func(v value.Value) bool {
			var set func(i int) bool
			switch v.Kind() {
			case value.Binary, value.UUID:
				b := v.Bytes()
				set = func(i int) bool { return i/8 < len(b) && b[i/8]>>(i%8)&1 == 1 }
			default:
				n, ok := num.ToInt64(v, false)
				if !ok {
					return false
				}
				set = func(i int) bool { return n>>min(i, 63)&1 == 1 }
			}
			ones := 0
			for _, i := range at {
				if set(i) {
					ones++
				}
			}
			return holds(ones, len(at))
		}), nil
	}
}

// bitPositions returns the positions that the argument of a $bits operator names, or the ones of a mask.
func bitPositions(name string, arg value.Value) (at []int, err error) {
	switch arg.Kind() {
	case value.Array:
		for it := arg.Iter(); it.Next(); {
			n, ok := num.ToInt64(it.Value(), false)
			switch {
			case !ok:
				return nil, merr.New(merr.BadValue, "Failed to parse bit position. Expected an integer: %s",
					merr.Show(it.Value()))
			case n < 0 || n > math.MaxInt32:
				return nil, merr.New(merr.BadValue, "Failed to parse bit position. Expected a non-negative number in: "+
					"%s", merr.Show(it.Value()))
			}
			at = append(at, int(n))
		}
	case value.Binary, value.UUID:
		for i, b := range arg.Bytes() {
			for k := range 8 {
				if b>>k&1 == 1 {
					at = append(at, 8*i+k)
				}
			}
		}
	default:
		if !arg.IsNumber() {
			return nil, merr.New(merr.BadValue, "%s takes an Array, a number, or a BinData but received: %s: %s", name,
				name, merr.Show(arg))
		}
		n, ok := num.ToInt64(arg, false)
		switch {
		case !ok:
			return nil, merr.New(merr.FailedToParse, "Expected an integer: %s: %s", name, merr.Show(arg))
		case n < 0:
			return nil, merr.New(merr.FailedToParse, "Expected a non-negative number in: %s: %s", name, merr.Show(arg))
		}
		for i := range 63 {
			if n>>i&1 == 1 {
				at = append(at, i)
			}
		}
	}
	return at, nil
}
