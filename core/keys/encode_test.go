package keys

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

func dec(t testing.TB, s string) value.Value {
	t.Helper()
	v, ok := value.ParseDecimal(s)
	if !ok {
		t.Fatalf("%s is no decimal128", s)
	}
	return v
}

// build builds an array (t 0x04) or an object (t 0x03) from alternating names and values.
func build(t byte, fields ...any) value.Value {
	b := make([]byte, 4)
	for i := 0; i < len(fields); i += 2 {
		v := fields[i+1].(value.Value)
		b = append(append(append(b, value.BSONType(v)), fields[i].(string)...), 0)
		b = value.AppendBSON(b, v)
	}
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	v, _, _ := value.ReadValue(t, b)
	return v
}

func object(fields ...any) value.Value { return build(0x03, fields...) }

func array(vs ...value.Value) value.Value {
	var fields []any
	for i, v := range vs {
		fields = append(fields, string(rune('0'+i)), v)
	}
	return build(0x04, fields...)
}

func text(v value.Value) string { return string(value.AppendText(nil, v, value.CanonicalJSON)) }

// ladder returns values in ascending Cosmos order. The values of one rung are equal.
func ladder(t testing.TB) [][]value.Value {
	i32, i64, f, str := value.Int32Of, value.Int64Of, value.DoubleOf, value.StringOf
	d := func(s string) value.Value { return dec(t, s) }
	oid := func(s string) value.Value { return value.ObjectIDOf([]byte(s)) }
	return [][]value.Value{
		{value.MinKeyValue()},
		{value.Undef()},
		{value.NullValue()},
		{value.BoolOf(false)},
		{value.BoolOf(true)},
		{f(math.NaN()), d("NaN")},
		{f(math.Inf(-1)), d("-Infinity")},
		{d("-9E+6000")},
		{f(-math.MaxFloat64)},
		{f(-1 << 63), i64(math.MinInt64), d("-9223372036854775808")},
		{i64(math.MinInt64 + 1), d("-9223372036854775807")},
		{i64(-1<<53 - 1)},
		{i64(-1 << 53), f(-1 << 53)},
		{f(-1.5), d("-1.5"), d("-1.50")},
		{i32(-1), i64(-1), f(-1), d("-1"), d("-1.000")},
		{f(-0.1)}, // -0.1000000000000000055
		{d("-0.1")},
		{d("-1E-6000")},
		{i32(0), i64(0), f(0), f(math.Copysign(0, -1)), d("0"), d("-0.00")},
		{d("1E-6000")},
		{f(5e-324)},
		{d("0.1")},
		{f(0.1)},
		{i32(1), i64(1), f(1), d("1.0")},
		{d("1.000000000000000000000000000000001")},
		{d("1.00000000000000001")},
		{f(math.Nextafter(1, 2))},
		{i32(math.MaxInt32)},
		{i64(1 << 53)},
		{i64(1<<53 + 1), d("9007199254740993")},
		{d("9007199254740993.5")},
		{i64(1<<53 + 2), f(1<<53 + 2)},
		{i64(math.MaxInt64 - 1)},
		{i64(math.MaxInt64), d("9223372036854775807")},
		{f(1 << 63), d("9223372036854775808")},
		{f(math.MaxFloat64)},
		{d("9E+6000")},
		{f(math.Inf(1)), d("Infinity")},
		{str("")},
		{str("\x00")},
		{str("\x00\x00")},
		{str("\x00\x01")},
		{str("\x00\xff")},
		{str("\x01")},
		{str("a"), value.SymbolOf([]byte("a"))},
		{str("a\x00")},
		{str("a\x00b")},
		{str("aa")},
		{str("b")},
		{str("\u00e4")},
		{str("\U0001F600")},
		{array()},
		{array(value.NullValue())},
		{array(i32(1)), array(f(1))},
		{array(i32(1), str("x"))},
		{array(i32(2))},
		{array(array())},
		{object()},
		{object("a", i32(1)), object("a", d("1.0"))},
		{object("a", i32(2))},
		{object("b", i32(0))},
		{value.UUIDOf(make([]byte, 16))},
		{value.UUIDOf([]byte("0123456789abcdef"))},
		{value.BinaryOf(0, nil)},
		{value.BinaryOf(0, []byte{0})},
		{value.BinaryOf(0, []byte{255})},
		{value.BinaryOf(5, []byte{0})},
		{value.BinaryOf(0, []byte{0, 0})},
		{oid("aaaaaaaaaaaa")},
		{oid("aaaaaaaaaaab")},
		{value.DateOf(math.MinInt64, 0)},
		{value.DateOf(-1, 0)},
		{value.DateOf(-1, 9999)},
		{value.DateOf(0, 0)},
		{value.DateOf(0, 1)},
		{value.DateOf(math.MaxInt64, 0)},
		{value.TimestampOf(0)},
		{value.TimestampOf(1 << 63)},
		{value.RegexOf("a", "")},
		{value.RegexOf("a", "i")},
		{value.RegexOf("ab", "")},
		{value.RawOf(value.DBPointer, append([]byte{2, 0, 0, 0, 'c', 0}, "aaaaaaaaaaaa"...))},
		{value.CodeOf([]byte("a"))},
		{value.CodeOf([]byte("b"))},
		{codeScope("a", object("x", i32(1))), codeScope("a", object("x", f(1)))},
		{codeScope("a", object("x", i32(2)))},
		{value.MaxKeyValue()},
	}
}

