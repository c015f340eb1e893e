package value

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"github.com/orrerydb/orrery/core/bson"
)

func mustDec(t testing.TB, s string) Value {
	t.Helper()
	v, ok := ParseDecimal(s)
	if !ok {
		t.Fatalf("%s is no decimal128", s)
	}
	return v
}

// build makes an array (0x04) or object (0x03) from alternating names and values.
func build(t byte, fields ...any) Value {
	b := make([]byte, 4)
	for i := 0; i < len(fields); i += 2 {
		v := fields[i+1].(Value)
		b = append(append(append(b, BSONType(v)), fields[i].(string)...), 0)
		b = AppendBSON(b, v)
	}
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	v, _, _ := ReadValue(t, b)
	return v
}

func show(v Value) string { return string(AppendText(nil, v, CanonicalJSON)) }

// MongoDB's order, from the lowest to the highest value. The values of one line are equal.
func TestCompareBSON(t *testing.T) {
	one := Int32Of(1)
	lines := [][]Value{
		{MinKeyValue()},
		{NullValue(), Undef()},
		{DoubleOf(math.NaN()), mustDec(t, "NaN")},
		{DoubleOf(math.Inf(-1))},
		{Int32Of(0), DoubleOf(math.Copysign(0, -1))},
		{one, Int64Of(1), DoubleOf(1), mustDec(t, "1.0")},
		{StringOf(""), SymbolOf(nil)},
		{StringOf("a"), SymbolOf([]byte("a"))},
		{build(3)},
		{build(3, "z", NullValue())}, // the class of the first value compares before its name
		{build(3, "a", one), build(3, "a", DoubleOf(1))},
		{build(3, "a", one, "b", one)},
		{build(3, "b", one)},
		{build(3, "a", StringOf(""))},
		{build(4)},
		{build(4, "0", one)},
		{build(4, "0", one, "1", one)},
		{build(4, "0", StringOf(""))},
		{BinaryOf(9, []byte{1})},
		{BinaryOf(0, []byte{1, 2})},
		{UUIDOf(make([]byte, 16))}, // a binary of subtype 4
		{BinaryOf(5, make([]byte, 16))},
		{ObjectIDOf([]byte("aaaaaaaaaaaa"))},
		{BoolOf(false)},
		{BoolOf(true)},
		{DateOf(-5, 0)},
		{DateOf(5, 0)},
		{DateOf(5, 1)},
		{TimestampOf(1)},
		{TimestampOf(math.MaxUint64)},
		{RegexOf("a", "i")},
		{RegexOf("b", "")},
		{CodeOf([]byte("x"))},
		{MaxKeyValue()},
	}
	for i, a := range lines {
		for j, b := range lines {
			for _, x := range a {
				for _, y := range b {
					got, want := CompareBSON(x, y), i-j
					if got < 0 != (want < 0) || got > 0 != (want > 0) {
						t.Errorf("CompareBSON(%s, %s) = %d, want the sign of %d", show(x), show(y), got, want)
					}
					if EqualBSON(x, y) != (i == j) {
						t.Errorf("EqualBSON(%s, %s) = %v", show(x), show(y), i != j)
					}
					if i == j && HashBSON(x) != HashBSON(y) {
						t.Errorf("%s and %s are equal and have two hashes", show(x), show(y))
					}
				}
			}
		}
	}
}

// Stored entries contain these hashes, so they never change.
func TestHashesAreStable(t *testing.T) {
	o := build(3, "a", Int32Of(1), "b", StringOf("x"), "c", build(4, "0", DoubleOf(0.5), "1", NullValue()))
	if got := HashCosmos(o); got != hashOfSample {
		t.Errorf("HashCosmos of the sample is %#x", got)
	}
	if a, b := HashCosmos(build(4, "0", Int32Of(1), "1", Int32Of(2))),
		HashCosmos(build(4, "0", Int32Of(2), "1", Int32Of(1))); a == b {
		t.Error("the hash of an array doesn't depend on the order of its elements")
	}
	seen := map[uint64]int{}
	for i := range 10000 { // neighbours don't collide
		h := HashCosmos(build(3, "n", Int32Of(int32(i))))
		if j, dup := seen[h]; dup {
			t.Fatalf("%d and %d have one hash", i, j)
		}
		seen[h] = i
	}
}

