package graphbinary

import (
	"encoding/hex"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/gvalue/gvtest"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

func encode(t testing.TB, v any) []byte {
	t.Helper()
	w := writer{}
	w.value(v)
	if w.err != nil {
		t.Fatalf("%T: %v", v, w.err)
	}
	return w.b
}

func decode(b []byte) (any, error) {
	r := reader{b: b}
	v := r.value()
	if r.err == nil && r.off != len(b) {
		r.fail("%d bytes left", len(b)-r.off)
	}
	return v, r.err
}

func samples() []any {
	all := append(gvtest.Scalars(), gvtest.Elements()...)
	all = append(all, gvtest.Collections()...)
	all = append(all, gvtest.Language()...)
	tree := &gvalue.Tree{
		Entries: []gvalue.TreeEntry{
			{Key: "a", Child: &gvalue.Tree{Entries: []gvalue.TreeEntry{{Key: int32(1), Child: &gvalue.Tree{}}}}}}}
	metrics := &gvalue.Metrics{ID: "7.0.0()", Name: "TinkerGraphStep", Duration: 1234,
		Counts: gvalue.MapOf("traverserCount", int64(4)), Annotations: gvalue.MapOf("percentDur", 25.0)}
	graph := &gvalue.Graph{
		Vertices: []*gvalue.Vertex{gvtest.Elements()[0].(*gvalue.Vertex), {ID: int32(2), Label: "person"}},
		Edges:    []*gvalue.Edge{{ID: int32(7), Label: "knows", OutV: int32(1), InV: int32(2)}},
	}
	return append(all, tree, metrics, &gvalue.TraversalMetrics{
		Duration: 5, Metrics: []*gvalue.Metrics{metrics, metrics}}, graph)
}

// A value that is written reads back as an equal value with the same text.
func TestRoundTrip(t *testing.T) {
	for _, v := range samples() {
		b := encode(t, v)
		got, err := decode(b)
		if err != nil {
			t.Errorf("%T %s: %v", v, gvalue.Text(v), err)
			continue
		}
		if again := encode(t, got); string(again) != string(b) {
			t.Errorf("%T %s: written again\n %x, was\n %x", v, gvalue.Text(v), again, b)
		}
		if reflect.TypeOf(got) != reflect.TypeOf(v) || gvalue.Text(got) != gvalue.Text(v) {
			t.Errorf("%T %s read back as %T %s", v, gvalue.Text(v), got, gvalue.Text(got))
		}
	}
}

// No proper prefix of a value is a value, and none makes the reader panic.
func TestTruncated(t *testing.T) {
	for _, v := range samples() {
		b := encode(t, v)
		for n := range b {
			if _, err := decode(b[:n]); err == nil {
				t.Errorf("%T: %d of %d bytes read without an error", v, n, len(b))
			}
		}
	}
}

// Bytes derived by hand from the description of the format.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, "fe01"},
		{int32(1), "0100 00000001"},
		{int64(-1), "0200 ffffffffffffffff"},
		{"abc", "0300 00000003 616263"},
		{gvalue.Date(1), "0400 0000000000000001"},
		{float64(1), "0700 3ff0000000000000"},
		{float32(1), "0800 3f800000"},
		{[]any{int32(1), nil}, "0900 00000002 0100 00000001 fe01"},
		{gvalue.SetOf("a"), "0b00 00000001 0300 00000001 61"},
		{gvalue.MapOf("a", true), "0a00 00000001 0300 00000001 61 2700 01"},
		{int8(-1), "2400 ff"},
		{int16(258), "2600 0102"},
		{big.NewInt(127), "2300 00000001 7f"},
		{big.NewInt(128), "2300 00000002 0080"},
		{big.NewInt(-128), "2300 00000001 80"},
		{big.NewInt(-129), "2300 00000002 ff7f"},
		{&gvalue.BigDecimal{Unscaled: big.NewInt(-12345), Scale: 3}, "2200 00000003 00000002 cfc7"},
		{gvalue.Char('ü'), "8000 c3bc"},
		{gvalue.TID, "2000 0300 00000002 6964"},
		{&gvalue.Vertex{ID: int32(1), Label: "p"}, "1100 0100 00000001 00000001 70 0900 00000000"},
		{&gvalue.Edge{ID: "e", Label: "k", InV: int32(2), InVLabel: "i", OutV: int32(1), OutVLabel: "o"},
			"0d00 0300 00000001 65 00000001 6b 0100 00000002 00000001 69 0100 00000001 00000001 6f fe01 0900 00000000"},
		{&gvalue.VertexProperty{ID: int64(0), Label: "n", Value: "v"},
			"1200 0200 0000000000000000 00000001 6e 0300 00000001 76 fe01 0900 00000000"},
		{&gvalue.Property{Key: "w", Value: int32(1)}, "0f00 00000001 77 0100 00000001 fe01"},
		{&gvalue.Path{Labels: [][]string{{"a"}}, Objects: []any{int32(1)}},
			"0e00 0900 00000001 0b00 00000001 0300 00000001 61 0900 00000001 0100 00000001"},
		{gvalue.Traverser{Bulk: 2, Value: "x"}, "2100 0000000000000002 0300 00000001 78"},
		{(&gvalue.Bytecode{}).Add("V"), "1500 00000001 00000001 56 00000000 00000000"},
		{&gvalue.P{Op: "gt", Args: []any{int32(3)}}, "1e00 00000002 6774 00000001 0100 00000003"},
		{gvalue.OffsetDateTime{Time: time.Date(2023, 8, 2, 0, 0, 0, 0, time.UTC)},
			"8800 000007e7 08 02 0000000000000000 00000000"},
	} {
		want := strings.ReplaceAll(c.want, " ", "")
		if got := hex.EncodeToString(encode(t, c.v)); got != want {
			t.Errorf("%T %s:\n got %s\nwant %s", c.v, gvalue.Text(c.v), got, want)
		}
	}
}