func codeScope(code string, scope value.Value) value.Value {
	b := binary.LittleEndian.AppendUint32(nil, uint32(9+len(code)+len(scope.Bytes())))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(code)+1))
	b = append(append(b, code...), 0)
	return value.RawOf(value.CodeScope, append(b, scope.Bytes()...))
}

func sign(i int) int {
	switch {
	case i < 0:
		return -1
	case i > 0:
		return 1
	}
	return 0
}

// Each rung of the ladder is compared with each other rung: order, equality and hash of values, order of both
// encodings.
func TestLadder(t *testing.T) {
	type entry struct {
		rung  int
		v     value.Value
		exact []byte
		index []byte
		lossy bool
	}
	var all []entry
	for i, rung := range ladder(t) {
		for _, v := range rung {
			e := entry{rung: i, v: v, exact: AppendExact(nil, v)}
			e.index, e.lossy = AppendIndex(nil, v)
			all = append(all, e)
		}
	}
	for _, a := range all {
		for _, b := range all {
			want := sign(a.rung - b.rung)
			if got := sign(value.CompareCosmos(a.v, b.v)); got != want {
				t.Errorf("CompareCosmos(%s, %s) = %d, want %d", text(a.v), text(b.v), got, want)
			}
			if got := value.EqualCosmos(a.v, b.v); got != (want == 0) {
				t.Errorf("EqualCosmos(%s, %s) = %v", text(a.v), text(b.v), got)
			}
			if want == 0 && value.HashCosmos(a.v) != value.HashCosmos(b.v) {
				t.Errorf("%s and %s are equal and have two hashes", text(a.v), text(b.v))
			}
			if eq := value.EqualBSON(a.v, b.v); eq && value.HashBSON(a.v) != value.HashBSON(b.v) {
				t.Errorf("%s and %s are equal in BSON and have two hashes", text(a.v), text(b.v))
			}
			if got := sign(bytes.Compare(a.exact, b.exact)); got != want {
				t.Errorf("exact: %s %x against %s %x = %d, want %d", text(a.v), a.exact, text(b.v), b.exact, got, want)
			}
			got := sign(bytes.Compare(a.index, b.index))
			switch {
			case want == 0 && got != 0, !a.lossy && !b.lossy && got != want:
				t.Errorf("index: %s %x against %s %x = %d, want %d", text(a.v), a.index, text(b.v), b.index, got, want)
			case want != 0 && a.v.Class() != b.v.Class() && got != want:
				t.Errorf("index: %s against %s: the classes are out of order", text(a.v), text(b.v))
			}
		}
	}
}

