package doc

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// Builder writes one document (or array) front to back into one buffer:
//
//	b.Reset()
//	b.BeginObject()          // the root; BeginArray for an array
//	b.Field("a", v)
//	b.BeginArrayField("xs")
//	b.Elem(v)
//	b.BeginObject()          // inside an array: an element
//	b.End()
//	b.End()
//	b.End()
//	d := b.Doc()              // {"a": v, "xs": [v, {}]}
//
// The zero Builder is ready to use. Each Begin needs its End before Doc is called. Names must not contain a NUL.
// Undefined values are left out, also in arrays. Reset makes the Builder ready for the next document; the results of
// Doc, Array and Object are invalid from then on.
type Builder struct {
	buf  []byte
	open []frame
}

type frame struct {
	at    int // position of the length
	n     int // elements so far, in an array
	array bool
}

// Reset empties the builder and keeps its buffer.
func (b *Builder) Reset() { b.buf, b.open = b.buf[:0], b.open[:0] }

// BeginObject opens the root object, or an object as the next element of the open array.
func (b *Builder) BeginObject() { b.begin(bson.TypeDocument, false) }

// BeginArray opens the root array, or an array as the next element of the open array.
func (b *Builder) BeginArray() { b.begin(bson.TypeArray, true) }

// BeginObjectField opens an object as a field of the open object.
func (b *Builder) BeginObjectField(name string) {
	b.buf = bson.AppendHead(b.buf, bson.TypeDocument, name)
	b.push(false)
}

// BeginArrayField opens an array as a field of the open object.
func (b *Builder) BeginArrayField(name string) {
	b.buf = bson.AppendHead(b.buf, bson.TypeArray, name)
	b.push(true)
}

// Field appends a field to the open object.
func (b *Builder) Field(name string, v value.Value) { b.buf = value.AppendElement(b.buf, name, v) }

// FieldBytes is Field for a name in bytes.
func (b *Builder) FieldBytes(name []byte, v value.Value) { b.buf = value.AppendElement(b.buf, name, v) }

// Element appends a whole BSON element (Iter.Element) to the open object without a change.
func (b *Builder) Element(el []byte) { b.buf = append(b.buf, el...) }

// Fields appends all fields of d to the open object without a change.
func (b *Builder) Fields(d Doc) {
	if len(d) > 5 {
		b.buf = append(b.buf, d[4:len(d)-1]...)
	}
}

// Elem appends an element to the open array.
func (b *Builder) Elem(v value.Value) {
	if v.IsDefined() {
		b.index(value.BSONType(v))
		b.buf = value.AppendBSON(b.buf, v)
	}
}

// End closes the object or array that was opened last.
func (b *Builder) End() {
	f := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	b.buf = bson.End(b.buf, f.at)
}

// Doc returns the finished document. It points into the builder's buffer and is valid until Reset.
func (b *Builder) Doc() Doc { return b.buf[:len(b.buf):len(b.buf)] }

// Array returns the finished root array as a value. It is valid until Reset.
func (b *Builder) Array() value.Value { return value.ArrayOf(b.Doc()) }

// Object returns the finished root object as a value. It is valid until Reset.
func (b *Builder) Object() value.Value { return value.ObjectOf(b.Doc()) }

// Len returns the bytes written so far.
func (b *Builder) Len() int { return len(b.buf) }

func (b *Builder) begin(t byte, array bool) {
	if len(b.open) > 0 {
		b.index(t)
	}
	b.push(array)
}

func (b *Builder) push(array bool) {
	at, buf := bson.Begin(b.buf)
	b.open = append(b.open, frame{at: at, array: array})
	b.buf = buf
}

// index writes the type and the name of the next array element.
func (b *Builder) index(t byte) {
	f := &b.open[len(b.open)-1]
	if !f.array {
		panic("doc: Builder: an element outside an array")
	}
	b.buf = bson.AppendIndexHead(b.buf, t, f.n)
	f.n++
}
