package num

import (
	"math"
	"testing"

	"github.com/orrerydb/orrery/core/value"
)

func dec128(t *testing.T, s string) value.Value {
	t.Helper()
	v, ok := value.ParseDecimal(s)
	if !ok {
		t.Fatal(s)
	}
	return v
}

// TestTypes: the kind of a result follows from the operands, and widens if the value doesn't fit.
func TestTypes(t *testing.T) {
	i, l, d := value.Int32Of, value.Int64Of, value.DoubleOf
	for _, c := range []struct {
		op         Op
		a, b, want value.Value
	}{
		{Add, i(1), i(2), i(3)},
		{Add, i(math.MaxInt32), i(1), l(math.MaxInt32 + 1)},
		{Add, i(1), l(2), l(3)},
		{Add, l(1), d(0.5), d(1.5)},
		{Sub, i(math.MinInt32), i(1), l(math.MinInt32 - 1)},
		{Mul, i(1 << 20), i(1 << 20), l(1 << 40)},
		{Mul, l(math.MinInt64), l(1), l(math.MinInt64)},
		{Mul, l(-1), l(math.MaxInt64), l(-math.MaxInt64)},
		{Add, i(1), dec128(t, "0.10"), dec128(t, "1.10")},
		{Mul, dec128(t, "1.5"), i(2), dec128(t, "3.0")},
		{Sub, dec128(t, "Infinity"), dec128(t, "Infinity"), dec128(t, "NaN")},
		{Add, dec128(t, "9999999999999999999999999999999999"), dec128(t, "1"),
			dec128(t, "1.000000000000000000000000000000000E+34")},
	} {
		got, ok := Do(c.op, c.a, c.b)
		if !ok || got.Kind() != c.want.Kind() || value.FormatNumber(got) != value.FormatNumber(c.want) {
			t.Errorf("%v %d %v: %v %s, want %v %s", c.a, c.op, c.b, got.Kind(), value.FormatNumber(got), c.want.Kind(),
				value.FormatNumber(c.want))
		}
	}
	for _, c := range []struct {
		op   Op
		a, b int64
	}{{Add, math.MaxInt64, 1}, {Sub, math.MinInt64, 1}, {Mul, math.MaxInt64, 2}, {Mul, math.MinInt64, -1}} {
		if got, ok := Do(c.op, l(c.a), l(c.b)); ok {
			t.Errorf("%d %d %d: %v", c.a, c.op, c.b, got)
		}
		if got := Widen(c.op, l(c.a), l(c.b)); got.Kind() != value.Double {
			t.Errorf("widened %v", got)
		}
	}
}

func TestDecimalDivision(t *testing.T) {
	for _, c := range [][3]string{{"1", "3", "0.3333333333333333333333333333333333"}, {"6", "2", "3"},
		{"1", "0", "Infinity"}, {"-1", "0", "-Infinity"},
		{"0", "0", "NaN"}, {"1", "8", "0.125"}, {"1E+6000", "1E-6000", "1E+12000"}} {
		want := c[2]
		got := value.DecimalText(Div(dec128(t, c[0]), dec128(t, c[1])))
		if want == "1E+12000" {
			want = "Infinity" // beyond the largest exponent
		}
		if got != want {
			t.Errorf("%s / %s = %s, want %s", c[0], c[1], got, want)
		}
	}
	if got := value.DecimalText(Mod(dec128(t, "-7.5"), dec128(t, "2"))); got != "-1.5" {
		t.Error(got)
	}
}

// The remainder of a division is exact, however different the operands' magnitudes are. A zero keeps its sign.
func TestDecimalFarApart(t *testing.T) {
	for _, c := range [][3]string{{"1E+6111", "7", "6"}, {"1E+200", "7", "2"}, {"5E-300", "2", "5E-300"}} {
		if got := value.DecimalText(Mod(dec128(t, c[0]), dec128(t, c[1]))); got != c[2] {
			t.Errorf("%s %% %s = %s, want %s", c[0], c[1], got, c[2])
		}
	}
	if got := value.DecimalText(Integral(dec128(t, "-0.4"), HalfEven, 0)); got != "-0" {
		t.Error(got)
	}
}

func TestToInt64(t *testing.T) {
	for _, c := range []struct {
		v     value.Value
		trunc bool
		want  int64
		ok    bool
	}{
		{value.DoubleOf(2.9), true, 2, true}, {value.DoubleOf(2.9), false, 0, false},
		{value.DoubleOf(math.NaN()), true, 0, false},
		{value.DoubleOf(9.3e18), true, 0, false}, {value.DoubleOf(-9223372036854775808), false, math.MinInt64, true},
		{dec128(t, "1E+3"), false, 1000, true}, {dec128(t, "-2.5"), true, -2, true},
		{dec128(t, "1E+6000"), true, 0, false},
	} {
		if got, ok := ToInt64(c.v, c.trunc); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %d %v", value.FormatNumber(c.v), got, ok)
		}
	}
}

func TestRounding(t *testing.T) {
	for _, c := range []struct {
		v            value.Value
		mode, places int
		want         string
	}{
		{value.DoubleOf(2.5), HalfEven, 0, "2.0"}, {value.DoubleOf(-2.1), Floor, 0, "-3.0"},
		{value.DoubleOf(2.1), Ceil, 0, "3.0"},
		{value.Int32Of(1250), HalfEven, -2, "1200"}, {value.DoubleOf(1.005), Trunc, 2, "1.0"},
		{dec128(t, "-1.25"), HalfEven, 1, `{"$numberDecimal":"-1.2"}`},
	} {
		if got := value.FormatNumber(Integral(c.v, c.mode, c.places)); got != c.want {
			t.Errorf("%s: %s, want %s", value.FormatNumber(c.v), got, c.want)
		}
	}
}