// HashDistinct is equal for values that EqualCosmos calls equal, and different for all other frequent values.
func TestHashDistinct(t *testing.T) {
	nan := DoubleOf(math.NaN())
	vs := []Value{nan, mustDec(t, "NaN"), Int32Of(0), Int32Of(1), DoubleOf(1), DoubleOf(math.Inf(1)),
		Int64Of(math.MinInt64), NullValue(), BoolOf(true), StringOf("1"),
		build(4, "0", nan), build(4, "0", Int32Of(1)), build(3, "a", nan), build(3, "a", Int64Of(1)),
		build(3, "a", build(4, "0", nan))}
	for i, a := range vs {
		for _, b := range vs[i:] {
			if (HashDistinct(a) == HashDistinct(b)) != EqualCosmos(a, b) {
				t.Errorf("%s and %s: equal %v, one hash %v", show(a), show(b), EqualCosmos(a, b),
					HashDistinct(a) == HashDistinct(b))
			}
		}
	}
}

const hashOfSample = 0x8e94ef38ba0b1f70

// CompareNumbers agrees with exact arithmetic.
func TestCompareNumbers(t *testing.T) {
	var vs []Value
	for _, i := range []int64{0, 1, -1, 2, 1 << 31, 1<<53 - 1, 1 << 53, 1<<53 + 1, -1<<53 - 1, math.MaxInt64,
		math.MaxInt64 - 1, math.MinInt64} {
		vs = append(vs, Int64Of(i), DoubleOf(float64(i)))
	}
	for _, f := range []float64{0.5, -0.5, 1.5, 0.1, 1e300, -1e300, 5e-324, 1<<63 - 1024, 1 << 63, 1 << 64} {
		vs = append(vs, DoubleOf(f))
	}
	for _, s := range []string{"0.1", "0.5", "-0.5", "1E+30", "9007199254740993", "9007199254740992.5",
		"9223372036854775807.5", "-9223372036854775808",
		"0.1000000000000000055511151231257827", "1E-30", "0", "-0", "1E+300", "1.000"} {
		vs = append(vs, mustDec(t, s))
	}
	for _, a := range vs {
		for _, b := range vs {
			if got, want := CompareNumbers(a, b), ratOf(a).Cmp(ratOf(b)); got != want {
				t.Errorf("CompareNumbers(%s, %s) = %d, want %d", show(a), show(b), got, want)
			}
			if c := Canonical(a); CompareNumbers(a, c) != 0 || CompareNumbers(a, b) == 0 &&
				show(c) != show(Canonical(b)) {
				t.Errorf("the canonical members of %s and %s are %s and %s", show(a), show(b), show(c),
					show(Canonical(b)))
			}
		}
	}
}

func ratOf(v Value) *big.Rat {
	switch v.kind {
	case Decimal:
		var d bson.Decimal
		d.Read(v.b)
		return d.Rat()
	case Double:
		return new(big.Rat).SetFloat64(v.Float())
	}
	return new(big.Rat).SetInt64(v.Int())
}