func checkExact(t *testing.T, v value.Value) {
	t.Helper()
	b := AppendExact([]byte("head"), v)[4:]
	long := append(bytes.Clone(b), "rest"...)
	got, rest, err := DecodeExact(long)
	if err != nil || string(rest) != "rest" || v.Class() != got.Class() || !value.EqualBSON(v, got) {
		t.Fatalf("%s reads back as %s, rest %q (%v)", text(v), text(got), rest, err)
	}
	if again := AppendExact(nil, got); !bytes.Equal(again, b) {
		t.Fatalf("%s: encoded %x, decoded and encoded %x", text(v), b, again)
	}
	for _, k := range []epk.Kind{epk.V1, epk.V2, epk.MultiHash} { // equal identities have equal placements
		a, b := epk.Place(nil, k, []value.Value{v}), epk.Place(nil, k, []value.Value{got})
		if !bytes.Equal(a, b) {
			t.Fatalf("%s is placed at %x, read back at %x", text(v), a, b)
		}
	}
	if rest, err := SkipExact(long); err != nil || string(rest) != "rest" {
		t.Fatalf("%s: SkipExact leaves %q (%v)", text(v), rest, err)
	}
	for n := range b { // no prefix is a whole value
		if _, err := SkipExact(b[:n]); !status.Is(err, status.Corruption) {
			t.Fatalf("%s: the first %d of %d bytes are accepted", text(v), n, len(b))
		}
	}
}

func TestExactRoundTrip(t *testing.T) {
	for _, rung := range ladder(t) {
		for _, v := range rung {
			checkExact(t, v)
		}
	}
	checkExact(t, value.StringOf(strings.Repeat("long\x00", 1000)))
	checkExact(t, object("a", array(object(), object("x", value.StringOf("\x00")))))
	if got, _, _ := DecodeExact(AppendExact(nil, value.DoubleOf(1))); got.Kind() != value.Int32 {
		t.Errorf("1.0 comes back as kind %d, want the canonical Int32", got.Kind())
	}
}

// The order of an object's fields is significant in BSON, but not in Cosmos.
func TestFieldOrder(t *testing.T) {
	one, two := value.Int32Of(1), value.Int32Of(2)
	a, b := object("x", one, "y", two), object("y", two, "x", one)
	if !value.EqualCosmos(a, b) || value.HashCosmos(a) != value.HashCosmos(b) {
		t.Error("Cosmos tells objects by the order of their fields")
	}
	if value.EqualBSON(a, b) || bytes.Equal(AppendExact(nil, a), AppendExact(nil, b)) {
		t.Error("BSON doesn't tell objects by the order of their fields")
	}
	x, _ := AppendIndex(nil, a)
	if y, _ := AppendIndex(nil, b); !bytes.Equal(x, y) {
		t.Error("the index tells objects by the order of their fields")
	}
}

// Strings and binaries above 256 bytes are cut. They sort by the kept part, between their neighbours, and differ by
// their hash.
func TestCutIndexEntries(t *testing.T) {
	p := strings.Repeat("p", cutAt)
	asc := []string{p[:255], p, p + "\x00", p[:255] + "q", p[:255] + "q" + "x"}
	var last []byte
	for i, s := range asc {
		b, lossy := AppendIndex(nil, value.StringOf(s))
		if lossy != (len(s) > cutAt) || bytes.Compare(last, b) >= 0 {
			t.Errorf("%d: lossy %v, or out of order", i, lossy)
		}
		last = b
	}
	x, _ := AppendIndex(nil, value.StringOf(p+"x"))
	y, _ := AppendIndex(nil, value.StringOf(p+"y"))
	if bytes.Equal(x, y) || len(x) != 1+cutAt+2+8 {
		t.Errorf("cut entries: %d bytes, equal %v", len(x), bytes.Equal(x, y))
	}
	if b, lossy := AppendIndex(nil, value.BinaryOf(0, make([]byte, 1000))); !lossy || len(b) != 1+4+1+cutAt+8 {
		t.Errorf("a long binary: lossy %v, %d bytes", lossy, len(b))
	}
}

