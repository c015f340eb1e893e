package num

import (
	"math"
	"strconv"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// toDecimal sets d to the decimal of any number. A double has 15 digits.
func toDecimal(d *bson.Decimal, v value.Value) {
	switch v.Kind() {
	case value.Int32, value.Int64:
		d.SetInt(v.Int())
	case value.Double:
		var buf [32]byte
		// A double has 15 digits here, also if the last are zeros: 2.5 is 2.50000000000000. The text can always be
		// parsed.
		format, digits := byte('e'), 14
		if v.Float() == 0 {
			format, digits = 'f', 0
		}
		d.Parse(string(strconv.AppendFloat(buf[:0], v.Float(), format, digits, 64)))
	default:
		d.Read(v.Bytes())
	}
}

// decimalOp computes an operation on two numbers as decimals.
func decimalOp(op func(z, x, y *bson.Decimal), a, b value.Value) value.Value {
	var x, y, z bson.Decimal
	toDecimal(&x, a)
	toDecimal(&y, b)
	op(&z, &x, &y)
	return value.NewDecimal(&z)
}

// Decimal is the value of a function of decimals at a number.
func Decimal(fn func(z, x *bson.Decimal), v value.Value) value.Value {
	var x, z bson.Decimal
	toDecimal(&x, v)
	fn(&z, &x)
	return value.NewDecimal(&z)
}

// Decimals is the value of a function of two decimals at two numbers.
func Decimals(fn func(z, x, y *bson.Decimal), a, b value.Value) value.Value {
	return decimalOp(fn, a, b)
}

// Sign returns -1, 0 or 1; NaN counts as 0.
func Sign(v value.Value) int {
	if v.Kind() == value.Decimal {
		var d bson.Decimal
		toDecimal(&d, v)
		return d.Sign()
	}
	switch f := ToFloat(v); {
	case f < 0:
		return -1
	case f > 0:
		return 1
	}
	return 0
}

// IsNaN reports whether a number is NaN.
func IsNaN(v value.Value) bool {
	f := ToFloat(v)
	return f != f
}

// IsInf reports whether a number is an infinity.
func IsInf(v value.Value) bool {
	if v.Kind() == value.Decimal {
		var d bson.Decimal
		toDecimal(&d, v)
		return d.IsInf()
	}
	return math.IsInf(ToFloat(v), 0)
}

// integral rounds to places digits behind the point, or before it if places is negative. Floor and Ceil have no places.
func integral(z, x *bson.Decimal, mode, places int) {
	switch mode {
	case Floor:
		z.Floor(x)
	case Ceil:
		z.Ceil(x)
	case HalfEven:
		z.Round(x, places)
	default:
		z.Trunc(x, places)
	}
}

// floatToPlaces rounds a finite double to places digits.
func floatToPlaces(f float64, mode, places int) float64 {
	var x, z bson.Decimal
	toDecimal(&x, value.DoubleOf(f))
	integral(&z, &x, mode, places)
	return z.Float()
}
