package value

import (
	"math"

	"github.com/orrerydb/orrery/core/bson"
)

// Canonical returns one representative of all numbers that are equal to v: an Int32 or Int64 if v is whole and fits,
// else a Double if one is exactly equal, else a Decimal without trailing zeros. There is one NaN. A Symbol becomes a
// String. Other values are returned unchanged.
//
//	1, 1.0, decimal 1.00  ->  Int32 1
//	0.5, decimal 0.50     ->  Double 0.5
//	decimal 0.10          ->  Decimal 0.1: no double equals it
func Canonical(v Value) Value {
	switch v.kind {
	case Symbol:
		v.kind = String
	case Int32, Int64:
		return IntOf(int64(v.n))
	case Double:
		f := math.Float64frombits(v.n)
		if math.IsNaN(f) {
			return DoubleOf(math.NaN())
		}
		if i, ok := wholeInt64(f); ok {
			return IntOf(i)
		}
	case Decimal:
		var d bson.Decimal
		d.Read(v.b)
		if d.IsNaN() {
			return DoubleOf(math.NaN())
		}
		if i, ok := d.Int64(); ok {
			return IntOf(i)
		}
		if f := d.Float(); compareDecFloat(&d, f) == 0 {
			return DoubleOf(f)
		}
		d.Reduce()
		return NewDecimal(&d)
	}
	return v
}

// wholeInt64 returns f as an int64 if it is a whole number in range (-0 gives 0).
func wholeInt64(f float64) (int64, bool) {
	if f < -1<<63 || f >= 1<<63 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// Number returns a number as a double, the nearest one for Int64 and Decimal. ok is false for other kinds.
func Number(v Value) (f float64, ok bool) {
	switch v.kind {
	case Int32, Int64, Double:
		return v.Float(), true
	case Decimal:
		var d bson.Decimal
		d.Read(v.b)
		return d.Float(), true
	}
	return 0, false
}

// CompareNumbers compares two numbers of any kinds by their exact values. NaN equals NaN and is below all others; -0
// equals 0. Values that aren't numbers count as NaN.
func CompareNumbers(a, b Value) int {
	switch {
	case a.kind == Decimal || b.kind == Decimal:
		return compareDecimal(a, b)
	case a.kind == Double && b.kind == Double:
		return compareFloats(math.Float64frombits(a.n), math.Float64frombits(b.n))
	case a.kind == Double:
		return -compareIntFloat(b.Int(), math.Float64frombits(a.n))
	case b.kind == Double:
		return compareIntFloat(a.Int(), math.Float64frombits(b.n))
	}
	return cmpInt(a.Int(), b.Int())
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a):
		return -1
	}
	return 1
}

// compareIntFloat compares exactly, also where float64(i) would round.
func compareIntFloat(i int64, f float64) int {
	switch {
	case math.IsNaN(f):
		return 1
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	}
	t := math.Trunc(f)
	if c := cmpInt(i, int64(t)); c != 0 {
		return c
	}
	return compareFloats(t, f)
}

func compareDecimal(a, b Value) int {
	if a.kind != Decimal {
		return -compareDecimal(b, a)
	}
	var x, y bson.Decimal
	x.Read(a.b)
	switch b.kind {
	case Decimal:
		y.Read(b.b)
		return x.Cmp(&y)
	case Double:
		return compareDecFloat(&x, math.Float64frombits(b.n))
	case Int32, Int64:
		y.SetInt(int64(b.n))
		return x.Cmp(&y)
	}
	return compareDecFloat(&x, math.NaN())
}