const evalRequest = "81" + "41d2e28a20a44ab0b379d810dede3786" + "00000004 6576616c" + "00000000" + "00000002" +
	"0300 00000007 6772656d6c696e" + "0300 00000005 672e562829" + // gremlin: g.V()
	"0300 00000007 616c6961736573" + "0a00 00000001 0300 00000001 67 0300 00000001 67" // aliases: {g: g}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadRequest(t *testing.T) {
	r, err := Codec{}.ReadRequest(unhex(t, evalRequest))
	if err != nil {
		t.Fatal(err)
	}
	if r.ID.String() != "41d2e28a-20a4-4ab0-b379-d810dede3786" || r.Op != "eval" || r.Processor != "" {
		t.Errorf("got %+v", r)
	}
	if s, _ := r.String("gremlin"); s != "g.V()" {
		t.Errorf("gremlin = %q", s)
	}
	if g, _ := r.Map("aliases").GetString("g"); g != "g" {
		t.Errorf("aliases = %v", g)
	}
}

func TestReadRequestRefuses(t *testing.T) {
	id := "81" + "41d2e28a20a44ab0b379d810dede3786"
	head := id + "00000004 6576616c 00000000 00000001 0300 00000001 61"
	deep := strings.Repeat("0900 00000001 ", message.MaxDepth+1) + "fe01"
	for _, c := range []struct {
		name, body, msg string
		hasID           bool
	}{
		{"empty", "", "1 bytes expected", false},
		{"version 2", "82", "version 0x82", false},
		{"no id", "81 00", "16 bytes expected", false},
		{"short op", id + "00000009 6576", "9 bytes expected, 2 left", true},
		{"negative length", id + "ffffffff", "-1 bytes expected", true},
		{"long list", head + "0900 7fffffff", "elements can't be in", true},
		{"unknown type", head + "7700", "unknown type code 0x77", true},
		{"custom type", head + "0000", "custom types", true},
		{"bad enum", head + "2000 0300 00000001 78", `T has no constant "x"`, true},
		{"not UTF-8", head + "0300 00000001 ff", "not UTF-8", true},
		{"bytes too many", evalRequest + "00", "1 bytes too many", true},
		{"key not a String", id + "00000000 00000000 00000001 0100 00000001 fe01", "a String expected", true},
		{"deep", head + deep, "levels of nesting", true},
		{"huge integer", head + "2300 00000201" + strings.Repeat("01", 513), "an integer of 513 bytes", true},
	} {
		_, err := Codec{}.ReadRequest(unhex(t, c.body))
		fe, ok := err.(*message.FormatError)
		if !ok || !strings.Contains(fe.Msg, c.msg) || fe.HasID != c.hasID || fe.Code != message.Malformed {
			t.Errorf("%s: got %+v, want %q, id %v", c.name, err, c.msg, c.hasID)
		}
	}
}

