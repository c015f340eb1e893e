package bson

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

func mustDecimal(t testing.TB, s string) *Decimal {
	t.Helper()
	x := new(Decimal)
	if !x.Parse(s) {
		t.Fatalf("%s is no decimal128", s)
	}
	return x
}

func text(x *Decimal) string { return string(x.AppendText(nil)) }

// TestDecimalAsDriver: the official driver prints the same text for the same bytes, and reads the same bytes from it.
func TestDecimalAsDriver(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		hi, lo := r.Uint64(), r.Uint64()
		switch r.IntN(4) {
		case 0: // few digits near exponent 0
			hi, lo = uint64(decimalExpBias+r.IntN(60)-30)<<49|hi&(1<<63), lo>>r.IntN(64)
		case 1: // near the ends of the exponent's range
			hi = uint64(r.IntN(40))<<49 | uint64(r.IntN(2)*12247)<<49 | hi&(1<<63)
		}
		b := driver.NewDecimal128(hi, lo)
		var x Decimal
		x.Read(leBytes(hi, lo))
		if x.IsNaN() || hi>>61&3 == 3 || x.d.Coeff.Sign() == 0 && (lo != 0 || hi<<15 != 0) {
			continue // NaN has many forms; coefficients above 34 digits are zero, and the driver shows them
		}
		if got, want := text(&x), b.String(); got != want {
			t.Fatalf("%x %x is %s, want %s", hi, lo, got, want)
		}
		if got := x.Append(nil); !bytes.Equal(got, leBytes(hi, lo)) {
			t.Fatalf("%s is %x, was %x %x", text(&x), got, hi, lo)
		}
		again, err := driver.ParseDecimal128(text(&x))
		h, l := again.GetBytes()
		if y := mustDecimal(t, text(&x)); err != nil || !bytes.Equal(y.Append(nil), leBytes(h, l)) {
			t.Fatalf("%s is read as %s, want %s %v", text(&x), text(y), again, err)
		}
	}
}

func leBytes(hi, lo uint64) []byte {
	b := make([]byte, 16)
	for i := range 8 {
		b[i], b[i+8] = byte(lo>>(8*i)), byte(hi>>(8*i))
	}
	return b
}

// rounded returns the decimal of 34 digits nearest to v, half to even.
func rounded(t *testing.T, v *big.Rat) *Decimal {
	x := new(Decimal)
	if v.Sign() == 0 {
		return x
	}
	abs := new(big.Rat).Abs(v)
	exp := len(abs.Num().Text(10)) - len(abs.Denom().Text(10)) - DecimalDigits - 1
	for limit := new(big.Rat).SetInt(pow10(DecimalDigits).MathBigInt()); ; exp++ {
		q := new(big.Rat).Quo(abs, scale(exp))
		if q.Cmp(limit) >= 0 {
			continue
		}
		n, rest := new(big.Int).QuoRem(q.Num(), q.Denom(), new(big.Int))
		if half := rest.Lsh(rest, 1).Cmp(q.Denom()); half > 0 || half == 0 && n.Bit(0) == 1 {
			n.Add(n, big.NewInt(1))
		}
		if !x.Set(v.Sign() < 0, n, exp) {
			t.Fatalf("%s isn't rounded", v)
		}
		return x
	}
}

func scale(exp int) *big.Rat {
	p := new(big.Rat).SetInt(pow10(max(exp, -exp)).MathBigInt())
	if exp < 0 {
		p.Inv(p)
	}
	return p
}

