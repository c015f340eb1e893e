package value

import (
	"encoding/binary"
	"math"

	"github.com/orrerydb/orrery/core/bson"
)

var bsonTypes = [...]byte{
	Undefined: bson.TypeNull, Null: bson.TypeNull, Bool: bson.TypeBool, Int32: bson.TypeInt32, Int64: bson.TypeInt64,
	Double: bson.TypeDouble, Decimal: bson.TypeDecimal128, String: bson.TypeString, Symbol: bson.TypeSymbol,
	Array: bson.TypeArray, Object: bson.TypeDocument, Binary: bson.TypeBinary, UUID: bson.TypeBinary,
	ObjectID: bson.TypeObjectID, Date: bson.TypeDate, Timestamp: bson.TypeTimestamp, Regex: bson.TypeRegex,
	DBPointer: bson.TypeDBPointer, Code: bson.TypeCode, CodeScope: bson.TypeCodeScope, MinKey: bson.TypeMinKey,
	MaxKey: bson.TypeMaxKey,
}

// BSONType returns the BSON type byte of v. Undefined has the type of null.
func BSONType(v Value) byte {
	if v.kind == Date && v.frac != 0 {
		return bson.TypeBinary
	}
	return bsonTypes[v.kind]
}

// AppendBSON appends the BSON bytes of v, without type and name: ReadValue(BSONType(v), ..) reads them.
func AppendBSON(dst []byte, v Value) []byte {
	switch v.kind {
	case Bool:
		return append(dst, byte(v.n&1))
	case Int32:
		return binary.LittleEndian.AppendUint32(dst, uint32(v.n))
	case Int64, Double, Timestamp:
		return binary.LittleEndian.AppendUint64(dst, v.n)
	case String, Symbol, Code:
		return bson.AppendStringValue(dst, v.b)
	case Binary, UUID:
		return bson.AppendBinaryValue(dst, v.sub, v.b)
	case Date:
		if v.frac != 0 {
			dst = append(dst, 10, 0, 0, 0, SubtypeTicks)
			dst = binary.LittleEndian.AppendUint64(dst, v.n)
			return binary.LittleEndian.AppendUint16(dst, v.frac)
		}
		return binary.LittleEndian.AppendUint64(dst, v.n)
	case Array, Object:
		if len(v.b) < 5 {
			return append(dst, bson.Empty...)
		}
	}
	return append(dst, v.b...) // the stored bytes; nothing for null, MinKey, MaxKey
}

// AppendElement appends v as a BSON element. Undefined appends nothing. name must not contain a NUL.
func AppendElement[N ~string | ~[]byte](dst []byte, name N, v Value) []byte {
	if v.kind == Undefined {
		return dst
	}
	return AppendBSON(bson.AppendHead(dst, BSONType(v), name), v)
}

// AppendIndexed appends v as element i of a BSON array. Undefined is appended as null.
func AppendIndexed(dst []byte, i int, v Value) []byte {
	return AppendBSON(bson.AppendIndexHead(dst, BSONType(v), i), v)
}

// MakeArray returns an array of vs with its own bytes. Undefined values become null.
func MakeArray(vs []Value) Value {
	n := 5
	for i := range vs {
		n += 16 + len(vs[i].b)
	}
	at, b := bson.Begin(make([]byte, 0, n))
	for i := range vs {
		b = AppendIndexed(b, i, vs[i])
	}
	return ArrayOf(bson.End(b, at))
}

// Elements returns the elements of an array as a slice, nil for other kinds.
func Elements(v Value) []Value {
	if v.kind != Array {
		return nil
	}
	out := make([]Value, 0, 8)
	for it := v.Iter(); it.Next(); {
		out = append(out, it.Value())
	}
	return out
}

// A NumberKey is the position of a number v among all numbers. Floor is the greatest double that isn't above v. Frac is
// the rest as floor((v - Floor) / ulp * 2^64), where ulp is the distance from Floor to the next double above it.
//
//	1.5       Floor 1.5, Exact
//	2^53 + 1  Floor 2^53, ulp 2, Frac 2^63 (one half)
type NumberKey struct {
	Floor float64
	Frac  uint64
	Exact bool // v equals Floor
	Lossy bool // v differs from Floor + Frac: a decimal with more digits
}

// KeyOfNumber returns the position of a number. -0 has the position of 0.
func KeyOfNumber(v Value) NumberKey {
	switch v.kind {
	case Int32:
		return NumberKey{Floor: float64(int64(v.n)), Exact: true}
	case Int64:
		return keyOfInt(int64(v.n))
	case Decimal:
		if c := Canonical(v); c.kind != Decimal {
			return KeyOfNumber(c)
		}
		var d bson.Decimal
		d.Read(v.b)
		return keyOfDecimal(&d)
	}
	return NumberKey{Floor: math.Float64frombits(v.n) + 0, Exact: true} // + 0 turns -0 into 0
}

func keyOfInt(i int64) NumberKey {
	f := float64(i)
	if compareIntFloat(i, f) == 0 {
		return NumberKey{Floor: f, Exact: true}
	}
	if compareIntFloat(i, f) < 0 {
		f = math.Nextafter(f, math.Inf(-1))
	}
	return NumberKey{Floor: f, Frac: uint64(i-int64(f)) << fracShift(f)}
}

// fracShift returns s so that 1 equals 2^s units of Frac at the double f. It is defined for doubles whose distance to
// the next double is 2 to 1024.
func fracShift(f float64) int {
	_, e := math.Frexp(math.Nextafter(f, math.Inf(1)) - f)
	return 64 - (e - 1)
}

// IntOfKey returns the integer at the position k, which KeyOfNumber returned for an Int64.
func IntOfKey(k NumberKey) int64 {
	if k.Exact {
		return int64(k.Floor)
	}
	return int64(k.Floor) + int64(k.Frac>>fracShift(k.Floor))
}
