// Package value defines values: their kinds, scalars, and the orders and equalities of Cosmos and BSON.
//
// A Value is a view: strings, binaries, arrays and objects point into the bytes of the document that they were read
// from (BSON, see core/doc), so reading a field allocates nothing. To keep a Value longer than its document, copy it
// with Clone.
package value

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/orrerydb/orrery/core/bson"
)

// Kind is the type of a Value. The order of the constants has no meaning: see CompareCosmos and CompareBSON.
type Kind uint8

// The kinds: those of BSON, and Undefined for a missing value. BSON's deprecated undefined (0x06) is read as Null, a
// binary of subtype 4 as UUID, and a date with a fraction of a millisecond (see SubtypeTicks) as Date.
const (
	Undefined Kind = iota
	Null
	Bool
	Int32
	Int64
	Double
	Decimal // IEEE 754 decimal128: 16 bytes, little endian
	String
	Symbol
	Array
	Object
	Binary
	UUID
	ObjectID
	Date
	Timestamp
	Regex
	DBPointer
	Code
	CodeScope
	MinKey
	MaxKey
)

// Subtypes of BSON binaries with a meaning here.
const (
	SubtypeGeneric = 0x00
	SubtypeOld     = bson.SubtypeOld // Bytes begins with a second length, that of the data after it
	SubtypeUUID    = 0x04
	// SubtypeTicks holds an Edm.DateTime that is not a whole millisecond: int64 milliseconds since 1970 and uint16
	// units of 100 ns (1..9999), little endian, 10 bytes.
	SubtypeTicks = 0xF1
)

// Value is one value. The zero Value is Undefined.
type Value struct {
	kind Kind
	sub  uint8  // subtype of a Binary
	frac uint16 // Date: 100 ns units within the millisecond
	n    uint64 // Bool, Int32, Int64, Double (bits), Date (ms), Timestamp
	// String, Symbol, Code: the text. Binary, UUID, ObjectID, Decimal: the bytes. Array, Object: BSON. Other kinds: the
	// raw BSON value.
	b []byte
}

// Constructors. Those that take bytes keep a reference: the caller must not change the bytes afterwards.

// Undef returns Undefined.
func Undef() Value { return Value{} }

// NullValue returns null.
func NullValue() Value { return Value{kind: Null} }

// BoolOf returns a boolean.
func BoolOf(b bool) Value {
	v := Value{kind: Bool}
	if b {
		v.n = 1
	}
	return v
}

// Int32Of returns a 32-bit integer.
func Int32Of(i int32) Value { return Value{kind: Int32, n: uint64(int64(i))} }

// Int64Of returns a 64-bit integer.
func Int64Of(i int64) Value { return Value{kind: Int64, n: uint64(i)} }

// IntOf returns an Int32 when i fits, else an Int64: the rule for numbers that come from JSON.
func IntOf(i int64) Value {
	if i >= math.MinInt32 && i <= math.MaxInt32 {
		return Int32Of(int32(i))
	}
	return Int64Of(i)
}

// DoubleOf returns a double.
func DoubleOf(f float64) Value { return Value{kind: Double, n: math.Float64bits(f)} }

// StringOf returns a string that shares the bytes of s. The bytes of a value must not be modified.
func StringOf(s string) Value {
	return Value{kind: String, b: unsafe.Slice(unsafe.StringData(s), len(s))}
}

// StringBytes returns a string that points to b.
func StringBytes(b []byte) Value { return Value{kind: String, b: b} }

// ArrayOf returns an array of the given BSON array bytes (core/doc builds them).
func ArrayOf(b []byte) Value { return Value{kind: Array, b: b} }

// ObjectOf returns an object of the given BSON document bytes.
func ObjectOf(b []byte) Value { return Value{kind: Object, b: b} }