// TestDecimalArithmetic compares sums, products and quotients of random decimals with rational numbers.
func TestDecimalArithmetic(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func() *Decimal {
		n := new(big.Int).SetUint64(r.Uint64() >> r.IntN(64))
		if r.IntN(2) == 0 { // up to 34 digits
			n.Mul(n, big.NewInt(r.Int64N(1e14)))
		}
		x := new(Decimal)
		if !x.Set(r.IntN(2) == 0, n, r.IntN(40)-20) {
			t.Fatal(n)
		}
		return x
	}
	for range 2000 {
		x, y := random(), random()
		var z Decimal
		for _, c := range []struct {
			name  string
			do    func(x, y *Decimal)
			exact func(x, y *big.Rat) *big.Rat
		}{
			{"+", z.Add, new(big.Rat).Add}, {"-", z.Sub, new(big.Rat).Sub}, {"*", z.Mul, new(big.Rat).Mul},
			{"/", z.Quo, new(big.Rat).Quo},
		} {
			if c.name == "/" && y.Sign() == 0 {
				continue
			}
			c.do(x, y)
			if want := rounded(t, c.exact(x.Rat(), y.Rat())); z.Cmp(want) != 0 {
				t.Fatalf("%s %s %s = %s, want %s", text(x), c.name, text(y), text(&z), text(want))
			}
		}
		if y.Sign() == 0 {
			continue
		}
		z.Rem(x, y)
		q := new(big.Rat).Quo(x.Rat(), y.Rat())
		whole := new(big.Rat).SetInt(new(big.Int).Quo(q.Num(), q.Denom()))
		if want := new(big.Rat).Sub(x.Rat(), whole.Mul(whole, y.Rat())); z.Rat().Cmp(want) != 0 {
			t.Fatalf("%s %% %s = %s, want %s", text(x), text(y), text(&z), want)
		}
	}
}