func TestDecimalText(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "-0", "0.00": "0.00", "1": "1", "+1": "1", "-1.50": "-1.50", "1E3": "1E+3", "12e-1": "1.2", ".5": "0.5", "5.": "5",
		"0.000001": "0.000001", "0.0000001": "1E-7", "12345678901234567890.12345678901234": "12345678901234567890.12345678901234",
		"1E+6144": "1.000000000000000000000000000000000E+6144", "1E-6176": "1E-6176", "0E-7000": "0E-6176", "0E+7000": "0E+6111",
		"10E-6177": "1E-6176", "NaN": "NaN", "inf": "Infinity", "-Infinity": "-Infinity", "9999999999999999999999999999999999": "9999999999999999999999999999999999",
		"99999999999999999999999999999999990": "9.999999999999999999999999999999999E+34",
	} {
		v, ok := ParseDecimal(in)
		if !ok || DecimalText(v) != want {
			t.Errorf("%s is %s (%v), want %s", in, DecimalText(v), ok, want)
		}
	}
	for _, in := range []string{"", "-", ".", "e5", "1e", "1e+", "1.2.3", "x", "1 ", "0x1", "1_0", "1E+6145", "1E-6177",
		"12345678901234567890123456789012345", "1E99999999999"} {
		if v, ok := ParseDecimal(in); ok {
			t.Errorf("%q is accepted as %s", in, DecimalText(v))
		}
	}
	// The two forms that aren't canonical: a coefficient above 34 digits, and the large form. Both are zero.
	big34 := append(bytes.Repeat([]byte{0xFF}, 14), 0x41, 0x30)
	large := make([]byte, 16)
	large[15] = 0x6C
	for _, b := range [][]byte{big34, large} {
		if v := DecimalOf(b); CompareNumbers(v, Int32Of(0)) != 0 {
			t.Errorf("%x is %s, want a zero", b, DecimalText(v))
		}
	}
}

func TestNumberText(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", -1: "-1.0", 1.5: "1.5", -0.25: "-0.25", 129.95: "129.95", 0.30000000000000004: "0.30000000000000004", 1e21: "1e+21", 1e20: "100000000000000000000.0",
		1e-6: "0.000001", 1e-7: "1e-7", 1.5e-10: "1.5e-10", 1e300: "1e+300", 999999999.9999: "999999999.9999", 0.001: "0.001", -0.0001: "-0.0001",
	} {
		if got := string(appendDouble(nil, f)); got != want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
	if got := FormatNumber(DoubleOf(math.Copysign(0, -1))); got != "-0.0" {
		t.Errorf("-0 is %s", got)
	}
	if got := FormatNumber(DoubleOf(math.NaN())); got != `"NaN"` {
		t.Errorf("NaN is %s", got)
	}
}

// FuzzDouble: the text of a double is the shortest one that reads back.
func FuzzDouble(f *testing.F) {
	for _, x := range []float64{0.1, 1e9 - 0.0001, 123456.789, 0.0012, 4.35, 1 << 53, 2.5e-5} {
		f.Add(math.Float64bits(x))
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		for _, x := range []float64{math.Float64frombits(bits), float64(int64(bits)>>20) / 10000,
			float64(int64(bits)>>30) / 100} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				continue
			}
			got := string(appendDouble([]byte("x"), x))[1:]
			if back, err := strconv.ParseFloat(got, 64); err != nil || math.Float64bits(back) != math.Float64bits(x) {
				t.Fatalf("%v is written as %s", x, got)
			}
			digits := func(s string) (n int) {
				s, _, _ = cutExp(s)
				trimmed := bytes.TrimRight(bytes.Trim(bytes.ReplaceAll([]byte(s), []byte("."), nil), "-0"), "0")
				return len(trimmed)
			}
			if want := strconv.FormatFloat(x, 'e', -1, 64); digits(got) > digits(want) {
				t.Fatalf("%v is written as %s, which has more digits than %s", x, got, want)
			}
		}
	})
}