// BinaryOf returns a binary. Subtype 4 with 16 bytes becomes a UUID. SubtypeTicks with 10 bytes and at most 9999 ticks
// becomes a Date; other bytes of that subtype, which a Mongo client may write, stay a binary.
func BinaryOf(subtype byte, b []byte) Value {
	switch {
	case subtype == SubtypeUUID && len(b) == 16:
		return Value{kind: UUID, sub: subtype, b: b}
	case subtype == SubtypeTicks && len(b) == 10 && binary.LittleEndian.Uint16(b[8:]) < 10000:
		return Value{kind: Date, n: binary.LittleEndian.Uint64(b), frac: binary.LittleEndian.Uint16(b[8:])}
	}
	return Value{kind: Binary, sub: subtype, b: b}
}

// UUIDOf returns a UUID; b has 16 bytes.
func UUIDOf(b []byte) Value { return Value{kind: UUID, sub: SubtypeUUID, b: b} }

// ObjectIDOf returns an ObjectId; b has 12 bytes.
func ObjectIDOf(b []byte) Value { return Value{kind: ObjectID, b: b} }

// DateOf returns a date: milliseconds since 1970 UTC, and units of 100 ns (0..9999) within the millisecond.
func DateOf(ms int64, frac uint16) Value { return Value{kind: Date, n: uint64(ms), frac: frac} }

// DecimalOf returns a decimal128; b has its 16 BSON bytes.
func DecimalOf(b []byte) Value { return Value{kind: Decimal, b: b} }

// TimestampOf returns a BSON timestamp.
func TimestampOf(t uint64) Value { return Value{kind: Timestamp, n: t} }

// MinKeyValue returns BSON's least value.
func MinKeyValue() Value { return Value{kind: MinKey} }

// MaxKeyValue returns BSON's greatest value.
func MaxKeyValue() Value { return Value{kind: MaxKey} }

// Kind returns the kind.
func (v Value) Kind() Kind { return v.kind }

// IsDefined reports whether v is not Undefined.
func (v Value) IsDefined() bool { return v.kind != Undefined }

// IsNumber reports whether v is an Int32, Int64, Double or Decimal.
func (v Value) IsNumber() bool { return v.kind >= Int32 && v.kind <= Decimal }

// Bool returns the boolean, false for other kinds.
func (v Value) Bool() bool { return v.kind == Bool && v.n != 0 }

// Int returns an Int32 or Int64 as int64, 0 for other kinds.
func (v Value) Int() int64 {
	if v.kind == Int32 || v.kind == Int64 {
		return int64(v.n)
	}
	return 0
}

// Float returns an Int32, Int64 or Double as float64, 0 for other kinds. Number also reads decimals.
func (v Value) Float() float64 {
	switch v.kind {
	case Int32, Int64:
		return float64(int64(v.n))
	case Double:
		return math.Float64frombits(v.n)
	}
	return 0
}

// Str returns a copy of the text of a String, Symbol or Code, "" for other kinds.
func (v Value) Str() string {
	switch v.kind {
	case String, Symbol, Code:
		return string(v.b)
	}
	return ""
}

// Bytes returns the bytes that v points to: the text of a String, the bytes of a Binary, UUID, ObjectID or Decimal, the
// BSON of an Array or Object. They must not be modified, and are valid as long as the document.
func (v Value) Bytes() []byte { return v.b }

// Subtype returns the subtype of a Binary.
func (v Value) Subtype() byte { return v.sub }

// DateMS returns the milliseconds since 1970 UTC of a Date.
func (v Value) DateMS() int64 { return int64(v.n) }

// Ticks returns the units of 100 ns (0..9999) within the millisecond of a Date.
func (v Value) Ticks() uint16 { return v.frac }

// Raw64 returns the 64 bits of a Timestamp.
func (v Value) Raw64() uint64 { return v.n }

// Clone returns a copy of v with its own bytes.
//
//go:noinline // called from many places, see decision 41
func (v Value) Clone() Value {
	if v.b != nil {
		v.b = append(make([]byte, 0, len(v.b)), v.b...)
	}
	return v
}

