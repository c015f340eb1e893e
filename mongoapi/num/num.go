// Package num is arithmetic on BSON numbers with MongoDB's rules for the type of the result. Two ints give an int, or a
// long after an overflow. With a double the result is a double, with a decimal a decimal.
//
//	int 1 + int 2             -> int 3
//	int 2147483647 + int 1    -> long 2147483648
//	long 1 + double 0.5       -> double 1.5
//	long 1 + decimal 0.5      -> decimal 1.5
package num

import (
	"math"
	"math/bits"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// Op is an arithmetic operation.
type Op uint8

// The operations.
const (
	Add Op = iota
	Sub
	Mul
)

// Do computes a op b. ok is false if two 64-bit integers overflow. An update then refuses the operation; an expression
// continues in doubles (float).
func Do(op Op, a, b value.Value) (v value.Value, ok bool) {
	ka, kb := a.Kind(), b.Kind()
	switch {
	case ka == value.Decimal || kb == value.Decimal:
		switch op {
		case Sub:
			return decimalOp((*bson.Decimal).Sub, a, b), true
		case Mul:
			return decimalOp((*bson.Decimal).Mul, a, b), true
		}
		return decimalOp((*bson.Decimal).Add, a, b), true
	case ka == value.Double || kb == value.Double:
		return value.DoubleOf(float(op, a.Float(), b.Float())), true
	}
	x, y := a.Int(), b.Int()
	r, ok := intOp(op, x, y)
	if !ok {
		return value.Value{}, false
	}
	if ka == value.Int32 && kb == value.Int32 && r == int64(int32(r)) {
		return value.Int32Of(int32(r)), true
	}
	return value.Int64Of(r), true
}

// Widen is Do, except that an overflow of 64-bit integers gives a double, as in aggregation.
func Widen(op Op, a, b value.Value) value.Value {
	if v, ok := Do(op, a, b); ok {
		return v
	}
	return value.DoubleOf(float(op, a.Float(), b.Float()))
}

// float computes x op y in doubles.
func float(op Op, x, y float64) float64 {
	switch op {
	case Sub:
		return x - y
	case Mul:
		return x * y
	}
	return x + y
}

func intOp(op Op, x, y int64) (int64, bool) {
	switch op {
	case Add:
		r := x + y
		return r, (r > x) == (y > 0)
	case Sub:
		r := x - y
		return r, (r < x) == (y > 0)
	}
	if x == 0 || y == 0 {
		return 0, true
	}
	neg := (x < 0) != (y < 0)
	hi, lo := bits.Mul64(abs64(x), abs64(y))
	if hi != 0 || lo > 1<<63 || lo == 1<<63 && !neg {
		return 0, false
	}
	if neg {
		return int64(-lo), true
	}
	return int64(lo), true
}

func abs64(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// Div divides. The result is a double, or a decimal if an operand is one. The caller refuses a zero divisor.
func Div(a, b value.Value) value.Value {
	if a.Kind() == value.Decimal || b.Kind() == value.Decimal {
		return decimalOp((*bson.Decimal).Quo, a, b)
	}
	return value.DoubleOf(a.Float() / b.Float())
}

// Mod returns the remainder, with the sign of a. The caller refuses a zero divisor.
func Mod(a, b value.Value) value.Value {
	ka, kb := a.Kind(), b.Kind()
	switch {
	case ka == value.Decimal || kb == value.Decimal:
		return decimalOp((*bson.Decimal).Rem, a, b)
	case ka == value.Double || kb == value.Double:
		return value.DoubleOf(math.Mod(a.Float(), b.Float()))
	}
	x, y := a.Int(), b.Int()
	r := int64(0)
	if y != -1 {
		r = x % y
	}
	if ka == value.Int32 && kb == value.Int32 {
		return value.Int32Of(int32(r))
	}
	return value.Int64Of(r)
}

// IsZero reports whether a number is zero.
func IsZero(v value.Value) bool {
	if v.Kind() == value.Decimal {
		var d bson.Decimal
		toDecimal(&d, v)
		return !d.IsNaN() && d.Sign() == 0
	}
	return v.Float() == 0
}

// ToFloat converts any number to a double. Other kinds give 0.
func ToFloat(v value.Value) float64 {
	f, _ := value.Number(v)
	return f
}

// ToDecimal converts any number to a decimal.
func ToDecimal(v value.Value) value.Value {
	if v.Kind() == value.Decimal {
		return v
	}
	var d bson.Decimal
	toDecimal(&d, v)
	return value.NewDecimal(&d)
}

// ToInt64 converts a number to an int64 if it is exactly one. With trunc its fraction is dropped first.
func ToInt64(v value.Value, trunc bool) (int64, bool) {
	switch v.Kind() {
	case value.Int32, value.Int64:
		return v.Int(), true
	case value.Double:
		f := v.Float()
		if !(f >= -9223372036854775808.0 && f < 9223372036854775808.0) || !trunc && f != math.Trunc(f) {
			return 0, false
		}
		return int64(f), true
	case value.Decimal:
		var d bson.Decimal
		toDecimal(&d, v)
		if trunc {
			d.Trunc(&d, 0)
		}
		return d.Int64()
	}
	return 0, false
}

// Abs returns |v|. ok is false for the smallest int64.
func Abs(v value.Value) (value.Value, bool) {
	switch v.Kind() {
	case value.Int32, value.Int64:
		if v.Int() >= 0 {
			return v, true
		}
		return Do(Sub, sameZero(v), v)
	case value.Double:
		return value.DoubleOf(math.Abs(v.Float())), true
	}
	var d bson.Decimal
	if toDecimal(&d, v); d.Sign() < 0 {
		d.Neg(&d)
		return value.NewDecimal(&d), true
	}
	return v, true
}

func sameZero(v value.Value) value.Value {
	if v.Kind() == value.Int32 {
		return value.Int32Of(0)
	}
	return value.Int64Of(0)
}

// The rounding modes of Integral.
const (
	Floor    = -1
	Trunc    = 0
	Ceil     = 1
	HalfEven = 2
)

// Integral rounds v to places digits behind the point (negative: before it). The kind stays, except that an int32
// becomes an int64 on overflow.
func Integral(v value.Value, mode, places int) value.Value {
	switch v.Kind() {
	case value.Int32, value.Int64:
		if places >= 0 {
			return v
		}
		var d bson.Decimal
		toDecimal(&d, v)
		integral(&d, &d, mode, places)
		i, _ := d.Int64()
		if v.Kind() == value.Int32 && i == int64(int32(i)) {
			return value.Int32Of(int32(i))
		}
		return value.Int64Of(i)
	case value.Double:
		return value.DoubleOf(roundFloat(v.Float(), mode, places))
	}
	var d bson.Decimal
	toDecimal(&d, v)
	integral(&d, &d, mode, places)
	return value.NewDecimal(&d)
}

func roundFloat(f float64, mode, places int) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return f
	}
	if places != 0 {
		return floatToPlaces(f, mode, places)
	}
	switch mode {
	case Floor:
		return math.Floor(f)
	case Ceil:
		return math.Ceil(f)
	case HalfEven:
		return math.RoundToEven(f)
	}
	return math.Trunc(f)
}