func TestAppendResponse(t *testing.T) {
	c := Codec{}
	items, err := c.AppendItem(nil, int32(1), 2, message.Options{Traversers: true})
	if err != nil {
		t.Fatal(err)
	}
	id := gvalue.UUID(unhex(t, "41d2e28a20a44ab0b379d810dede3786"))
	got := hex.EncodeToString(
		c.AppendResponse(nil, &message.Response{
			ID: id, Code: 200, Attributes: []message.Attribute{{Key: "a", Value: int32(1)}}}, items, 1))
	want := "81 00 41d2e28a20a44ab0b379d810dede3786 000000c8 00 00000000 00000001 0300 00000001 61 0100 00000001 " +
		"00000000" +
		"0900 00000001 2100 0000000000000002 0100 00000001"
	if got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got %s", got)
	}
	got = hex.EncodeToString(c.AppendResponse(nil, &message.Response{NoID: true, Code: 407, NullData: true}, nil, 0))
	if want := "8101 00000197 00 00000000 00000000 00000000 fe01"; got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("challenge: got %s", got)
	}
}

func TestItemOptions(t *testing.T) {
	v := gvtest.Elements()[0]
	full, _ := Codec{}.AppendItem(nil, v, 1, message.Options{})
	tokens, _ := Codec{}.AppendItem(nil, v, 1, message.Options{Tokens: true})
	if want := unhex(t, "1100 0100 00000001 00000006 706572736f6e fe01"); string(tokens) != string(want) ||
		len(full) <= len(tokens) {
		t.Errorf("tokens: %x", tokens)
	}
	text, _ := Codec{Strings: true}.AppendItem(nil, v, 1, message.Options{})
	if want := unhex(t, "0300 00000004 765b315d"); string(text) != string(want) {
		t.Errorf("stringd: %x", text)
	}
	if _, err := (Codec{}).AppendItem(nil, struct{}{}, 1, message.Options{}); err == nil {
		t.Error("a foreign Go type was written")
	}
	deep := any("x")
	for range message.MaxDepth + 1 {
		deep = []any{deep}
	}
	if _, err := (Codec{}).AppendItem(nil, deep, 1, message.Options{}); err != errTooDeep {
		t.Errorf("deep result: %v", err)
	}
}

func TestNaN(t *testing.T) {
	v, err := decode(encode(t, math.NaN()))
	if f, ok := v.(float64); !ok || f == f || err != nil {
		t.Errorf("got %v %v", v, err)
	}
}

// FuzzReadRequest: no bytes cause a panic, and a request that can be read is written and read to the same bytes again.
func FuzzReadRequest(f *testing.F) {
	f.Add(unhex(f, evalRequest))
	head := unhex(f, "8141d2e28a20a44ab0b379d810dede3786000000000000000000000001030000000161")
	for _, v := range samples() {
		f.Add(append(head[:len(head):len(head)], encode(f, v)...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Codec{}.ReadRequest(b)
		if err != nil {
			return
		}
		for _, e := range r.Args.Entries() {
			w := writer{}
			w.value(e.Value)
			if w.err != nil {
				continue // nested more deeply than a result may be
			}
			again, err := decode(w.b)
			if err != nil {
				t.Fatalf("%s: can't read what was written: %v", gvalue.Text(e.Value), err)
			}
			if got := encode(t, again); string(got) != string(w.b) {
				t.Fatalf("not stable:\n%x\n%x", w.b, got)
			}
		}
	})
}
