package filter

import (
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

// bits makes the $bits operators. Numbers are 64-bit two's complement, binaries little-endian bit strings.
func bits(holds func(v, m uint64) bool) operator {
	return func(_ *compiler, path string, arg, _ value.Value, _ int) (node, error) {
		mask, err := bitMask(arg)
		if err != nil {
			return nil, err
		}
		return newLeaf(path, true, func(v value.Value) bool {
			switch v.Kind() {
			case value.Binary, value.UUID:
				var n uint64
				for i, b := range v.Bytes() {
					if i < 8 {
						n |= uint64(b) << (8 * i)
					}
				}
				return holds(n, mask)
			}
			n, ok := num.ToInt64(v, false)
			return ok && holds(uint64(n), mask)
		}), nil
	}
}

func bitMask(arg value.Value) (uint64, error) {
	switch arg.Kind() {
	case value.Array:
		var m uint64
		for it := arg.Iter(); it.Next(); {
			n, ok := num.ToInt64(it.Value(), false)
			if !ok || n < 0 {
				return 0, merr.New(merr.BadValue, "bit positions must be non-negative integers")
			}
			m |= 1 << min(n, 63) // the sign bit is repeated beyond bit 63
		}
		return m, nil
	case value.Binary:
		var m uint64
		for i, b := range arg.Bytes() {
			if i >= 8 && b != 0 {
				return 0, merr.NotSupported("a bit mask of more than 64 bits")
			}
			if i < 8 {
				m |= uint64(b) << (8 * i)
			}
		}
		return m, nil
	}
	n, ok := num.ToInt64(arg, false)
	if !ok || n < 0 {
		return 0, merr.New(merr.BadValue, "takes an Array, a number, or a BinData but received something else")
	}
	return uint64(n), nil
}