// Get returns a field of an Object, or Undefined if v isn't an object or has no such field. If the name occurs twice,
// the first field counts.
func (v Value) Get(name string) Value {
	if v.kind != Object {
		return Value{}
	}
	return Lookup(v.b, name)
}

// Lookup returns the first field called name of a BSON document (or the element of an array with that stored key), or
// Undefined. It makes no Value for the fields before it.
func Lookup(doc []byte, name string) Value {
	if len(doc) < 5 {
		return Value{}
	}
	for r := doc[4 : len(doc)-1]; len(r) > 1; {
		t, k := r[0], 1
		for k < len(r) && r[k] != 0 {
			k++
		}
		if k == len(r) {
			break
		}
		key := r[1:k]
		r = r[k+1:]
		if len(key) == len(name) && string(key) == name {
			v, _, _ := ReadValue(t, r)
			return v
		}
		n := bson.SizeOf(t, r)
		if n < 0 || n > len(r) {
			break
		}
		r = r[n:]
	}
	return Value{}
}

// LookupEach sets out[i] to the first field called names[i] of a BSON document, for each of the names, which differ.
// It reads the document once, and only up to the last of them. A value that isn't there is Undefined.
func LookupEach(doc []byte, names []string, out []Value) {
	clear(out[:len(names)])
	if len(doc) < 5 {
		return
	}
	left := len(names)
	for r := doc[4 : len(doc)-1]; len(r) > 1 && left > 0; {
		t, k := r[0], 1
		for k < len(r) && r[k] != 0 {
			k++
		}
		if k == len(r) {
			return
		}
		key := r[1:k]
		r = r[k+1:]
		for i, name := range names {
			if len(key) == len(name) && string(key) == name && !out[i].IsDefined() {
				out[i], _, _ = ReadValue(t, r)
				left--
				break
			}
		}
		n := bson.SizeOf(t, r)
		if n < 0 || n > len(r) {
			return
		}
		r = r[n:]
	}
}

// At returns element i of an Array, or Undefined if v isn't an array or i is out of range.
func (v Value) At(i int) Value {
	if v.kind != Array || i < 0 {
		return Value{}
	}
	for it := v.Iter(); it.Next(); i-- {
		if i == 0 {
			return it.val
		}
	}
	return Value{}
}

// Len returns the number of elements of an Array or fields of an Object.
func (v Value) Len() int {
	n := 0
	for it := v.Iter(); it.Next(); {
		n++
	}
	return n
}

// Iter returns an iterator over the elements of an Array or the fields of an Object. It is empty for other kinds.
func (v Value) Iter() Iter {
	if (v.kind != Array && v.kind != Object) || len(v.b) < 5 {
		return Iter{}
	}
	return Iter{rest: v.b[4 : len(v.b)-1]}
}

// Iter iterates over an array or object: for it := v.Iter(); it.Next(); { it.Key(), it.Value() }.
type Iter struct {
	rest []byte
	el   []byte
	key  []byte
	val  Value
}

// Next moves to the next element. It returns false at the end and at malformed bytes (documents are validated on
// input).
func (it *Iter) Next() bool {
	b := it.rest
	for i := 1; i < len(b); i++ {
		if b[i] != 0 {
			continue
		}
		n := it.val.read(b[0], b[i+1:])
		if n < 0 {
			break
		}
		n += i + 1
		it.el, it.key, it.rest = b[:n], b[1:i], b[n:]
		return true
	}
	it.rest = nil
	return false
}

// Key returns the field name, or the decimal index in an array.
func (it *Iter) Key() []byte { return it.key }

// Value returns the element's value.
func (it *Iter) Value() Value { return it.val }

// Element returns the whole BSON element: type byte, name, NUL, value.
func (it *Iter) Element() []byte { return it.el }

// ReadElement reads one BSON element (type byte, name, NUL, value) from the front of b.
func ReadElement(b []byte) (key []byte, v Value, rest []byte, ok bool) {
	name, end, ok := bson.Element(b)
	if !ok {
		return nil, Value{}, nil, false
	}
	v, _, ok = ReadValue(b[0], b[name+1:end])
	return b[1:name], v, b[end:], ok
}

