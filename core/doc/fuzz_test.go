package doc

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

var jsonSeeds = []string{
	`{}`, `{"id":"1","_ts":2,"a":[1,2.5,-0,1e5,true,null,{"b":"\ud83d\ude00\u0000"}]}`, `{"a":1,"a":{"a":2,"a":3}}`,
	`[1`, `{"\u0000":1}`,
	`{"$oid":"000102030405060708090a0b"}`, `{"$date":{"$numberLong":"5"}}`, "\uFEFF{}",
	`{"a":12345678901234567890,"b":0.1,"c":1e-7}`, `{"a":"` + "\xff" + `"}`,
	`{"\u0001_id":1,"_id":2,"id":3,"_etag":{}}`,
}

// FuzzJSON: the parser accepts what encoding/json accepts, apart from the differences that FromJSON documents, and JSON
// -> stored -> JSON gives an equal value.
func FuzzJSON(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := ValueFromJSON(text)
		plain := bytes.TrimPrefix(text, []byte("\uFEFF"))
		if err != nil {
			if !status.Is(err, status.BadRequest) {
				t.Fatalf("error %v", err)
			}
			documented := !utf8.Valid(text) || strings.Contains(err.Error(), "deeper") ||
				strings.Contains(err.Error(), "range") || strings.Contains(err.Error(), "U+0000")
			if json.Valid(plain) && !documented {
				t.Fatalf("%q is refused: %v", text, err)
			}
			return
		}
		if !json.Valid(plain) {
			t.Fatalf("%q is accepted", text)
		}
		out := AppendJSON(nil, v)
		var want, got any
		if err := errors.Join(json.Unmarshal(plain, &want), json.Unmarshal(out, &got)); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Fatalf("%q comes back as %s (%v)", text, out, err)
		}
		again, err := ValueFromJSON(out)
		if err != nil || !bytes.Equal(value.AppendBSON(nil, again), value.AppendBSON(nil, v)) {
			t.Fatalf("%q comes back as %s, which is stored otherwise (%v)", text, out, err)
		}
		if v.Kind() != value.Object {
			return
		}
		if err := Validate(v.Bytes(), 0); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		// What the NoSQL view shows is stored as the same document again.
		d, err := FromJSON(nil, text, JSONOptions{Names: NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		if id := Get(d, "_id"); id.IsDefined() && id.Kind() != value.String {
			return // shown as a string
		}
		shown := append(AppendJSONFields([]byte{'{'}, d, NoSQL), '}')
		if back, err := FromJSON(nil, shown, JSONOptions{Names: NoSQL}); err != nil || !bytes.Equal(back, d) {
			t.Fatalf("%q is shown as %s, which is stored otherwise (%v)", text, shown, err)
		}
	})
}

