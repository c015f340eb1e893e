package value

import (
	"encoding/binary"
	"math"
)

var bsonTypes = [...]byte{
	Undefined: 0x0A, Null: 0x0A, Bool: 0x08, Int32: 0x10, Int64: 0x12, Double: 0x01, Decimal: 0x13, String: 0x02, Symbol: 0x0E,
	Array: 0x04, Object: 0x03, Binary: 0x05, UUID: 0x05, ObjectID: 0x07, Date: 0x09, Timestamp: 0x11, Regex: 0x0B, DBPointer: 0x0C,
	Code: 0x0D, CodeScope: 0x0F, MinKey: 0xFF, MaxKey: 0x7F,
}

// BSONType returns the BSON type byte of v; Undefined has null's.
func BSONType(v Value) byte {
	if v.kind == Date && v.frac != 0 {
		return 0x05
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
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v.b)+1))
		return append(append(dst, v.b...), 0)
	case Binary, UUID:
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v.b)))
		return append(append(dst, v.sub), v.b...)
	case Date:
		if v.frac != 0 {
			dst = append(dst, 10, 0, 0, 0, SubtypeTicks)
			dst = binary.LittleEndian.AppendUint64(dst, v.n)
			return binary.LittleEndian.AppendUint16(dst, v.frac)
		}
		return binary.LittleEndian.AppendUint64(dst, v.n)
	case Array, Object:
		if len(v.b) < 5 {
			return append(dst, 5, 0, 0, 0, 0)
		}
	}
	return append(dst, v.b...) // what is kept as it is stored; nothing for null, MinKey, MaxKey
}

// A NumberKey is the position of a number among all numbers: Floor is the greatest double that isn't above it, Frac the rest as
// floor((v - Floor) / ulp * 2^64), where ulp is the distance from Floor to the next double above.
type NumberKey struct {
	Floor float64
	Frac  uint64
	Exact bool // v is Floor
	Lossy bool // v isn't Floor + Frac: a decimal with more digits
}

// KeyOfNumber returns the position of a number. -0 gives 0.
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
		return keyOfDecimal(decimalOf(v.b))
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

// fracShift returns s so that 1 is 2^s parts of the distance from f to the next double: for doubles whose distance is 2 to 1024.
func fracShift(f float64) int {
	_, e := math.Frexp(math.Nextafter(f, math.Inf(1)) - f)
	return 64 - (e - 1)
}

// IntOfKey returns the integer at a position that KeyOfNumber gave for an Int64.
func IntOfKey(k NumberKey) int64 {
	if k.Exact {
		return int64(k.Floor)
	}
	return int64(k.Floor) + int64(k.Frac>>fracShift(k.Floor))
}
