package funcs

import (
	"bytes"
	"math"

	"github.com/orrerydb/orrery/core/value"
)

// EqualOp evaluates = and !=. The result is undefined when a side is undefined. Values of different types are not
// equal.
func EqualOp(a, b value.Value, not bool) value.Value {
	if !a.IsDefined() || !b.IsDefined() {
		return value.Value{}
	}
	return value.BoolOf(Equal(a, b) != not)
}

// CompareOp evaluates < > <= >=. The result is only defined for two values of the same type: null, boolean, number or
// string.
func CompareOp(op string, a, b value.Value) value.Value {
	c := 0
	switch {
	case a.IsNumber() && b.IsNumber():
		if math.IsNaN(a.Float()) || math.IsNaN(b.Float()) {
			return value.BoolOf(false)
		}
		c = value.CompareNumbers(a, b)
	case a.Kind() != b.Kind():
		return value.Value{}
	case a.Kind() == value.String:
		c = bytes.Compare(a.Bytes(), b.Bytes())
	case a.Kind() == value.Bool:
		if a.Bool() != b.Bool() {
			c = -1
			if a.Bool() {
				c = 1
			}
		}
	case a.Kind() == value.Null:
	default:
		return value.Value{}
	}
	switch op {
	case "<":
		return value.BoolOf(c < 0)
	case "<=":
		return value.BoolOf(c <= 0)
	case ">":
		return value.BoolOf(c > 0)
	}
	return value.BoolOf(c >= 0)
}

// Arithmetic evaluates + - * / % on doubles. The result is undefined unless both sides are numbers.
func Arithmetic(op string, a, b value.Value) value.Value {
	if !a.IsNumber() || !b.IsNumber() {
		return value.Value{}
	}
	x, y := a.Float(), b.Float()
	switch op {
	case "+":
		return Num(x + y)
	case "-":
		return Num(x - y)
	case "*":
		return Num(x * y)
	case "/":
		return Num(x / y)
	}
	return Num(math.Mod(x, y))
}

// Bitwise evaluates & | ^ << >> >>> on 32 bits, as JavaScript does.
func Bitwise(op string, a, b value.Value) value.Value {
	if !a.IsNumber() || !b.IsNumber() {
		return value.Value{}
	}
	x, y := toInt32(a.Float()), toInt32(b.Float())
	switch op {
	case "&":
		return value.Int32Of(x & y)
	case "|":
		return value.Int32Of(x | y)
	case "^":
		return value.Int32Of(x ^ y)
	case "<<":
		return value.Int32Of(x << (uint32(y) & 31))
	case ">>":
		return value.Int32Of(x >> (uint32(y) & 31))
	}
	return value.IntOf(int64(uint32(x) >> (uint32(y) & 31)))
}

// toInt32 converts a number to 32 bits by JavaScript's ToInt32 rule.
func toInt32(f float64) int32 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	m := math.Mod(math.Trunc(f), 1<<32)
	if m < 0 {
		m += 1 << 32
	}
	return int32(uint32(m))
}

// UnaryOp evaluates the unary operators - + ~ NOT.
func UnaryOp(op string, v value.Value) value.Value {
	if op == "NOT" {
		if v.Kind() != value.Bool {
			return value.Value{}
		}
		return value.BoolOf(!v.Bool())
	}
	if !v.IsNumber() {
		return value.Value{}
	}
	switch op {
	case "-":
		return Num(-v.Float())
	case "~":
		return value.Int32Of(^toInt32(v.Float()))
	}
	return v
}

// IsTrue reports whether v is the boolean true. WHERE, ?: and ALL test their conditions with it.
func IsTrue(v value.Value) bool { return v.Kind() == value.Bool && v.Bool() }
