package epk

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/value"
)

var (
	str  = value.StringOf
	num  = value.DoubleOf
	null = value.NullValue()
)

// TestVectors: keys that the service's SDKs compute; V1 in the form of .NET.
func TestVectors(t *testing.T) {
	a100 := strings.Repeat("62", 100) + "00"
	for _, c := range []struct {
		name   string
		v      value.Value
		v1, v2 string // "" = not known
	}{
		{"redmond", str("redmond"), "05C1EFE313830C087366656E706F6500", "22E342F38A486A088463DFF7838A5963"},
		{"partitionKey", str("partitionKey"), "05C1E1B3D9CD2608716273756A756A706F4C667A00", ""},
		{"empty", str(""), "05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0"},
		{"aa", str("aa"), "05C1C7B7270FE008626200", "05033626483AE80D00E44FBD35362B19"},
		{"a x 110", str(strings.Repeat("a", 110)), "05C1EB5921F70608" + a100, "0BA3E9CA8EE4C14538828D1612A4B652"},
		{"a x 101", str(strings.Repeat("a", 101)), "05C1EB5921F70608" + a100, "08042541D30C8BF90D7092B1519AE0BC"},
		{"null", null, "05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16"},
		{"true", value.BoolOf(true), "05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59"},
		{"false", value.BoolOf(false), "05C1DB857D857C02", "2FE1BE91E90A3439635E0E9E37361EF2"},
		{"undefined", value.Undef(), "05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5"},
		{"5", num(5), "05C1D9C1C5517C05C014", "19C08621B135968252FB34B4CF66F811"},
		{"5.5", num(5.5), "05C1D7A771716C05C016", "0E2EE47829D1AF775EEFB6540FD1D0ED"},
		{"0", num(0), "05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"},
		{"-0", num(math.Copysign(0, -1)), "05C1E703ED99A0058000", "3D018BB1DF3DB27235766E81FD10406E"},
		{"1", num(1), "05C1ED172B6B2605BFF0", "20CD98B339BA78A5D0CF6953B87070B0"},
		{"-1", num(-1), "05C1D1A5BDDF9C054010", "19938E7A936C1C5B9E3AE842BBC16839"},
		{"12313.1221", num(12313.1221), "05C1ED154D592E05C0C90723F50FC925D8", "27E7ECA8F2EE3E53424DE8D5220631C6"},
		{"123456789", num(123456789), "05C1D9E1A5311C05C19DB7CD8B40", "1F56D2538088EBA82CCF988F36E16760"},
		{"smallest double", num(5e-324), "", "0E6CBA63A280927DE485DEF865800139"},
		{"greatest double", num(math.MaxFloat64), "", "31424D996457102634591FF245DBCC4D"},
		{"lowest double", num(-math.MaxFloat64), "", "27050CC4910CFD9DACE1283D3801DF25"},
		{"NaN", num(math.NaN()), "", "1AA4222583D70ECAA0922D8CA8EDFCB1"},
		{"-Infinity", num(math.Inf(-1)), "", "1B63B3FB266DB3B6CD3BC79FE893CDE8"},
		{"Infinity", num(math.Inf(1)), "", "3889F7F08A8CE2A5C9829BBB1944B4FF"},
		{"greatest int64", value.Int64Of(math.MaxInt64), "", "2EDB959178DFCCA18983F89384D1629B"},
		{"2^53-1", value.Int64Of(1<<53 - 1), "", "12C221C7032CED1F9E6693CE1428E6CF"},
		{"not ASCII", str("\u00E4\u9C40"), "05C1CDE7CB17F008C4A5EAB28100", "3D949E098206D884B1E3F72E775470C1"},
	} {
		pk := []value.Value{c.v}
		if got := Text(V1, pk); c.v1 != "" && got != c.v1 {
			t.Errorf("%s: V1 %s, want %s", c.name, got, c.v1)
		}
		if got := Text(V2, pk); c.v2 != "" && got != c.v2 {
			t.Errorf("%s: V2 %s, want %s", c.name, got, c.v2)
		}
		if c.name == "-0" {
			pk[0] = num(0) // -0 is placed where 0 is
		}
		// The hash in the text parses to the placement.
		place, err := ParseBoundary(V1, Text(V1, pk))
		if want := Place(nil, V1, pk); err != nil || !bytes.Equal(place, want) {
			t.Errorf("%s: V1 text parses to %x (%v), want %x", c.name, place, err, want)
		}
	}
}

