// Package bson is the byte format of BSON (bsonspec.org): element types, sizes, a check of untrusted bytes, a writer
// that appends, and decimal128. It knows nothing of what values mean: core/value is the view over these bytes, core/doc
// the codec of documents.
package bson

import (
	"encoding/binary"
	"math"
)

// The types of elements.
const (
	TypeDouble     = 0x01
	TypeString     = 0x02
	TypeDocument   = 0x03
	TypeArray      = 0x04
	TypeBinary     = 0x05
	TypeUndefined  = 0x06 // deprecated
	TypeObjectID   = 0x07
	TypeBool       = 0x08
	TypeDate       = 0x09
	TypeNull       = 0x0A
	TypeRegex      = 0x0B
	TypeDBPointer  = 0x0C // deprecated
	TypeCode       = 0x0D
	TypeSymbol     = 0x0E // deprecated
	TypeCodeScope  = 0x0F // deprecated
	TypeInt32      = 0x10
	TypeTimestamp  = 0x11
	TypeInt64      = 0x12
	TypeDecimal128 = 0x13
	TypeMinKey     = 0xFF
	TypeMaxKey     = 0x7F
)

// SubtypeOld is the deprecated subtype of binaries whose bytes begin with a second length, of the data behind it.
const SubtypeOld = 0x02

// Empty is the document without fields, which is the array without elements too. Nobody may write to it.
var Empty = []byte{5, 0, 0, 0, 0}

// SizeOf returns the bytes of a value of type t at the front of b, -1 when they can't be right. The answer may be more
// than len(b): the caller checks.
func SizeOf(t byte, b []byte) int {
	switch t {
	case TypeUndefined, TypeNull, TypeMinKey, TypeMaxKey:
		return 0
	case TypeBool:
		return 1
	case TypeInt32:
		return 4
	case TypeDouble, TypeDate, TypeTimestamp, TypeInt64:
		return 8
	case TypeObjectID:
		return 12
	case TypeDecimal128:
		return 16
	case TypeRegex: // two C strings
		for i, nul := 0, 0; i < len(b); i++ {
			if b[i] == 0 {
				if nul++; nul == 2 {
					return i + 1
				}
			}
		}
		return -1
	}
	if len(b) < 4 {
		return -1
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	least, more := 1, 4 // a string's length counts its NUL
	switch t {
	case TypeString, TypeCode, TypeSymbol:
	case TypeDocument, TypeArray, TypeCodeScope:
		least, more = 5, 0
	case TypeBinary:
		least, more = 0, 5
	case TypeDBPointer:
		more = 4 + 12
	default:
		return -1
	}
	if n < least {
		return -1
	}
	return n + more
}

// Element returns where the parts of the element at the front of b end: its name, b[1:name], and the whole, whose value
// is b[name+1:end]. ok is false at the end of a document and for malformed bytes.
func Element(b []byte) (name, end int, ok bool) {
	for name = 1; name < len(b); name++ {
		if b[name] != 0 {
			continue
		}
		n := SizeOf(b[0], b[name+1:])
		return name, name + 1 + n, n >= 0 && n < len(b)-name
	}
	return 0, 0, false
}

// CutDouble reads the double at the front of the elements b, and returns the elements behind it; ok is false where
// there is none. It is Element for readers of long arrays of numbers.
func CutDouble(b []byte) (f float64, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != TypeDouble {
		return 0, nil, false
	}
	k := 1
	for k < len(b) && b[k] != 0 {
		k++
	}
	if k+9 > len(b) {
		return 0, nil, false
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b[k+1:])), b[k+9:], true
}

// RegexParts returns pattern and options of the value of a regular expression.
func RegexParts(v []byte) (pattern, options []byte) {
	for i, c := range v {
		if c == 0 && i+2 <= len(v) {
			return v[:i], v[i+1 : len(v)-1]
		}
	}
	return nil, nil
}

// DBPointerParts returns namespace and ObjectId of the value of a DBPointer; nil for malformed bytes.
func DBPointerParts(v []byte) (ns, id []byte) {
	if len(v) < 17 {
		return nil, nil
	}
	return v[4 : len(v)-13], v[len(v)-12:]
}

// CodeScopeParts returns code and scope document of the value of code with a scope; nil for malformed bytes.
func CodeScopeParts(v []byte) (code, scope []byte) {
	if len(v) < 14 {
		return nil, nil
	}
	n := int(int32(binary.LittleEndian.Uint32(v[4:])))
	if n < 1 || n > len(v)-8-5 {
		return nil, nil
	}
	return v[8 : 8+n-1], v[8+n:]
}
