package gvalue

import (
	"math"
	"math/big"
	"testing"
	"time"
)

// The values of a row are equal to each other and differ from those of all other rows.
var families = [][]any{
	{nil},
	{true},
	{false},
	{int8(1), int16(1), int32(1), int64(1), float32(1), float64(1), big.NewInt(1), &BigDecimal{big.NewInt(100), 2}},
	{float64(0.5), float32(0.5), &BigDecimal{big.NewInt(5), 1}},
	{math.NaN(), math.Float64frombits(0x7ff8000000000002)},
	{math.Inf(1)},
	{&BigDecimal{big.NewInt(1), 1}, &BigDecimal{big.NewInt(10), 2}},
	{new(big.Int).Lsh(big.NewInt(1), 80), math.Ldexp(1, 80)},
	{"1"},
	{"a"},
	{Char('a')},
	{Date(0), Timestamp(0), Instant{}, OffsetDateTime{time.Unix(0, 0).In(time.FixedZone("", 3600))}},
	{[]any{int32(1), "a"}, []any{int64(1), "a"}},
	{[]any{"a", int32(1)}},
	{SetOf("a", int32(1)), SetOf(int64(1), "a", "a")},
	{MapOf("a", int32(1), TID, "x"), MapOf(TID, "x", "a", int64(1))},
	{&Vertex{ID: "1", Label: "x"}, &Vertex{ID: "1", Label: "y"}},
	{&Edge{ID: "1"}},
	{TID},
	{Direction("id")},
}

func TestEqual(t *testing.T) {
	for i, f := range families {
		for j, g := range families {
			for _, a := range f {
				for _, b := range g {
					if got := Equal(a, b); got != (i == j) {
						t.Errorf("Equal(%T %v, %T %v) = %v", a, Text(a), b, Text(b), got)
					}
				}
			}
		}
	}
}

func TestMap(t *testing.T) {
	m := NewMap(0)
	for i := range 50 {
		m.Put(int32(i), i%7 == 0)
		m.Put(int64(i), "second") // the same key keeps its position
	}
	m.Put("7", "text") // differs from the number 7
	if m.Len() != 51 {
		t.Fatalf("len = %d, want 51", m.Len())
	}
	if v, _ := m.Get(float64(7)); v != "second" {
		t.Errorf("Get(7.0) = %v", v)
	}
	if v, _ := m.GetString("7"); v != "text" {
		t.Errorf(`GetString("7") = %v`, v)
	}
	if !m.Delete(int32(3)) || m.Delete(int32(3)) {
		t.Error("Delete: want true, then false")
	}
	if _, ok := m.Get(int32(3)); ok {
		t.Error("deleted key found")
	}
	if m.Entries()[3].Key != int32(4) {
		t.Errorf("order broken: %v", m.Entries()[3].Key)
	}
}

func TestBulkSet(t *testing.T) {
	var b BulkSet
	b.Add("a", 1)
	b.Add(int32(1), 2)
	b.Add(int64(1), 3)
	if Text(&b) != "{a=1, 1=5}" {
		t.Errorf("got %s", Text(&b))
	}
}

// The right column is the result of Java's toString().
func TestText(t *testing.T) {
	marko := &Vertex{ID: int32(1), Label: "person"}
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, "null"},
		{float64(1), "1.0"},
		{float64(1e7), "1.0E7"},
		{float64(12345678.5), "1.23456785E7"},
		{float64(1.5e-5), "1.5E-5"},
		{float32(0.1), "0.1"},
		{math.Inf(-1), "-Infinity"},
		{&BigDecimal{big.NewInt(-5), 3}, "-0.005"},
		{marko, "v[1]"},
		{&Edge{ID: int32(7), Label: "knows", OutV: int32(1), InV: int32(2)}, "e[7][1-knows->2]"},
		{&VertexProperty{Label: "name", Value: "a name of more than twenty"}, "vp[name->a name of more th...]"},
		{&Property{Key: "weight", Value: 0.5}, "p[weight->0.5]"},
		{&Path{Objects: []any{marko, "x"}}, "path[v[1], x]"},
		{MapOf("name", []any{"marko"}), "{name=[marko]}"},
		{TID, "id"},
		{OffsetDateTime{time.Date(2023, 8, 2, 0, 0, 0, 0, time.UTC)}, "2023-08-02T00:00Z"},
		{OffsetDateTime{time.Date(2023, 8, 2, 1, 2, 3, 4e6, time.FixedZone("", -5400))},
			"2023-08-02T01:02:03.004-01:30"},
		{Duration{3723, 500000000}, "PT1H2M3.5S"},
		{Duration{-1, 500000000}, "PT-0.5S"},
		{Period{1, 0, 2}, "P1Y2D"},
	} {
		if got := Text(c.v); got != c.want {
			t.Errorf("Text(%T) = %s, want %s", c.v, got, c.want)
		}
	}
}

func TestParseBigDecimal(t *testing.T) {
	for s, want := range map[string]string{"1.50": "1.50", "-0.001": "-0.001", "12e2": "1200", "+7": "7", "1E-3": "0.001"} {
		d, ok := ParseBigDecimal(s)
		if !ok || d.String() != want {
			t.Errorf("%s: got %v %v, want %s", s, d, ok, want)
		}
	}
	for _, s := range []string{"", ".", "1.-2", "+-1", "1e", "1e99999999999", "x", "1_0"} {
		if d, ok := ParseBigDecimal(s); ok {
			t.Errorf("%q parsed as %v", s, d)
		}
	}
}

func TestMakeEnum(t *testing.T) {
	for _, c := range []struct {
		typ, name string
		want      Enum
	}{{"T", "id", TID}, {"Direction", "from", OUT}, {"Direction", "IN", IN}, {"Order", "decr", Decr},
		{"Operator", "addAll", OpAddAll}} {
		if e, ok := MakeEnum(c.typ, c.name); !ok || e != c.want {
			t.Errorf("MakeEnum(%s, %s) = %v %v", c.typ, c.name, e, ok)
		}
	}
	for _, c := range [][2]string{{"T", "ID"}, {"X", "id"}, {"Order", ""}} {
		if e, ok := MakeEnum(c[0], c[1]); ok {
			t.Errorf("MakeEnum(%v) = %v", c, e)
		}
	}
}

func TestParseOffsetDateTime(t *testing.T) {
	for in, want := range map[string]string{
		"2023-08-02":                                "2023-08-02T00:00Z",
		"2023-08-02T01:02":                          "2023-08-02T01:02Z",
		"2023-08-02 01:02:03":                       "2023-08-02T01:02:03Z",
		"2023-08-02T01:02:03.004-0130":              "2023-08-02T01:02:03.004-01:30",
		"2023-08-02T01:02:03+01:30:15":              "2023-08-02T01:02:03+01:30:15",
		"2023-08-02T01:02+02:00[Europe/Berlin]":     "2023-08-02T01:02+02:00",
		"2023-08-02T1:02:03Z":                       "",
		"2023-08-02T01:02:03,5Z":                    "",
		"2023-08":                                   "",
		"2023-08-02T01:02:03.4Z[" + "Europe/Berlin": "",
	} {
		d, ok := ParseOffsetDateTime(in)
		got, _ := TimeText(d)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