func TestDecimalCases(t *testing.T) {
	for _, c := range []struct {
		x, op, y, want string
	}{
		{"0.10", "+", "1", "1.10"}, {"1.5", "*", "2", "3.0"}, {"Infinity", "-", "Infinity", "NaN"},
		{"NaN", "+", "1", "NaN"},
		{"9999999999999999999999999999999999", "+", "1", "1.000000000000000000000000000000000E+34"},
		{"1E+6144", "*", "10", "Infinity"}, {"-1E+6144", "*", "10", "-Infinity"},
		{"1E-6176", "*", "0.1", "0E-6176"},
		{"1E+6111", "+", "1E-6176", "1.000000000000000000000000000000000E+6111"},
		{"1", "/", "3", "0.3333333333333333333333333333333333"},
		{"2", "/", "3", "0.6666666666666666666666666666666667"},
		{"6", "/", "2", "3"}, {"1", "/", "8", "0.125"}, {"1", "/", "0", "Infinity"}, {"-1", "/", "0", "-Infinity"},
		{"0", "/", "0", "NaN"},
		{"1", "/", "Infinity", "0"}, {"Infinity", "/", "-2", "-Infinity"}, {"1E+6000", "/", "1E-6000", "Infinity"},
		{"100", "/", "1E+1", "10.0"},
		{"-7.5", "%", "2", "-1.5"}, {"7.5", "%", "Infinity", "7.5"}, {"1", "%", "0", "NaN"},
		{"1E+6111", "%", "7", "6"}, {"1E-6176", "%", "1E+6111", "1E-6176"},
		{"-1.25", "round", "1", "-1.2"}, {"1.35", "round", "1", "1.4"}, {"1250", "round", "-2", "1.2E+3"},
		{"0.5", "round", "0", "0"}, {"0.6", "round", "0", "1"},
		{"0.05", "round", "0", "0"}, {"-1.29", "trunc", "1", "-1.2"}, {"1.2", "trunc", "5", "1.2"},
		{"9.99", "round", "1", "10.0"},
		{"-0.001", "floor", "", "-1"}, {"0.001", "ceil", "", "1"}, {"-2.5", "ceil", "", "-2"},
		{"2.5", "floor", "", "2"}, {"1E+3", "ceil", "", "1E+3"},
		{"Infinity", "floor", "", "Infinity"}, {"NaN", "round", "0", "NaN"},
		// The digits are those of Python's decimal with a precision of 34.
		{"4", "sqrt", "", "2"}, {"4.00", "sqrt", "", "2.0"}, {"100", "sqrt", "", "10"}, {"0.25", "sqrt", "", "0.5"},
		{"2", "sqrt", "", "1.414213562373095048801688724209698"},
		{"1E+3", "sqrt", "", "31.62277660168379331998893544432719"},
		{"1E-6176", "sqrt", "", "1E-3088"}, {"-1", "sqrt", "", "NaN"}, {"0.00", "sqrt", "", "0.0"},
		{"Infinity", "sqrt", "", "Infinity"}, {"NaN", "sqrt", "", "NaN"},
		{"0", "exp", "", "1"}, {"1", "exp", "", "2.718281828459045235360287471352662"},
		{"-1.5", "exp", "", "0.2231301601484298289332804707640125"},
		{"14149", "exp", "", "6.801809260978894125530050851897730E+6144"},
		{"20000", "exp", "", "Infinity"}, {"-20000", "exp", "", "0E-6176"}, {"-1E+6000", "exp", "", "0E-6176"},
		{"-Infinity", "exp", "", "0"}, {"NaN", "exp", "", "NaN"},
		{"1", "ln", "", "0"}, {"10", "ln", "", "2.302585092994045684017991454684364"},
		{"1E-6176", "ln", "", "-14220.76553433122614449511522413063"},
		{"1.000000000000000000000000000000001", "ln", "", "9.999999999999999999999999999999995E-34"},
		{"0", "ln", "", "-Infinity"}, {"-1", "ln", "", "NaN"},
		{"1000", "log10", "", "3"}, {"2", "log10", "", "0.3010299956639811952137388947244930"},
		{"1E-6176", "log10", "", "-6176"},
		{"8", "log", "2", "3"}, {"9", "log", "3", "2"},
		{"10", "log", "3", "2.095903274289384604296567522021401"}, {"1", "log", "7", "0"},
		{"2", "pow", "10", "1024"}, {"1.10", "pow", "2", "1.2100"},
		{"2", "pow", "0.5", "1.414213562373095048801688724209698"},
		{"2", "pow", "-2", "0.25"}, {"10", "pow", "33", "1000000000000000000000000000000000"},
		{"-2", "pow", "3", "-8"},
		{"-2", "pow", "0.5", "NaN"}, {"0", "pow", "0", "1"}, {"0", "pow", "3", "0"}, {"-0", "pow", "3", "-0"},
		{"NaN", "pow", "0", "1"}, {"NaN", "pow", "1", "NaN"}, {"1", "pow", "1E+6000", "1"},
		{"1.5", "pow", "1E+6000", "Infinity"}, {"1.5", "pow", "-1E+6000", "0E-6176"},
		{"10", "pow", "7000", "Infinity"},
		{"-10", "pow", "7001", "-Infinity"}, {"Infinity", "pow", "-1", "0"}, {"2", "pow", "Infinity", "Infinity"},
		{"0.5", "pow", "Infinity", "0"}, {"-Infinity", "pow", "3", "-Infinity"}, {"-1", "pow", "1E+10", "1"},
		{"-1", "pow", "3", "-1"},
		{"1.000000000000000000000000000000001", "pow", "1E+34", "22026.46579480671651695790064528413"},
	} {
		x, z := mustDecimal(t, c.x), new(Decimal)
		y, places := new(Decimal), 0
		if c.y != "" {
			y = mustDecimal(t, c.y)
			if i, ok := y.Int64(); ok {
				places = int(i)
			}
		}
		map[string]func(){
			"+": func() { z.Add(x, y) }, "-": func() { z.Sub(x, y) }, "*": func() { z.Mul(x, y) },
			"/": func() { z.Quo(x, y) }, "%": func() { z.Rem(x, y) },
			"round": func() { z.Round(x, places) }, "trunc": func() { z.Trunc(x, places) },
			"floor": func() { z.Floor(x) }, "ceil": func() { z.Ceil(x) },
			"sqrt": func() { z.Sqrt(x) }, "exp": func() { z.Exp(x) }, "ln": func() { z.Ln(x) },
			"log10": func() { z.Log10(x) }, "log": func() { z.Log(x, y) }, "pow": func() { z.Pow(x, y) },
		}[c.op]()
		if got := text(z); got != c.want {
			t.Errorf("%s %s %s = %s, want %s", c.x, c.op, c.y, got, c.want)
		}
		var back Decimal
		if back.Read(z.Append(nil)); text(&back) != c.want {
			t.Errorf("%s is stored as %s", c.want, text(&back))
		}
	}
}

func TestDecimalInt64(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "-0.00": 0, "0E+6000": 0, "1E+3": 1000, "-1.50E+1": -15,
		"9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63, "1.0": 1} {
		if got, ok := mustDecimal(t, in).Int64(); !ok || got != want {
			t.Errorf("%s is %d %v", in, got, ok)
		}
	}
	for _, in := range []string{"0.5", "9223372036854775808", "-9223372036854775809", "1E+19", "NaN",
		"-Infinity", "1E+6000", "1E-6000"} {
		if got, ok := mustDecimal(t, in).Int64(); ok {
			t.Errorf("%s is %d", in, got)
		}
	}
}