func TestVectorsOfSeveralPaths(t *testing.T) {
	list := []value.Value{str("redmond"), num(50), num(5.5), value.BoolOf(true), value.BoolOf(false), null, str(""),
		num(12313.1221)}
	for _, c := range []struct {
		name string
		k    Kind
		pk   []value.Value
		want string
	}{
		{"one level", MultiHash, []value.Value{str("tenant1")}, "0DAE0B8467B011E957BC0B8B0DEB5ACA"},
		{"three levels", MultiHash, []value.Value{str("tenant1"), str("user1"), str("s1")},
			"0DAE0B8467B011E957BC0B8B0DEB5ACA" + "236A5BE3329A7AD57D4B998E8602BD7B" +
				"2924A879AFFF52A411F93F1A83532751"},
		{"three kinds", MultiHash, []value.Value{str("tenant1"), num(5), null}, "0DAE0B8467B011E957BC0B8B0DEB5ACA" +
			"19C08621B135968252FB34B4CF66F811" + "378867E4430E67857ACE5C908374FE16"},
		{"two levels", MultiHash, []value.Value{str("/path1"), str("/path2")}, "3499FD5198AE0F1EB6B77F6E428D2FF0" +
			"27A1848BD1102A3B65AFF266874D0FF5"},
		{"eight values hashed together", V2, list, "1A5E512F591E980E07A6D8AD5BD5AB2F"},
	} {
		if got := Text(c.k, c.pk); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Equal numbers of different kinds have one placement. Values that the service can't hash have a placement too.
func TestEqualValuesShareAPlacement(t *testing.T) {
	dec := func(s string) value.Value {
		v, ok := value.ParseDecimal(s)
		if !ok {
			t.Fatal(s)
		}
		return v
	}
	oid := value.ObjectIDOf([]byte("twelve bytes"))
	for _, class := range [][]value.Value{
		{num(1), value.Int32Of(1), value.Int64Of(1), dec("1.00")},
		{num(1 << 62), value.Int64Of(1 << 62), dec("4611686018427387904")},
		{num(0), num(math.Copysign(0, -1)), dec("-0.0"), value.Int32Of(0)},
		{num(math.NaN()), dec("NaN"), num(math.Float64frombits(0x7FF8000000000001))},
		{num(0.5), dec("0.5"), dec("5E-1")},
		{str("x"), value.SymbolOf([]byte("x"))},
		{oid, str(`{"$oid":"7477656c7665206279746573"}`)},
		{value.DateOf(5, 0), str(`{"$date":{"$numberLong":"5"}}`)},
	} {
		for _, k := range []Kind{V1, V2, MultiHash} {
			want := Place(nil, k, class[:1])
			for _, v := range class[1:] {
				if got := Place(nil, k, []value.Value{v}); !bytes.Equal(got, want) {
					t.Errorf("kind %d: %s is placed at %x, its equal at %x", k,
						value.AppendText(nil, v, value.CanonicalJSON), got, want)
				}
			}
		}
	}
}

func TestCutV1CountsUTF16(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{strings.Repeat("é", 101), strings.Repeat("é", 100)},
		{strings.Repeat("x", 98) + "😀y", strings.Repeat("x", 98) + "😀"},
		{strings.Repeat("x", 99) + "😀y", strings.Repeat("x", 99) + "\uFFFD"},
		{strings.Repeat("x", 100), strings.Repeat("x", 100)},
	} {
		if got := string(cutV1([]byte(c.in))); got != c.want {
			t.Errorf("%q is cut to %q, want %q", c.in, got, c.want)
		}
	}
	// A text of more than 100 bytes: 101 bytes and no end mark.
	got := Text(V1, []value.Value{str(strings.Repeat("é", 60))})
	if want := 2*(1+101) + len("05C1EB5921F706"); len(got) > want || strings.HasSuffix(got, "00") {
		t.Errorf("a long value part: %s", got)
	}
}

func TestSplit(t *testing.T) {
	texts := func(k Kind, n int) (out []string) {
		for _, p := range Split(k, n) {
			out = append(out, BoundaryText(k, p))
		}
		return out
	}
	f := strings.Repeat("F", 28)
	for _, c := range []struct {
		k    Kind
		n    int
		want []string
	}{
		{V1, 1, nil},
		{V1, 2, []string{"05C1DFFFFFFFFC"}},
		{V1, 4, []string{"05C1CFFFFFFFF8", "05C1DFFFFFFFF8", "05C1E7FFFFFFFA"}},
		{V1, 5, []string{"05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398"}},
		{V2, 2, []string{"1FFF" + f}},
		{V2, 3, []string{"15" + strings.Repeat("5", 30), "2A" + strings.Repeat("A", 30)}},
		{V2, 4, []string{"0FFF" + f, "1FFF" + f[1:] + "E", "2FFF" + f[1:] + "D"}},
		{MultiHash, 4, []string{"0FFF" + f, "1FFF" + f[1:] + "E", "2FFF" + f[1:] + "D"}},
	} {
		if got := texts(c.k, c.n); !slices.Equal(got, c.want) {
			t.Errorf("kind %d, %d shares: %v, want %v", c.k, c.n, got, c.want)
		}
	}
}

// TestShares: a range of placements is divided like the space, and every boundary lies inside of it.
func TestShares(t *testing.T) {
	for _, k := range []Kind{V1, V2, MultiHash} {
		all := append(append([][]byte{nil}, Split(k, 3)...), nil)
		for i := range 3 {
			min, max := all[i], all[i+1]
			last := min
			for _, at := range Shares(k, min, max, 5) {
				if bytes.Compare(last, at) >= 0 || max != nil && bytes.Compare(at, max) >= 0 {
					t.Errorf("kind %d: %x isn't between %x and %x", k, at, last, max)
				}
				if got, want := Fraction(k, at)-Fraction(k, last), 1./15; i > 0 && math.Abs(got-want) > 1e-6 {
					t.Errorf("kind %d: the share before %x is %f of the space, want %f", k, at, got, want)
				}
				last = at
			}
		}
		if got := Shares(k, all[1], all[1], 2); got != nil {
			t.Errorf("kind %d: shares of nothing: %x", k, got)
		}
	}
	if got := Shares(MultiHash, bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{1}, 32), 2); got != nil {
		t.Errorf("shares inside of one first hash: %x", got)
	}
}

