package funcs

import (
	"bytes"
	"math"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Builder builds an array or object value by appending. The zero Builder is ready for use. It copies what is appended,
// as long as that has at most MaxBuilt bytes together.
type Builder struct {
	buf  []byte
	n    int
	over bool // something was left out
}

// MaxBuilt is the size in bytes of the largest array or object that an expression makes. The memory of expressions
// isn't counted in the budget of requests. It is twice that of the largest item, which MongoDB's API writes.
const MaxBuilt = 32 << 20

// ErrTooMuch is the error for a larger one.
var ErrTooMuch = status.New(status.BadRequest, "An array or object of the query is larger than %d bytes.", MaxBuilt)

// Array returns the array of a builder. If it is too large the execution fails.
func (c *Context) Array(b *Builder) value.Value { return c.whole(b, (*Builder).Array) }

// Object returns the object of a builder. If it is too large the execution fails.
func (c *Context) Object(b *Builder) value.Value { return c.whole(b, (*Builder).Object) }

func (c *Context) whole(b *Builder, end func(*Builder) value.Value) value.Value {
	if !b.over {
		return end(b)
	}
	if c.Fail != nil {
		c.Fail(ErrTooMuch)
	}
	return value.Value{}
}

func (b *Builder) start() {
	if b.buf == nil {
		_, b.buf = bson.Begin(make([]byte, 0, 64))
	}
}

// Elem appends an array element; undefined is left out.
func (b *Builder) Elem(v value.Value) {
	if !v.IsDefined() || b.full(v) {
		return
	}
	b.start()
	b.buf = value.AppendIndexed(b.buf, b.n, v)
	b.n++
}

// Field appends an object field; undefined is left out, and so is a name with U+0000, which no stored name has.
func (b *Builder) Field(name string, v value.Value) {
	if !v.IsDefined() || strings.IndexByte(name, 0) >= 0 || b.full(v) {
		return
	}
	b.start()
	b.buf = value.AppendElement(b.buf, name, v)
	b.n++
}

// full reports whether the builder doesn't take a member, because it would be too large.
func (b *Builder) full(v value.Value) bool {
	b.over = b.over || len(b.buf)+len(v.Bytes()) > MaxBuilt
	return b.over
}

// Len returns the number of elements so far.
func (b *Builder) Len() int { return b.n }

func (b *Builder) finish() []byte {
	b.start()
	out := bson.End(b.buf, 0)
	*b = Builder{}
	return out
}

// Array returns the array and empties the builder.
func (b *Builder) Array() value.Value { return value.ArrayOf(b.finish()) }

// Object returns the object and empties the builder.
func (b *Builder) Object() value.Value { return value.ObjectOf(b.finish()) }

// Num returns a computed number as a value. A whole number that a double holds exactly becomes an integer, so that it
// prints without a fraction. NaN and infinities become undefined, because JSON can't hold them.
func Num(f float64) value.Value {
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return value.IntOf(int64(f))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return value.Value{}
	}
	return value.DoubleOf(f)
}

// View returns a stored value as the language shows it. Dates become ISO text, UUIDs text and binaries base64 text.
// Values of other kinds that JSON lacks become Extended JSON objects. Arrays and objects are returned unchanged: View
// applies to their members when these are read.
func View(v value.Value) value.Value {
	switch v.Kind() {
	case value.Undefined, value.Null, value.Bool, value.Int32, value.Int64, value.Double, value.String, value.Array,
		value.Object:
		return v
	}
	out, err := doc.ValueFromJSON(doc.AppendJSON(nil, v))
	if err != nil {
		return value.NullValue()
	}
	return out
}

// DeepView is View for a value and all values inside it. It copies only when a value inside changes.
func DeepView(v value.Value) value.Value {
	switch v.Kind() {
	case value.Array, value.Object:
		if plain(v) {
			return v
		}
		out, err := doc.ValueFromJSON(doc.AppendJSON(nil, v))
		if err != nil {
			return value.NullValue()
		}
		return out
	}
	return View(v)
}

// One returns the representative of all values that equal v, as the language shows it: a whole double becomes an
// integer, also inside arrays and objects. Example: One(1.0) is 1. DISTINCT, GROUP BY, MIN, MAX and MAKESET return it,
// so that their results don't depend on which of 1 and 1.0 they read first.
func One(v value.Value) value.Value {
	switch v = DeepView(v); v.Kind() {
	case value.Double:
		return value.Canonical(v)
	case value.Array, value.Object:
		if !anyWhole(v) {
			return v
		}
		var b Builder
		for it := v.Iter(); it.Next(); {
			if v.Kind() == value.Array {
				b.Elem(One(it.Value()))
			} else {
				b.Field(string(it.Key()), One(it.Value()))
			}
		}
		if v.Kind() == value.Array {
			return b.Array()
		}
		return b.Object()
	}
	return v
}

// anyWhole reports whether v holds a whole double.
func anyWhole(v value.Value) bool {
	for it := v.Iter(); it.Next(); {
		switch e := it.Value(); e.Kind() {
		case value.Double:
			if f := e.Float(); f == math.Trunc(f) {
				return true
			}
		case value.Array, value.Object:
			if anyWhole(e) {
				return true
			}
		}
	}
	return false
}

// plain reports whether v holds only kinds that JSON has.
func plain(v value.Value) bool {
	for it := v.Iter(); it.Next(); {
		switch e := it.Value(); e.Kind() {
		case value.Null, value.Bool, value.Int32, value.Int64, value.Double, value.String:
		case value.Array, value.Object:
			if !plain(e) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// Equal is the language's deep equality of two defined values; different types are not equal.
func Equal(a, b value.Value) bool {
	switch a.Kind() {
	case value.String:
		return b.Kind() == value.String && bytes.Equal(a.Bytes(), b.Bytes())
	case value.Array, value.Object:
		if b.Kind() != a.Kind() {
			return false
		}
		return value.EqualCosmos(DeepView(a), DeepView(b))
	}
	return value.EqualCosmos(a, b)
}

// elems returns the elements of an array, each as View shows it.
func elems(v value.Value) []value.Value {
	var out []value.Value
	for it := v.Iter(); it.Next(); {
		out = append(out, View(it.Value()))
	}
	return out
}

func boolean(b bool) value.Value { return value.BoolOf(b) }

func optBool(a []value.Value, i int) bool { return len(a) > i && a[i].Bool() }