// The item number after an entry doesn't change the order of entries: their encodings are self-delimiting.
func TestIndexDelimitsItself(t *testing.T) {
	vs := []value.Value{value.StringOf(strings.Repeat("x\x00", 300)), value.BinaryOf(0, make([]byte, 300)),
		value.BinaryOf(9, make([]byte, 30))}
	for _, rung := range ladder(t) {
		vs = append(vs, rung...)
	}
	for _, v := range vs {
		b, _ := AppendIndex(nil, v)
		rest, err := skipIndex(append(bytes.Clone(b), "\xff\x00number"...))
		if err != nil || string(rest) != "\xff\x00number" {
			t.Errorf("%s: SkipIndex leaves %q (%v)", text(v), rest, err)
		}
		for n := range b {
			if _, err := skipIndex(b[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes are accepted", text(v), n, len(b))
			}
		}
	}
	if rest, err := skipIndex([]byte{value.ClassAny, 7}); err != nil || len(rest) != 1 {
		t.Errorf("the entry for any value: %v (%v)", rest, err)
	}
}

func TestStringPrefix(t *testing.T) {
	for _, p := range []string{"", "a", "a\x00", strings.Repeat("a", 300)} {
		b, _ := AppendIndex(nil, value.StringOf(p+"tail"))
		if !bytes.HasPrefix(b, AppendStringPrefix(nil, []byte(p))) {
			t.Errorf("the entry of %.5q... doesn't begin with the bytes of its prefix", p)
		}
	}
}

func TestClassRange(t *testing.T) {
	for _, rung := range ladder(t) {
		for _, v := range rung {
			lo, hi := ClassRange(Class(v))
			if b := AppendExact(nil, v); bytes.Compare(b, lo) < 0 || bytes.Compare(b, hi) >= 0 {
				t.Errorf("%s is out of the range of its class", text(v))
			}
		}
	}
}

// valueOf makes a value from fuzz bytes.
func valueOf(kind uint8, n int64, s []byte) value.Value {
	switch kind % 12 {
	case 0:
		return value.Int64Of(n)
	case 1:
		return value.DoubleOf(math.Float64frombits(uint64(n)))
	case 2:
		return value.StringBytes(s)
	case 3:
		return value.DateOf(n, uint16(len(s)%10000))
	case 4:
		return value.BinaryOf(byte(n), s)
	case 5:
		return value.TimestampOf(uint64(n))
	case 6:
		return value.IntOf(int64(int32(n)))
	case 7:
		b := make([]byte, 16)
		binary.LittleEndian.PutUint64(b[8:], uint64(n))
		copy(b[:8], s)
		return value.DecimalOf(b)
	case 8:
		return array(value.StringBytes(s), value.Int64Of(n))
	case 9:
		return object("k", value.StringBytes(s), "n", value.DoubleOf(float64(n)))
	case 10:
		return value.BoolOf(n > 0)
	}
	return value.DoubleOf(float64(n))
}

// FuzzOrder: encodings have the order of their values.
func FuzzOrder(f *testing.F) {
	f.Add(uint8(0), int64(1), []byte("a"), uint8(1), int64(2), []byte("a\x00"))
	f.Add(uint8(2), int64(0), []byte(strings.Repeat("a", 300)), uint8(2), int64(0), []byte(strings.Repeat("a", 301)))
	f.Add(uint8(7), int64(0x3040000000000000), []byte{5}, uint8(7), int64(0x3041000000000000), []byte{7, 7})
	f.Add(uint8(0), int64(1<<53+1), []byte{}, uint8(11), int64(1<<53), []byte{})
	f.Add(uint8(7), int64(0x2FFE314DC6448D93), []byte{1, 2, 3, 4, 5, 6, 7, 8}, uint8(0), int64(1), []byte{})
	f.Fuzz(func(t *testing.T, ka uint8, na int64, sa []byte, kb uint8, nb int64, sb []byte) {
		a, b := valueOf(ka, na, sa), valueOf(kb, nb, sb)
		want := sign(value.CompareCosmos(a, b))
		if back := sign(value.CompareCosmos(b, a)); back != -want {
			t.Fatalf("compare %s, %s: %d one way, %d the other", text(a), text(b), want, back)
		}
		if want == 0 && value.HashCosmos(a) != value.HashCosmos(b) {
			t.Fatalf("%s and %s are equal and have two hashes", text(a), text(b))
		}
		if a.Kind() != value.Object || b.Kind() != value.Object {
			if got := sign(bytes.Compare(AppendExact(nil, a), AppendExact(nil, b))); got != want {
				t.Fatalf("exact: %s against %s: %d, want %d", text(a), text(b), got, want)
			}
		}
		checkExact(t, a)
		if a.Kind() == value.Array || a.Kind() == value.Object {
			return
		}
		x, lossyA := AppendIndex(nil, a)
		y, lossyB := AppendIndex(nil, b)
		if got := sign(bytes.Compare(x, y)); want == 0 && got != 0 || !lossyA && !lossyB && got != want {
			t.Fatalf("index: %s against %s: %d, want %d", text(a), text(b), got, want)
		}
		// The floor of a is a bound for all values not below a, and for all values not above it.
		floor, _ := AppendIndexFloor(nil, a)
		switch {
		case want <= 0 && bytes.Compare(y, floor) < 0:
			t.Fatalf("%s is not below %s, its entry is below the floor", text(b), text(a))
		case want >= 0 && bytes.Compare(y, floor) > 0 && !bytes.HasPrefix(y, floor):
			t.Fatalf("%s is not above %s, its entry is above the floor", text(b), text(a))
		}
	})
}

// FuzzDecode: the decoders don't panic on any bytes, and encode what they accept to the same bytes.
func FuzzDecode(f *testing.F) {
	for _, rung := range ladder(f) {
		f.Add(AppendExact(nil, rung[0]))
		b, _ := AppendIndex(nil, rung[0])
		f.Add(b)
	}
	f.Add(bytes.Repeat([]byte{value.ClassArray}, 5000))
	f.Fuzz(func(t *testing.T, b []byte) {
		skipIndex(b)
		for k := value.Undefined; k <= value.MaxKey; k++ {
			DecodeIndex(b, k)
		}
		v, _, err := DecodeExact(b)
		if err == nil {
			text(v)
			AppendExact(nil, v)
		}
	})
}

func BenchmarkAppendIndex(b *testing.B) {
	vs := []value.Value{value.Int32Of(5), value.DoubleOf(1.5), value.StringOf("order-000017"), value.BoolOf(true)}
	dst := make([]byte, 0, 100)
	b.ReportAllocs()
	for b.Loop() {
		for _, v := range vs {
			AppendIndex(dst, v)
		}
	}
}

// TestDecodeIndex: an index encoding and the kind give the value back, in its kind. A kind that doesn't match gives
// nothing.
func TestDecodeIndex(t *testing.T) {
	for _, v := range []value.Value{value.NullValue(), value.BoolOf(false), value.BoolOf(true), value.Int32Of(0),
		value.Int32Of(-7), value.Int32Of(math.MaxInt32),
		value.Int64Of(3), value.Int64Of(1<<53 + 1), value.Int64Of(math.MaxInt64), value.Int64Of(math.MinInt64),
		value.Int64Of(-(1<<60 + 3)), value.DoubleOf(0), value.DoubleOf(2),
		value.DoubleOf(-0.1), value.DoubleOf(1e300), value.DoubleOf(math.Inf(-1)), value.StringOf(""),
		value.StringOf("a\x00b"), value.StringOf(strings.Repeat("x", 256)),
		value.UUIDOf([]byte("abcdefghijklmnop")), value.ObjectIDOf([]byte("abcdefghijkl")), value.DateOf(-5, 0),
		value.DateOf(5, 9), value.TimestampOf(1 << 40)} {
		e, lossy := AppendIndex(nil, v)
		got, ok := DecodeIndex(e, v.Kind())
		if lossy || !ok || got.Kind() != v.Kind() || !value.EqualBSON(got, v) {
			t.Errorf("%v of kind %d: %v of kind %d, %v", v, v.Kind(), got, got.Kind(), ok)
		}
	}
	long, _ := AppendIndex(nil, value.StringOf(strings.Repeat("x", 257)))
	half, _ := AppendIndex(nil, value.DoubleOf(0.5))
	large, _ := AppendIndex(nil, value.Int64Of(1<<53+1))
	for _, x := range []struct {
		b []byte
		k value.Kind
	}{{nil, value.Null}, {long, value.String}, {large, value.Double}, {large, value.Int32}, {half[:5], value.Double},
		{half, value.Decimal}, {half, value.String}, {large[:12], value.Int64}, {half, value.Object}} {
		if v, ok := DecodeIndex(x.b, x.k); ok {
			t.Errorf("%x as kind %d: %v", x.b, x.k, v)
		}
	}
}
