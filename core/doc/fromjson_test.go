package doc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

func mustJSON(t testing.TB, text string, o JSONOptions) Doc {
	t.Helper()
	d, err := FromJSON(nil, []byte(text), o)
	if err != nil {
		t.Fatalf("FromJSON(%s): %v", text, err)
	}
	if err := bsoncore.Document(d).Validate(); err != nil {
		t.Fatalf("FromJSON(%s) made BSON that the driver refuses: %v", text, err)
	}
	if err := Validate(d, 0); err != nil {
		t.Fatalf("FromJSON(%s) made BSON that Validate refuses: %v", text, err)
	}
	return d
}

// A document is written as JSON in one canonical spelling, whatever the spelling of the input.
func TestJSONRoundTrip(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"empty", `{}`, `{}`},
		{"white space", " \n\t\r{ \"a\" : [ 1 , 2 ] , \"b\" : { } } ", `{"a":[1,2],"b":{}}`},
		{"byte order mark", "\uFEFF{\"a\":1}", `{"a":1}`},
		{"field order is kept", `{"z":1,"a":2,"m":3}`, `{"z":1,"a":2,"m":3}`},
		{"duplicate name: the last wins", `{"a":1,"b":2,"a":3}`, `{"b":2,"a":3}`},
		{"duplicates below and thrice", `{"o":{"x":1,"x":[1,{"y":1,"y":2}],"x":{}},"o2":[{"k":1,"k":2}]}`,
			`{"o":{"x":{}},"o2":[{"k":2}]}`},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, `{"a":2}`},
		{"words", `{"t":true,"f":false,"n":null}`, `{"t":true,"f":false,"n":null}`},
		{"whole double against integer", `{"i":1,"d":1.0,"e":1e0}`, `{"i":1,"d":1.0,"e":1.0}`},
		{"minus zero", `{"a":-0,"b":-0.0,"c":0}`, `{"a":-0.0,"b":-0.0,"c":0}`},
		{"integer limits", `[2147483647,2147483648,-2147483649,9223372036854775807,-9223372036854775808]`,
			`[2147483647,2147483648,-2147483649,9223372036854775807,-9223372036854775808]`},
		{"beyond int64", `[9223372036854775808,18446744073709551616,-9223372036854775809]`, `[9223372036854776000.0,` +
			`18446744073709552000.0,-9223372036854776000.0]`},
		{"doubles", `[0.1,1e21,1e-7,123456789.125,5e-324,1.7976931348623157e308,1E+2,0.30000000000000004]`,
			`[0.1,1e+21,1e-7,123456789.125,5e-324,1.7976931348623157e+308,100.0,0.30000000000000004]`},
		{"strings", `{"s":"a\"b\\c\/d\b\f\n\r\t\u00e4é\u0000\u001f€😀\ud83d\ude00"}`,
			`{"s":"a\"b\\c/d\b\f\n\r\täé\u0000\u001f€😀😀"}`},
		{"lone surrogates become U+FFFD", `["\ud800","\udc00x","\ud800\ud800\udc00","\ud800\u0041"]`,
			`["` + "\uFFFD\",\"\uFFFDx\",\"\uFFFD\U00010000\",\"\uFFFDA" + `"]`},
		{"names need escaping too", `{"a\"\n":1,"":2}`, `{"a\"\n":1,"":2}`},
		{"an operator is an object", `{"$oid":"x","a":{"$gt":1}}`, `{"$oid":"x","a":{"$gt":1}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := ValueFromJSON([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(AppendJSON(nil, v)); got != c.out {
				t.Errorf("got  %s\nwant %s", got, c.out)
			}
			if c.in[0] != '[' {
				mustJSON(t, c.in, JSONOptions{})
			}
		})
	}
}

func TestNumberKinds(t *testing.T) {
	for in, want := range map[string]value.Kind{
		"0": value.Int32, "-1": value.Int32, "2147483648": value.Int64, "1.0": value.Double, "1e3": value.Double,
		"-0": value.Double, "9223372036854775807": value.Int64, "9223372036854775808": value.Double,
		"12345678901234567890123": value.Double,
	} {
		if v, err := ValueFromJSON([]byte(in)); err != nil || v.Kind() != want {
			t.Errorf("%s: kind %d, error %v; want kind %d", in, v.Kind(), err, want)
		}
	}
}

func TestDuplicatesInLargeObjects(t *testing.T) {
	var in strings.Builder
	in.WriteByte('{')
	for i := range 3000 {
		fmt.Fprintf(&in, `"key-with-a-long-name-%d-end":%d,`, i%1000, i)
	}
	in.WriteString(`"z":0}`)
	d := mustJSON(t, in.String(), JSONOptions{})
	if n := Value(d).Len(); n != 1001 {
		t.Fatalf("%d fields, want 1001", n)
	}
	for i := range 1000 {
		if got := Get(d, fmt.Sprintf("key-with-a-long-name-%d-end", i)).Int(); got != int64(2000+i) {
			t.Fatalf("field %d holds %d, want the last one, %d", i, got, 2000+i)
		}
	}
}

func TestJSONRefusals(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 128) + "1" + strings.Repeat("}", 128)
	mustJSON(t, deep, JSONOptions{})
	for _, c := range []struct{ name, in, says string }{
		{"nothing", ``, "object is expected"},
		{"not an object", `[1]`, "object is expected"},
		{"open", `{`, "name in quotes"},
		{"open name", `{"a`, "no end"},
		{"open string", `{"a":"x`, "no end"},
		{"open escape", `{"a":"x\`, "no end"},
		{"no colon", `{"a" 1}`, "colon"},
		{"no value", `{"a":}`, "value is expected"},
		{"end after colon", `{"a":`, "value is expected"},
		{"trailing comma", `{"a":1,}`, "name in quotes"},
		{"trailing comma in array", `{"a":[1,]}`, "value is expected"},
		{"no comma", `{"a":1 "b":2}`, "comma"},
		{"no comma in array", `{"a":[1 2]}`, "comma"},
		{"second value", `{} {}`, "text follows"},
		{"NUL after the end", "{}\x00", "text follows"},
		{"single quotes", `{'a':1}`, "name in quotes"},
		{"word", `{"a":nul}`, "value is expected"},
		{"leading zero", `{"a":01}`, "malformed"},
		{"plus", `{"a":+1}`, "value is expected"},
		{"bare minus", `{"a":-}`, "malformed"},
		{"point without digits", `{"a":1.}`, "malformed"},
		{"exponent without digits", `{"a":1e}`, "malformed"},
		{"out of range", `{"a":1e400}`, "range"},
		{"NaN", `{"a":NaN}`, "value is expected"},
		{"unknown escape", `{"a":"\x41"}`, "unknown"},
		{"short escape", `{"a":"\u12"}`, "four hex"},
		{"raw control", "{\"a\":\"\n\"}", "control character"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "not UTF-8"},
		{"surrogate as bytes", "{\"a\":\"\xed\xa0\x80\"}", "not UTF-8"},
		{"U+0000 in a name", `{"a\u0000b":1}`, "U+0000"},
		{"U+0000 in an inner name", `{"x":[{"\u0000":1}]}`, "U+0000"},
		{"too deep", `{"a":` + deep + `}`, "deeper than 128"},
		{"endless depth", strings.Repeat("[", 1<<20), "object is expected"},
		{"endless depth below", `{"a":` + strings.Repeat("[", 1<<20), "deeper than 128"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := FromJSON([]byte("kept"), []byte(c.in), JSONOptions{})
			if !status.Is(err, status.BadRequest) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "at byte ") {
				t.Errorf("error %v, want BadRequest with %q and a position", err, c.says)
			}
			if string(d) != "kept" {
				t.Errorf("dst came back as %q", d)
			}
		})
	}
}

func TestNoSQLNames(t *testing.T) {
	for _, c := range []struct{ in, stored, out string }{
		{`{"id":"1","a":{"id":2,"_ts":3}}`, `{"_id":"1","a":{"id":2,"_ts":3}}`, `"id":"1","a":{"id":2,"_ts":3}`},
		{`{"a":1,"_id":5,"id":"x"}`, `{"a":1,"\u0001_id":5,"_id":"x"}`, `"a":1,"_id":5,"id":"x"`},
		{`{"\u0001_id":1,"_id":2}`, `{"\u0001\u0001_id":1,"\u0001_id":2}`, `"\u0001_id":1,"_id":2`},
		{`{"_rid":1,"_self":1,"_etag":1,"_ts":1,"_attachments":{"x":[1]},"_lsn":1,"_other":1}`, `{"_other":1}`,
			`"_other":1`},
		{`{"i":1,"_":2,"ida":3}`, `{"i":1,"_":2,"ida":3}`, `"i":1,"_":2,"ida":3`},
		{`{"id":"a","id":"b"}`, `{"_id":"b"}`, `"id":"b"`},
	} {
		d := mustJSON(t, c.in, JSONOptions{Names: NoSQL})
		if got := string(AppendJSON(nil, Value(d))); got != c.stored {
			t.Errorf("%s is stored as %s, want %s", c.in, got, c.stored)
		}
		if got := string(AppendJSONFields(nil, d, NoSQL)); got != c.out {
			t.Errorf("%s is shown as %s, want %s", c.in, got, c.out)
		}
	}
	// Fields that only Mongo can write are hidden.
	d := mustJSON(t, `{"_id":1,"id":2,"_etag":3,"a":4}`, JSONOptions{})
	if got := string(AppendJSONFields(nil, d, NoSQL)); got != `"id":"{\"$numberInt\":\"1\"}","a":4` {
		t.Errorf("shown as %s", got)
	}
	if got := string(AppendJSONFields(nil, d, Stored)); got != `"_id":1,"id":2,"_etag":3,"a":4` {
		t.Errorf("shown to Mongo as %s", got)
	}
	if got := AppendJSONFields(nil, mustJSON(t, `{"id":1}`, JSONOptions{}), NoSQL); len(got) != 0 {
		t.Errorf("a document whose only field is hidden shows %s", got)
	}
	for _, name := range []string{"id", "_id", "\x01_id", "\x01\x01_id", "a", "", "i", "_"} {
		stored, ok := NoSQL.Stored(name)
		shown, ok2 := NoSQL.Shown([]byte(stored))
		if !ok || !ok2 || string(shown) != name {
			t.Errorf("name %q: stored %q, shown %q", name, stored, shown)
		}
	}
	if _, ok := NoSQL.Stored("_ts"); ok {
		t.Error("_ts is stored")
	}
}

// Kinds of values that JSON lacks are written as plain JSON and as relaxed and canonical Extended JSON. The canonical
// text reads back to the same bytes.
func TestKindsWithoutJSON(t *testing.T) {
	uuid := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	oid := uuid[:12]
	dec, ok := value.ParseDecimal("1.50")
	if !ok {
		t.Fatal("decimal")
	}
	scope := mustJSON(t, `{"x":1}`, JSONOptions{})
	for _, c := range []struct {
		v                         value.Value
		plain, relaxed, canonical string
	}{
		{value.Int32Of(1), `1`, `1`, `{"$numberInt":"1"}`},
		{value.Int64Of(1), `1`, `1`, `{"$numberLong":"1"}`},
		{value.DoubleOf(1), `1.0`, `1.0`, `{"$numberDouble":"1.0"}`},
		{value.DoubleOf(math.NaN()), `"NaN"`, `{"$numberDouble":"NaN"}`, `{"$numberDouble":"NaN"}`},
		{value.DoubleOf(math.Inf(1)), `"Infinity"`, `{"$numberDouble":"Infinity"}`, `{"$numberDouble":"Infinity"}`},
		{value.DoubleOf(math.Inf(-1)), `"-Infinity"`, `{"$numberDouble":"-Infinity"}`, `{"$numberDouble":"-Infinity"}`},
		{dec, `{"$numberDecimal":"1.50"}`, `{"$numberDecimal":"1.50"}`, `{"$numberDecimal":"1.50"}`},
		{value.DateOf(1577836800001, 0), `"2020-01-01T00:00:00.001Z"`, `{"$date":"2020-01-01T00:00:00.001Z"}`,
			`{"$date":{"$numberLong":"1577836800001"}}`},
		{value.DateOf(-1, 0), `"1969-12-31T23:59:59.999Z"`, `{"$date":{"$numberLong":"-1"}}`,
			`{"$date":{"$numberLong":"-1"}}`},
		{value.DateOf(-1, 42), `"1969-12-31T23:59:59.9990042Z"`, `{"$date":"1969-12-31T23:59:59.9990042Z"}`,
			`{"$date":"1969-12-31T23:59:59.9990042Z"}`},
		{value.DateOf(minISO, 0), `"0001-01-01T00:00:00.000Z"`, `{"$date":{"$numberLong":"-62135596800000"}}`,
			`{"$date":{"$numberLong":"-62135596800000"}}`},
		{value.DateOf(math.MaxInt64, 0), `{"$date":{"$numberLong":"9223372036854775807"}}`,
			`{"$date":{"$numberLong":"9223372036854775807"}}`, `{"$date":{"$numberLong":"9223372036854775807"}}`},
		{value.UUIDOf(uuid), `"00010203-0405-0607-0809-0a0b0c0d0e0f"`,
			`{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}}`,
			`{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}}`},
		{value.BinaryOf(0x80, []byte{1, 2}), `"AQI="`, `{"$binary":{"base64":"AQI=","subType":"80"}}`,
			`{"$binary":{"base64":"AQI=","subType":"80"}}`},
		{value.ObjectIDOf(oid), `{"$oid":"000102030405060708090a0b"}`, `{"$oid":"000102030405060708090a0b"}`,
			`{"$oid":"000102030405060708090a0b"}`},
		{value.TimestampOf(7<<32 | 9), `{"$timestamp":{"t":7,"i":9}}`, `{"$timestamp":{"t":7,"i":9}}`,
			`{"$timestamp":{"t":7,"i":9}}`},
		{value.RegexOf(`a"b`, "i"), `{"$regularExpression":{"pattern":"a\"b","options":"i"}}`,
			`{"$regularExpression":{"pattern":"a\"b","options":"i"}}`,
			`{"$regularExpression":{"pattern":"a\"b","options":"i"}}`},
		{value.SymbolOf([]byte("s")), `"s"`, `{"$symbol":"s"}`, `{"$symbol":"s"}`},
		{value.CodeOf([]byte("f()")), `{"$code":"f()"}`, `{"$code":"f()"}`, `{"$code":"f()"}`},
		{value.RawOf(value.CodeScope, bson.AppendCodeScopeValue(nil, []byte("f()"), scope)),
			`{"$code":"f()","$scope":{"x":1}}`, `{"$code":"f()","$scope":{"x":1}}`,
			`{"$code":"f()","$scope":{"x":{"$numberInt":"1"}}}`},
		{value.MinKeyValue(), `{"$minKey":1}`, `{"$minKey":1}`, `{"$minKey":1}`},
		{value.MaxKeyValue(), `{"$maxKey":1}`, `{"$maxKey":1}`, `{"$maxKey":1}`},
	} {
		if got := string(AppendJSON(nil, c.v)); got != c.plain {
			t.Errorf("plain %s, want %s", got, c.plain)
		}
		if got := string(AppendExtJSON(nil, c.v, true)); got != c.relaxed {
			t.Errorf("relaxed %s, want %s", got, c.relaxed)
		}
		canonical := AppendExtJSON(nil, c.v, false)
		if string(canonical) != c.canonical {
			t.Errorf("canonical %s, want %s", canonical, c.canonical)
		}
		back, err := ValueFromExtJSON(canonical)
		if err != nil || value.BSONType(back) != value.BSONType(c.v) ||
			!bytes.Equal(value.AppendBSON(nil, back), value.AppendBSON(nil, c.v)) {
			t.Errorf("%s reads back as %s (%v)", canonical, AppendExtJSON(nil, back, false), err)
		}
		if !json.Valid(canonical) {
			t.Errorf("%s is no JSON", canonical)
		}
	}
}

const minISO = -62135596800000

func TestExtJSONShapes(t *testing.T) {
	for _, c := range []struct{ in, out string }{ // out is canonical; "" = refused
		{`{"$date":5}`, `{"$date":{"$numberLong":"5"}}`},
		{`{"$date":"2020-01-01T01:00:00+01:00"}`, `{"$date":{"$numberLong":"1577836800000"}}`},
		{`{"$date":"soon"}`, ``},
		{`{"$uuid":"00010203-0405-0607-0809-0a0b0c0d0e0f"}`, `{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==",` +
			`"subType":"04"}}`},
		{`{"$uuid":"0"}`, ``},
		{`{"$binary":"AQI=","$type":"00"}`, `{"$binary":{"base64":"AQI=","subType":"00"}}`},
		{`{"$binary":{"subType":"0","base64":"AQI="}}`, `{"$binary":{"base64":"AQI=","subType":"00"}}`},
		{`{"$binary":{"subType":"0"}}`, ``},
		{`{"$scope":{},"$code":"x"}`, `{"$code":"x","$scope":{}}`},
		{`{"$oid":"00"}`, ``},
		{`{"$oid":"000102030405060708090a0b","x":1}`, `{"$oid":"000102030405060708090a0b","x":{"$numberInt":"1"}}`},
		{`{"$numberInt":"3000000000"}`, ``},
		{`{"$numberInt":1}`, ``},
		{`{"$numberDouble":"0x10"}`, ``},
		{`{"$numberDecimal":"1E+3"}`, `{"$numberDecimal":"1E+3"}`},
		{`{"$timestamp":{"t":-1,"i":0}}`, ``},
		{`{"$timestamp":{"t":4294967295,"i":4294967295}}`, `{"$timestamp":{"t":4294967295,"i":4294967295}}`},
		{`{"$undefined":true}`, `null`},
		{`{"$ref":"c","$id":1}`, `{"$ref":"c","$id":{"$numberInt":"1"}}`},
		{`{"$gt":{"$oid":"000102030405060708090a0b"}}`, `{"$gt":{"$oid":"000102030405060708090a0b"}}`},
		{`{"$regularExpression":{"pattern":"a\u0000","options":""}}`, ``},
		{`{"$dbPointer":{"$ref":"c","$id":{"$oid":"000102030405060708090a0b"}}}`, `{"$dbPointer":{"$ref":"c",` +
			`"$id":{"$oid":"000102030405060708090a0b"}}}`},
	} {
		v, err := ValueFromExtJSON([]byte(c.in))
		switch {
		case c.out == "" && !status.Is(err, status.BadRequest):
			t.Errorf("%s: error %v, want BadRequest", c.in, err)
		case c.out != "" && (err != nil || string(AppendExtJSON(nil, v, false)) != c.out):
			t.Errorf("%s: %s (%v), want %s", c.in, AppendExtJSON(nil, v, false), err, c.out)
		}
	}
	if _, err := FromExtJSON(nil, []byte(`{"$numberInt":"1"}`)); !status.Is(err, status.BadRequest) {
		t.Errorf("a single value as a document: %v", err)
	}
}
