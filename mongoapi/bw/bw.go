// Package bw writes BSON by appending: every function takes the bytes so far and returns them longer. Nothing is buffered or
// reflected, so a reply is made in one pass into one slice.
package bw

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/orrerydb/orrery/core/value"
)

// Begin opens a document (or an array's body) and returns where it began, for End.
func Begin(dst []byte) (int, []byte) { return len(dst), append(dst, 0, 0, 0, 0) }

// End closes the document that began at.
func End(dst []byte, at int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst
}

// Head appends an element's type byte and name.
func Head(dst []byte, typ byte, key string) []byte {
	dst = append(dst, typ)
	dst = append(dst, key...)
	return append(dst, 0)
}

// BeginObject opens an embedded document.
func BeginObject(dst []byte, key string) (int, []byte) { return Begin(Head(dst, 0x03, key)) }

// BeginArray opens an array.
func BeginArray(dst []byte, key string) (int, []byte) { return Begin(Head(dst, 0x04, key)) }

// Int32 appends an int32.
func Int32(dst []byte, key string, i int32) []byte {
	return binary.LittleEndian.AppendUint32(Head(dst, 0x10, key), uint32(i))
}

// Int64 appends an int64.
func Int64(dst []byte, key string, i int64) []byte {
	return binary.LittleEndian.AppendUint64(Head(dst, 0x12, key), uint64(i))
}

// Double appends a double.
func Double(dst []byte, key string, f float64) []byte {
	return binary.LittleEndian.AppendUint64(Head(dst, 0x01, key), math.Float64bits(f))
}

// Bool appends a boolean.
func Bool(dst []byte, key string, b bool) []byte {
	dst = Head(dst, 0x08, key)
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// String appends a string.
func String(dst []byte, key, s string) []byte {
	dst = binary.LittleEndian.AppendUint32(Head(dst, 0x02, key), uint32(len(s)+1))
	dst = append(dst, s...)
	return append(dst, 0)
}

// Date appends a date in milliseconds since 1970.
func Date(dst []byte, key string, ms int64) []byte {
	return binary.LittleEndian.AppendUint64(Head(dst, 0x09, key), uint64(ms))
}

// Null appends a null.
func Null(dst []byte, key string) []byte { return Head(dst, 0x0A, key) }

// Binary appends a binary of subtype 0.
func Binary(dst []byte, key string, b []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(Head(dst, 0x05, key), uint32(len(b)))
	return append(append(dst, 0), b...)
}

// Document appends an embedded document given as BSON.
func Document(dst []byte, key string, bson []byte) []byte {
	return append(Head(dst, 0x03, key), bson...)
}

// Strings appends an array of strings.
func Strings(dst []byte, key string, ss ...string) []byte {
	at, dst := BeginArray(dst, key)
	for i, s := range ss {
		dst = String(dst, strconv.Itoa(i), s)
	}
	return End(dst, at)
}

// Value appends v under key; nothing when v is Undefined.
func Value(dst []byte, key string, v value.Value) []byte {
	t := TypeOf(v)
	if t == 0 {
		return dst
	}
	return AppendRaw(Head(dst, t, key), v)
}

// Key appends v under a name given as bytes; nothing when v is Undefined.
func Key(dst, key []byte, v value.Value) []byte {
	t := TypeOf(v)
	if t == 0 {
		return dst
	}
	dst = append(append(append(dst, t), key...), 0)
	return AppendRaw(dst, v)
}

// Elem appends v as element i of an array; Undefined becomes null.
func Elem(dst []byte, i int, v value.Value) []byte {
	t := TypeOf(v)
	if t == 0 {
		t = 0x0A
	}
	dst = append(dst, t)
	dst = strconv.AppendInt(dst, int64(i), 10)
	return AppendRaw(append(dst, 0), v)
}

// TypeOf returns the BSON type byte of v, 0 for Undefined.
func TypeOf(v value.Value) byte {
	switch v.Kind() {
	case value.Null:
		return 0x0A
	case value.Bool:
		return 0x08
	case value.Int32:
		return 0x10
	case value.Int64:
		return 0x12
	case value.Double:
		return 0x01
	case value.Decimal:
		return 0x13
	case value.String:
		return 0x02
	case value.Symbol:
		return 0x0E
	case value.Array:
		return 0x04
	case value.Object:
		return 0x03
	case value.Binary, value.UUID:
		return 0x05
	case value.ObjectID:
		return 0x07
	case value.Date:
		if v.Ticks() != 0 {
			return 0x05
		}
		return 0x09
	case value.Timestamp:
		return 0x11
	case value.Regex:
		return 0x0B
	case value.DBPointer:
		return 0x0C
	case value.Code:
		return 0x0D
	case value.CodeScope:
		return 0x0F
	case value.MinKey:
		return 0xFF
	case value.MaxKey:
		return 0x7F
	}
	return 0
}

// AppendRaw appends the value bytes of v, without type and name.
func AppendRaw(dst []byte, v value.Value) []byte {
	switch v.Kind() {
	case value.Bool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case value.Int32:
		return binary.LittleEndian.AppendUint32(dst, uint32(v.Int()))
	case value.Int64:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.Int()))
	case value.Double:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float()))
	case value.String, value.Symbol, value.Code:
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v.Bytes())+1))
		return append(append(dst, v.Bytes()...), 0)
	case value.Binary, value.UUID:
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v.Bytes())))
		return append(append(dst, v.Subtype()), v.Bytes()...)
	case value.Date:
		if v.Ticks() == 0 {
			return binary.LittleEndian.AppendUint64(dst, uint64(v.DateMS()))
		}
		dst = append(binary.LittleEndian.AppendUint32(dst, 10), value.SubtypeTicks)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v.DateMS()))
		return binary.LittleEndian.AppendUint16(dst, v.Ticks())
	case value.Timestamp:
		return binary.LittleEndian.AppendUint64(dst, v.Raw64())
	}
	return append(dst, v.Bytes()...) // objects, arrays and all kinds kept as raw BSON; null and the keys have no bytes
}

// Empty is the empty document.
var Empty = []byte{5, 0, 0, 0, 0}

// ArrayValue makes an array of vs.
func ArrayValue(vs []value.Value) value.Value {
	n := 5
	for i := range vs {
		n += 16 + len(vs[i].Bytes())
	}
	at, b := Begin(make([]byte, 0, n))
	for i := range vs {
		b = Elem(b, i, vs[i])
	}
	return value.ArrayOf(End(b, at))
}

// Elements returns the elements of an array as a slice; nil for other kinds.
func Elements(v value.Value) []value.Value {
	if v.Kind() != value.Array {
		return nil
	}
	out := make([]value.Value, 0, 8)
	for it := v.Iter(); it.Next(); {
		out = append(out, it.Value())
	}
	return out
}