func TestBoundaries(t *testing.T) {
	for _, k := range []Kind{V1, V2, MultiHash} {
		for _, n := range []int{2, 3, 16, 64, 1000} {
			last := ""
			var lastPlace []byte
			for _, p := range Split(k, n) {
				text := BoundaryText(k, p)
				if CompareText(last, text) >= 0 || bytes.Compare(lastPlace, p) >= 0 {
					t.Fatalf("kind %d: boundary %s is not above %s", k, text, last)
				}
				back, err := ParseBoundary(k, text)
				if err != nil || !bytes.Equal(back, p) {
					t.Fatalf("kind %d: %s parses to %x (%v), want %x", k, text, back, err, p)
				}
				last, lastPlace = text, p
			}
		}
		for _, text := range []string{"", "FF", "ff"} {
			if p, err := ParseBoundary(k, text); p != nil || err != nil {
				t.Errorf("kind %d: %q gives %x, %v", k, text, p, err)
			}
		}
		for _, text := range []string{"XY", "0g", strings.Repeat("0", 5000)} {
			if _, err := ParseBoundary(k, text); err == nil {
				t.Errorf("kind %d: %.10q... is accepted", k, text)
			}
		}
	}
	for text, want := range map[string]string{
		"05": "00000000", "058000": "00000000", "05C1DFFFFFFFFC": "7fffffff", "05c1dffffffffc": "7fffffff", "05C1E": "80000000",
		"08": "ffffffffff", "05FF": "ffffffffff", "04FF": "00000000", "05BFF0": "00000001",
	} {
		p, err := ParseBoundary(V1, text)
		if got := strings.ToLower(upperHex(p)); err != nil || got != want {
			t.Errorf("V1 %s gives %s (%v), want %s", text, got, err, want)
		}
	}
}