func cutExp(s string) (mant, exp string, ok bool) {
	for i := range len(s) {
		if s[i] == 'e' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// Identical values are equal and have equal hashes. Equal values of other kinds or forms are not identical.
func TestIdentical(t *testing.T) {
	vs := []Value{{}, NullValue(), BoolOf(true), Int32Of(1), Int64Of(1), DoubleOf(1), mustDec(t, "1"),
		mustDec(t, "1.0"), StringOf("1"), SymbolOf([]byte("1")),
		BinaryOf(0, []byte("1")), BinaryOf(5, []byte("1")), DateOf(1, 0), DateOf(1, 1), DoubleOf(0),
		DoubleOf(math.Copysign(0, -1))}
	for i, a := range vs {
		for j, b := range vs {
			if got := Identical(a, b.Clone()); got != (i == j) {
				t.Errorf("%s and %s: %v", show(a), show(b), got)
			}
		}
	}
}

func TestUUIDText(t *testing.T) {
	const s = "00112233-4455-6677-8899-aabbccddeeff"
	b, ok := ParseUUID([]byte(s))
	if !ok || string(AppendUUID(nil, b)) != s {
		t.Errorf("%x %v", b, ok)
	}
	for _, bad := range []string{"", s + "0", "00112233-4455-6677-8899-aabbccddeefg",
		"001122334455-6677-8899-aabbccddeeff00"} {
		if _, ok := ParseUUID([]byte(bad)); ok {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestIdentityText(t *testing.T) {
	for want, class := range map[string][]Value{
		`{"$numberInt":"1"}`:                       {Int32Of(1), Int64Of(1), DoubleOf(1), mustDec(t, "1.00")},
		`{"$numberInt":"0"}`:                       {Int32Of(0), DoubleOf(math.Copysign(0, -1)), mustDec(t, "-0.0")},
		`{"$numberDouble":"0.5"}`:                  {DoubleOf(0.5), mustDec(t, "0.50")},
		`{"$numberDecimal":"0.1"}`:                 {mustDec(t, "0.1"), mustDec(t, "0.100")},
		`{"$numberLong":"4294967296"}`:             {Int64Of(1 << 32), DoubleOf(1 << 32)},
		`"x"`:                                      {StringOf("x"), SymbolOf([]byte("x"))},
		`{"a":{"$numberInt":"1"}}`:                 {build(3, "a", DoubleOf(1)), build(3, "a", Int64Of(1))},
		`{"$date":"1970-01-01T00:00:00.0000001Z"}`: {DateOf(0, 1)},
	} {
		for _, v := range class {
			if got := string(AppendText(nil, v, IdentityJSON)); got != want {
				t.Errorf("%s has the identity %s, want %s", show(v), got, want)
			}
		}
	}
}

// A view of malformed bytes ends early and never panics.
func TestMalformedBytes(t *testing.T) {
	whole := build(3, "a", StringOf("xyz"), "b", build(4, "0", Int32Of(1)), "r", RegexOf("a", "i"), "d",
		mustDec(t, "1"), "c", RawOf(CodeScope, make([]byte, 20))).b
	for n := range whole {
		for _, b := range [][]byte{whole[:n], slices.Concat(whole[:n], []byte{0xFF, 0xFF, 0xFF}, whole[n:])} {
			o := ObjectOf(b)
			for it := o.Iter(); it.Next(); {
				show(it.Value())
			}
			o.Get("zz")
			AppendText(nil, o, PlainJSON)
			HashBSON(o)
			CompareBSON(o, ObjectOf(whole))
			CompareCosmos(o, ObjectOf(whole))
		}
	}
	RawOf(Regex, []byte("a\x00")).RegexParts()
	RawOf(CodeScope, make([]byte, 13)).CodeScopeParts()
	show(DecimalOf(nil))
	// A binary of the reserved subtype that isn't a date stays a binary.
	if v := BinaryOf(SubtypeTicks, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF}); v.Kind() != Binary {
		t.Errorf("65535 ticks are a date")
	}
}

// TestLookupEach: it finds what Lookup finds, in whole documents and in damaged ones.
func TestLookupEach(t *testing.T) {
	d := AppendElement(AppendElement([]byte{0, 0, 0, 0}, "a", Int64Of(1)), "bc", StringOf("two"))
	d = AppendElement(AppendElement(d, "a", Int64Of(3)), "", BoolOf(true))
	d = AppendElement(d, "o", ObjectOf([]byte{5, 0, 0, 0, 0}))
	d = append(d, 0)
	for _, names := range [][]string{{"a"}, {"bc", "a"}, {"o", "b", "a", "bc", ""}, {"no"}, {}} {
		for n := range len(d) + 1 {
			out := make([]Value, len(names))
			for i := range out {
				out[i] = BoolOf(true)
			}
			LookupEach(d[:n], names, out)
			for i, name := range names {
				want := Lookup(d[:n], name)
				if out[i].Kind() != want.Kind() || !bytes.Equal(out[i].Bytes(), want.Bytes()) ||
					want.Kind() == Int64 && out[i].Int() != want.Int() {
					t.Errorf("%q of %d bytes: %v, want %v", name, n, out[i], want)
				}
			}
		}
	}
}
