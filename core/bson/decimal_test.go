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
		{"1E+6144", "*", "10", "Infinity"}, {"-1E+6144", "*", "10", "-Infinity"}, {"1E-6176", "*", "0.1", "0E-6176"},
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