// read sets v to the BSON value of type t at the front of b and returns its size, -1 for malformed bytes. It is
// ReadValue without copying the result, for the kinds of JSON, which are the most frequent.
func (v *Value) read(t byte, b []byte) int {
	switch t {
	case bson.TypeString:
		if len(b) >= 5 {
			if n := int(int32(binary.LittleEndian.Uint32(b))); n >= 1 && n <= len(b)-4 {
				*v = Value{kind: String, b: b[4 : n+3 : n+4]}
				return n + 4
			}
		}
		return -1
	case bson.TypeDocument, bson.TypeArray:
		if len(b) >= 5 {
			if n := int(int32(binary.LittleEndian.Uint32(b))); n >= 5 && n <= len(b) {
				if *v = (Value{kind: Object, b: b[:n:n]}); t == bson.TypeArray {
					v.kind = Array
				}
				return n
			}
		}
		return -1
	case bson.TypeDouble:
		if len(b) >= 8 {
			*v = Value{kind: Double, n: binary.LittleEndian.Uint64(b)}
			return 8
		}
		return -1
	case bson.TypeInt32:
		if len(b) >= 4 {
			*v = Value{kind: Int32, n: uint64(int64(int32(binary.LittleEndian.Uint32(b))))}
			return 4
		}
		return -1
	}
	val, rest, ok := ReadValue(t, b)
	if !ok {
		return -1
	}
	*v = val
	return len(b) - len(rest)
}

// ReadValue reads a BSON value of type t from the front of b.
func ReadValue(t byte, b []byte) (v Value, rest []byte, ok bool) {
	n := bson.SizeOf(t, b)
	if n < 0 || n > len(b) {
		return Value{}, nil, false
	}
	p, rest := b[:n:n], b[n:]
	switch t {
	case bson.TypeDouble:
		v = Value{kind: Double, n: binary.LittleEndian.Uint64(p)}
	case bson.TypeString:
		v = Value{kind: String, b: p[4 : n-1]}
	case bson.TypeDocument:
		v = Value{kind: Object, b: p}
	case bson.TypeArray:
		v = Value{kind: Array, b: p}
	case bson.TypeBinary:
		v = BinaryOf(p[4], p[5:])
	case bson.TypeUndefined, bson.TypeNull:
		v = Value{kind: Null}
	case bson.TypeObjectID:
		v = Value{kind: ObjectID, b: p}
	case bson.TypeBool:
		v = Value{kind: Bool, n: uint64(p[0])}
	case bson.TypeDate:
		v = Value{kind: Date, n: binary.LittleEndian.Uint64(p)}
	case bson.TypeRegex:
		v = Value{kind: Regex, b: p}
	case bson.TypeDBPointer:
		v = Value{kind: DBPointer, b: p}
	case bson.TypeCode:
		v = Value{kind: Code, b: p[4 : n-1]}
	case bson.TypeSymbol:
		v = Value{kind: Symbol, b: p[4 : n-1]}
	case bson.TypeCodeScope:
		v = Value{kind: CodeScope, b: p}
	case bson.TypeInt32:
		v = Value{kind: Int32, n: uint64(int64(int32(binary.LittleEndian.Uint32(p))))}
	case bson.TypeTimestamp:
		v = Value{kind: Timestamp, n: binary.LittleEndian.Uint64(p)}
	case bson.TypeInt64:
		v = Value{kind: Int64, n: binary.LittleEndian.Uint64(p)}
	case bson.TypeDecimal128:
		v = Value{kind: Decimal, b: p}
	case bson.TypeMinKey:
		v = Value{kind: MinKey}
	case bson.TypeMaxKey:
		v = Value{kind: MaxKey}
	default:
		return Value{}, nil, false
	}
	return v, rest, true
}
