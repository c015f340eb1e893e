package bson

import (
	"bytes"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// all returns a document with an element of each type.
func all() []byte {
	at, b := Begin(nil)
	b = AppendDouble(b, "double", 1.5)
	b = AppendString(b, "string", "é")
	b = AppendDocument(b, "empty", Empty)
	in, b := BeginObject(b, "object")
	b = End(AppendInt32(b, "i", -1), in)
	b = AppendStrings(b, "strings", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k")
	in, b = BeginArray(b, "array")
	for i := range 101 {
		b = AppendIndexHead(b, TypeNull, i)
	}
	b = End(b, in)
	b = AppendBinary(b, "binary", []byte{1, 2})
	b = append(AppendHead(b, TypeObjectID, []byte("oid")), "123456789012"...)
	b = AppendBool(b, "true", true)
	b = AppendBool(b, "false", false)
	b = AppendDate(b, "date", -1)
	b = AppendNull(b, "null")
	b = append(AppendHead(b, TypeRegex, "regex"), "a.*\x00im\x00"...)
	b = AppendDBPointerValue(AppendHead(b, TypeDBPointer, "pointer"), []byte("db.c"), []byte("123456789012"))
	b = AppendStringValue(AppendHead(b, TypeCode, "code"), "f()")
	b = AppendStringValue(AppendHead(b, TypeSymbol, "symbol"), []byte("s"))
	b = AppendCodeScopeValue(AppendHead(b, TypeCodeScope, "scope"), []byte("g()"), Empty)
	b = AppendInt32(b, "int32", -2)
	b = append(AppendHead(b, TypeTimestamp, "ts"), 1, 0, 0, 0, 2, 0, 0, 0)
	b = AppendInt64(b, "int64", -3)
	b = append(AppendHead(b, TypeDecimal128, "decimal"), make([]byte, 16)...)
	b = AppendHead(b, TypeMinKey, "min")
	b = AppendHead(b, TypeMaxKey, "max")
	return End(b, at)
}

// TestWriter: the official driver reads what the writer has written.
func TestWriter(t *testing.T) {
	raw := driver.Raw(all())
	if err := raw.Validate(); err != nil {
		t.Fatal(err)
	}
	if msg := Validate(raw, 2); msg != "" {
		t.Fatal(msg)
	}
	if got := raw.Lookup("string").StringValue(); got != "é" {
		t.Error(got)
	}
	if got := raw.Lookup("object", "i").Int32(); got != -1 {
		t.Error(got)
	}
	if got := raw.Lookup("strings", "10").StringValue(); got != "k" {
		t.Error(got)
	}
	if got := raw.Lookup("array", "100").Type; got != driver.TypeNull {
		t.Error(got)
	}
	if ns, id := raw.Lookup("pointer").DBPointer(); ns != "db.c" || string(id[:]) != "123456789012" {
		t.Error(ns, id)
	}
	if code, scope := raw.Lookup("scope").CodeWithScope(); code != "g()" || !bytes.Equal(scope, Empty) {
		t.Error(code, scope)
	}
}

func TestParts(t *testing.T) {
	b := all()
	parts := map[string][]byte{}
	n := 0
	for r := b[4 : len(b)-1]; len(r) > 0; n++ {
		name, end, ok := Element(r)
		if !ok {
			t.Fatalf("element %d is malformed", n)
		}
		parts[string(r[1:name])] = r[name+1 : end]
		r = r[end:]
	}
	if n != 23 {
		t.Errorf("%d elements", n)
	}
	if p, o := RegexParts(parts["regex"]); string(p) != "a.*" || string(o) != "im" {
		t.Error(p, o)
	}
	if ns, id := DBPointerParts(parts["pointer"]); string(ns) != "db.c" || string(id) != "123456789012" {
		t.Error(ns, id)
	}
	if code, scope := CodeScopeParts(parts["scope"]); string(code) != "g()" || !bytes.Equal(scope, Empty) {
		t.Error(code, scope)
	}
	for _, short := range [][]byte{nil, make([]byte, 3), make([]byte, 13)} {
		p, o := RegexParts(short[:min(1, len(short))])
		ns, id := DBPointerParts(short)
		code, scope := CodeScopeParts(short)
		if p != nil || o != nil || ns != nil || id != nil || code != nil || scope != nil {
			t.Errorf("%d bytes have parts", len(short))
		}
	}
}

// TestCut: if a document is truncated or one byte is changed, no reader goes beyond its end, and the official driver
// accepts every document that the check accepts.
func TestCut(t *testing.T) {
	whole := all()
	for n := range whole {
		for r := whole[min(4, n):n:n]; ; {
			name, end, ok := Element(r)
			if !ok {
				break
			}
			if name < 1 || end <= name || end > len(r) {
				t.Fatalf("cut at %d: an element of %d and %d of %d bytes", n, name, end, len(r))
			}
			r = r[end:]
		}
		if Validate(whole[:n], 9) == "" {
			t.Errorf("cut at %d it is a document", n)
		}
		for _, x := range []byte{0x01, 0x80, 0xFF} {
			b := bytes.Clone(whole)
			b[n] ^= x
			if Validate(b, 9) == "" {
				if err := driver.Raw(b).Validate(); err != nil {
					t.Errorf("byte %d changed to %#x: %v", n, b[n], err)
				}
			}
		}
	}
}

// A double at the front is split off as Element does it. Any other element, or a truncated double, is not.
func TestCutDouble(t *testing.T) {
	b := AppendInt32(AppendDouble(nil, "10", 2.5), "11", 7)
	f, rest, ok := CutDouble(b)
	_, end, _ := Element(b)
	if !ok || f != 2.5 || !bytes.Equal(rest, b[end:]) {
		t.Errorf("%v % x %v", f, rest, ok)
	}
	for _, none := range [][]byte{nil, rest, {TypeDouble}, {TypeDouble, '1'}, {TypeDouble, '1', 0}, b[:11]} {
		if f, _, ok := CutDouble(none); ok {
			t.Errorf("% x is %v", none, f)
		}
	}
}

// TestDeeper compares Deeper with Validate, which counts the same levels.
func TestDeeper(t *testing.T) {
	nested := func(n int, scope bool) []byte {
		b := Empty
		for range n - 1 {
			at, out := Begin(nil)
			out = AppendInt32(out, "i", 1)
			if scope {
				out = AppendCodeScopeValue(AppendHead(out, TypeCodeScope, "s"), []byte("f"), b)
			} else {
				out = append(AppendHead(out, TypeArray, "a"), b...)
			}
			b = End(AppendString(out, "z", "z"), at)
		}
		return b
	}
	for _, scope := range []bool{false, true} {
		for n := 1; n < 12; n++ {
			b := nested(n, scope)
			for depth := 1; depth < 12; depth++ {
				var path []string
				if got, want := Deeper(b, depth, &path), Validate(b, depth) == TooDeep; got != want ||
					got && len(path) != depth {
					t.Errorf("%d levels, more than %d: %v, path %v", n, depth, got, path)
				}
			}
		}
	}
}