// V1: texts and hashes have the same order, for each length that the number's form can have.
func TestTextOrderIsPlacementOrder(t *testing.T) {
	last := ""
	for _, h := range []uint32{0, 1, 2, 3, 127, 128, 255, 256, 65535, 65536, 1 << 20, 1<<24 + 1, 1<<31 - 1, 1 << 31,
		1<<31 + 1, math.MaxUint32} {
		p := []byte{byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h)}
		text := BoundaryText(V1, p)
		if text <= last {
			t.Errorf("%d is %s, not above %s", h, text, last)
		}
		if back, err := ParseBoundary(V1, text); err != nil || !bytes.Equal(back, p) {
			t.Errorf("%d is %s, which parses to %x (%v)", h, text, back, err)
		}
		last = text
	}
}

func TestPrefixOfPathsIsPrefixOfPlacement(t *testing.T) {
	pk := []value.Value{str("t"), num(1), str("s")}
	full := Place(nil, MultiHash, pk)
	for n := 1; n <= 3; n++ {
		if p := Place(nil, MultiHash, pk[:n]); len(p) != 16*n || !bytes.HasPrefix(full, p) {
			t.Errorf("%d paths: %x", n, p)
		}
		if r := KeyRange(MultiHash, pk[:n]); !r.Contains(Text(MultiHash, pk)) {
			t.Errorf("the range of %d paths lacks the whole key", n)
		}
	}
	if KeyRange(MultiHash, pk[:1]).Contains(Text(MultiHash, []value.Value{str("u"), num(1), str("s")})) {
		t.Error("the range of a prefix holds another tenant's key")
	}
}

func TestRanges(t *testing.T) {
	r := func(min, max string) Range { return Range{min, max} }
	for _, c := range []struct{ a, b, both Range }{
		{Full, r("10", "20"), r("10", "20")},
		{r("10", "20"), r("18", "30"), r("18", "20")},
		{r("10", "20"), r("20", "30"), Range{}},
		// "1000" is "10" padded with zeros: an empty range
		{r("10", "20"), r("10", "1000"), Range{}},
		{r("", "0FFF"), r("0FFE00000000", "FF"), r("0FFE00000000", "0FFF")}, // texts of different lengths
	} {
		for _, p := range [][2]Range{{c.a, c.b}, {c.b, c.a}} {
			got, ok := p[0].Intersect(p[1])
			if got != c.both || ok == (c.both == Range{}) {
				t.Errorf("%v and %v have %v (%v) in common, want %v", p[0], p[1], got, ok, c.both)
			}
		}
	}
	if !Full.Covers(r("", "FF")) || r("10", "20").Covers(r("10", "21")) || !r("10", "20").Covers(r("1000", "20")) ||
		!r("10", "20").Covers(r("5", "5")) {
		t.Error("Covers")
	}
	if !r("10", "20").Contains("1000") || r("10", "20").Contains("2000") || r("10", "20").Contains("0FFF") {
		t.Error("Contains")
	}
}

func FuzzParseBoundary(f *testing.F) {
	for _, s := range []string{"", "FF", "05C1DFFFFFFFFC", "0FFF", "05", "zz"} {
		f.Add(uint8(1), s)
		f.Add(uint8(2), s)
	}
	f.Fuzz(func(t *testing.T, k uint8, text string) {
		kind := Kind(k%3 + 1)
		p, err := ParseBoundary(kind, text)
		if err != nil || p == nil || len(p) == 5 {
			return
		}
		again, err := ParseBoundary(kind, BoundaryText(kind, p))
		if err != nil || !bytes.Equal(again, p) {
			t.Fatalf("%q gives %x, whose text gives %x (%v)", text, p, again, err)
		}
	})
}

func BenchmarkPlace(b *testing.B) {
	pk := []value.Value{str("tenant-000017")}
	dst := make([]byte, 0, 16)
	b.ReportAllocs()
	for b.Loop() {
		Place(dst, V2, pk)
	}
}
