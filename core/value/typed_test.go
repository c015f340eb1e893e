package value

import "testing"

// A value that is written with its type is read back the same, and so is what follows it.
func TestTypedValues(t *testing.T) {
	for _, v := range []Value{Undef(), NullValue(), BoolOf(true), Int32Of(-5), Int64Of(1 << 40), DoubleOf(1.5),
		StringOf("text"), StringOf(""), DateOf(1234, 0), DateOf(1234, 56), MinKeyValue(), MaxKeyValue(),
		MakeArray([]Value{Int32Of(1), StringOf("x")}), UUIDOf(make([]byte, 16)), ObjectIDOf(make([]byte, 12)),
		BinaryOf(5, []byte{1, 2}), TimestampOf(77)} {
		b := AppendTyped([]byte("before"), v)
		got, rest, ok := ReadTyped(append(b, "after"...)[len("before"):])
		if !ok || string(rest) != "after" || got.Kind() != v.Kind() || v.IsDefined() && !Identical(got, v) {
			t.Errorf("%v became %v, %q, %t", v, got, rest, ok)
		}
		for n := len("before"); n < len(b); n++ {
			if _, _, ok := ReadTyped(b[len("before"):n]); ok {
				t.Errorf("%d bytes of %v are a value", n-len("before"), v)
			}
		}
	}
}