// FuzzExtJSON: the canonical text of a value that was read from Extended JSON reads back to the same bytes, and the
// driver reads that text as the same document.
func FuzzExtJSON(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	for _, s := range []string{`{"a":{"$numberDecimal":"1.50"},"b":{"$binary":{"base64":"AQ==","subType":"02"}},` +
		`"c":{"$timestamp":{"t":1,"i":2}}}`,
		`{"r":{"$regularExpression":{"pattern":"a","options":"i"}},"m":{"$minKey":1},"c":{"$code":"x","$scope":{"y":{"$numberDouble":"NaN"}}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := FromExtJSON(nil, text)
		if err != nil {
			return
		}
		if err := errors.Join(Validate(d, 0), bsoncore.Document(d).Validate()); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		canonical := AppendExtJSON(nil, Value(d), false)
		back, err := FromExtJSON(nil, canonical)
		if err != nil || !bytes.Equal(back, d) {
			t.Fatalf("%q has the canonical text %s, which is stored otherwise (%v)", text, canonical, err)
		}
	})
}

// FuzzValidate: the driver accepts every document that Validate accepts, and no reader panics on any bytes.
func FuzzValidate(f *testing.F) {
	for _, s := range jsonSeeds {
		if d, err := FromExtJSON(nil, []byte(s)); err == nil {
			f.Add([]byte(d))
		}
	}
	everything, err := bson.Marshal(bson.D{{Key: "oid", Value: bson.ObjectID{1}}, {Key: "d", Value: bson.DateTime(5)}, {Key: "re", Value: bson.Regex{Pattern: "a", Options: "i"}},
		{Key: "p", Value: bson.DBPointer{DB: "x"}},
		{Key: "js", Value: bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "x", Value: 1}}}},
		{Key: "dec", Value: bson.NewDecimal128(1, 2)},
		{Key: "ts", Value: bson.Timestamp{T: 1}}, {Key: "min", Value: bson.MinKey{}},
		{Key: "bin", Value: bson.Binary{Subtype: 0xF1, Data: make([]byte, 10)}}, {Key: "u", Value: bson.Undefined{}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(everything)
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Validate(b, 0)
		if driver := bsoncore.Document(b).Validate(); err == nil && driver != nil {
			t.Fatalf("%x is let in, the driver says %v", b, driver)
		}
		v := value.ObjectOf(b)
		for _, s := range []value.Style{value.PlainJSON, value.RelaxedJSON, value.CanonicalJSON, value.IdentityJSON} {
			if text := value.AppendText(nil, v, s); err == nil && !json.Valid(text) {
				t.Fatalf("%x is written as %s", b, text)
			}
		}
		AppendJSONFields(nil, b, NoSQL)
		Get(b, "a", "0", "b")
		if err != nil {
			return
		}
		for it := v.Iter(); it.Next(); {
			if el := it.Value(); !value.EqualBSON(el, el.Clone()) ||
				!bytes.HasSuffix(it.Element(), value.AppendBSON(nil, el)) && it.Element()[0] != 0x05 {
				t.Fatalf("an element of %x is written otherwise than it was read", b)
			}
		}
	})
}

// FuzzEdit: the result of an edit is a valid document, and its path holds the value that was set.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":2}],"c":{}}`), "a/1/b")
	f.Add([]byte(`{"a":[1]}`), "a/3")
	f.Add([]byte(`{}`), "x/y/z")
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		d, err := FromJSON(nil, text, JSONOptions{})
		if err != nil || !utf8.ValidString(path) {
			return
		}
		segs := strings.Split(path, "/")
		if len(segs) > 60 {
			return
		}
		v := value.StringOf("set")
		if set, err := Set(d, v, segs...); err == nil {
			if err := Validate(set, 200); err != nil {
				t.Fatal(err)
			}
			if got := Get(set, segs...); !value.EqualBSON(got, v) {
				t.Fatalf("%q set in %s: %s", path, text, AppendJSON(nil, Value(set)))
			}
		}
		gone, err := Remove(d, segs...)
		if err == nil {
			err = Validate(gone, 200)
		}
		if err != nil && !strings.Contains(err.Error(), "U+0000") {
			t.Fatal(err)
		}
	})
}

// TestAgainstDriver compares our Extended JSON with the driver's, for decimals and documents that the driver made.
func TestAgainstDriver(t *testing.T) {
	for _, s := range []string{"0", "-1.50", "1E+100", "123456789012345678901234567890.1234", "1E-6176",
		"9.999999999999999999999999999999999E+6144", "NaN", "-Infinity", "0E+5", "0.0000012"} {
		want, err := bson.ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		h, l := want.GetBytes()
		got, ok := value.ParseDecimal(s)
		if !ok || value.DecimalText(got) != want.String() {
			t.Errorf("%s: %s, the driver says %s", s, value.DecimalText(got), want)
		}
		if b := bsoncore.AppendDecimal128(nil, h, l); !bytes.Equal(b, got.Bytes()) {
			t.Errorf("%s: bytes %x, the driver has %x", s, got.Bytes(), b)
		}
	}
	d := bson.D{{Key: "d", Value: 1.5}, {Key: "s", Value: "x"}, {Key: "o", Value: bson.D{{Key: "i", Value: int32(1)}}},
		{Key: "a", Value: bson.A{int64(1), nil, true}},
		{Key: "b", Value: bson.Binary{Subtype: 2, Data: []byte{1}}}, {Key: "dt", Value: bson.DateTime(1700000000000)}, {Key: "dt2", Value: bson.DateTime(1700000000123)}, {Key: "re", Value: bson.Regex{Pattern: "a/b", Options: "im"}},
		{Key: "code", Value: bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "x", Value: "y"}}}},
		{Key: "ts", Value: bson.Timestamp{T: 5, I: 6}}, {Key: "max", Value: bson.MaxKey{}}}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, canonical := range []bool{true, false} {
		want, err := bson.MarshalExtJSON(d, canonical, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendExtJSON(nil, Value(raw), !canonical); string(got) != string(want) {
			t.Errorf("canonical %v: %s\nthe driver writes %s", canonical, got, want)
		}
	}
	want, _ := bson.MarshalExtJSON(d, true, false)
	if back, err := FromExtJSON(nil, want); err != nil || !bytes.Equal(back, raw) {
		t.Errorf("%s is stored as %x, the driver has %x (%v)", want, back, raw, err)
	}
}
