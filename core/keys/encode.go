package keys

import (
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Values inside keys. Both encodings begin with the class byte of package value, whose order is Cosmos's. They are
// self-delimiting and sort by bytes.Compare. All integers are big endian.
//
//	class      exact                                   index
//	MinKey     -                                       -
//	Undefined  -                                       -
//	Null       -                                       -
//	Bool       0 or 1                                  same
//	Number     floor(8) 00 | floor(8) 01 frac(8)       floor(8) 00 | floor(8) 01 frac(8)
//	           then 00 (Int64) or 01 decimal(17)
//	String     text with 00 as 00 FF, then 00 01       same up to 256 bytes; else their first 256, 00 02, xxhash(8)
//	Array      its elements, then 00                   -
//	Object     for each field 01, name, 00, value;     -
//	           then 00
//	UUID       16 bytes                                same
//	Binary     length(4), subtype, bytes               same up to 256 bytes; else their first 256, xxhash(8)
//	ObjectID   12 bytes                                same
//	Date       ms(8, sign flipped) ticks(2)            same
//	Timestamp  8 bytes                                 same
//	Regex      as String, over pattern 00 options 00   as String
//	Other      kind, then as String; code with scope   kind, then as String; code with scope
//	           has the scope as an Object after it     only its code, always as if cut
//	MaxKey     -                                       -
//
// floor is the greatest double not above the number, as sortable bits (value.NumberKey). frac is the exact rest. NaN is
// all zeros.
//
// Examples of exact encodings:
//
//	1         20 BFF0000000000000 00
//	2^53 + 1  20 C340000000000000 01 8000000000000000 00   (floor 2^53, plus half of the distance 2)
//	"a\0b"    28 61 00 FF 62 00 01
//	[1]       30 20 BFF0000000000000 00 00
//
// The exact encoding is lossless. Two values have equal exact encodings if and only if value.EqualBSON calls them
// equal, except for Undefined, which has its own class here. The index encoding is short. Where it is lossy, unequal
// values may share an entry, and entries with the same kept bytes are not in the order of their values.

// cutAt is how many bytes of a string or binary an index entry keeps.
const cutAt = 256

// Marks after an escaped text. An escaped 00 is 00 FF, which sorts above both marks.
const (
	markEnd = 0x01
	markCut = 0x02
)

// otherKinds are the kinds of value.ClassOther, by the first byte of their payload.
var otherKinds = [...]value.Kind{1: value.DBPointer, 2: value.Code, 3: value.CodeScope}

func otherByte(k value.Kind) byte {
	for i, o := range otherKinds {
		if i > 0 && o == k {
			return byte(i)
		}
	}
	return 0
}

// Class returns the class byte with which the encodings of v begin.
func Class(v value.Value) byte { return v.Class() }

// ClassRange returns the bounds of all encodings of a class: lo is inside the range, hi is above it.
func ClassRange(class byte) (lo, hi []byte) { return []byte{class}, []byte{class + 1} }

// AppendExact appends the exact encoding of v. It is used for partition key tuples and ids inside keys.
func AppendExact(dst []byte, v value.Value) []byte {
	class := v.Class()
	dst = append(dst, class)
	switch class {
	case value.ClassNumber:
		return appendNumberExact(dst, v)
	case value.ClassString, value.ClassRegex:
		return append(appendEscaped(dst, v.Bytes()), 0, markEnd)
	case value.ClassArray:
		for it := v.Iter(); it.Next(); {
			dst = AppendExact(dst, it.Value())
		}
		return append(dst, 0)
	case value.ClassObject:
		return appendObjectExact(dst, v)
	case value.ClassBinary:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(v.Bytes())))
		return append(append(dst, v.Subtype()), v.Bytes()...)
	case value.ClassOther:
		dst = append(dst, otherByte(v.Kind()))
		if v.Kind() == value.CodeScope {
			code, scope := v.CodeScopeParts()
			dst = append(appendEscaped(dst, code), 0, markEnd)
			return appendObjectExact(dst, value.ObjectOf(scope))
		}
		return append(appendEscaped(dst, v.Bytes()), 0, markEnd)
	}
	return appendFixed(dst, v)
}

func appendObjectExact(dst []byte, v value.Value) []byte {
	for it := v.Iter(); it.Next(); {
		dst = append(append(append(dst, 1), it.Key()...), 0)
		dst = AppendExact(dst, it.Value())
	}
	return append(dst, 0)
}

// appendFixed appends the payload of the classes with a fixed size.
func appendFixed(dst []byte, v value.Value) []byte {
	switch v.Class() {
	case value.ClassBool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case value.ClassUUID, value.ClassObjectID:
		return append(dst, v.Bytes()...)
	case value.ClassDate:
		dst = binary.BigEndian.AppendUint64(dst, uint64(v.DateMS())^1<<63)
		return binary.BigEndian.AppendUint16(dst, v.Ticks())
	case value.ClassTimestamp:
		return binary.BigEndian.AppendUint64(dst, v.Raw64())
	}
	return dst
}

// fixedSize returns the payload size of those classes in bytes, -1 for the others.
func fixedSize(class byte) int {
	switch class {
	case value.ClassMinKey, value.ClassUndefined, value.ClassNull, value.ClassMaxKey:
		return 0
	case value.ClassBool:
		return 1
	case value.ClassUUID:
		return 16
	case value.ClassObjectID:
		return 12
	case value.ClassDate:
		return 10
	case value.ClassTimestamp:
		return 8
	}
	return -1
}

// appendEscaped appends text with each 00 as 00 FF.
func appendEscaped(dst, text []byte) []byte {
	for i, c := range text {
		if c == 0 {
			dst = append(dst, text[:i]...)
			for _, c := range text[i:] {
				if dst = append(dst, c); c == 0 {
					dst = append(dst, 0xFF)
				}
			}
			return dst
		}
	}
	return append(dst, text...)
}

// sortable returns the bits of f in a form that sorts as an unsigned number. NaN is 0.
func sortable(f float64) uint64 {
	b := math.Float64bits(f)
	switch {
	case f != f:
		return 0
	case b>>63 != 0:
		return ^b
	}
	return b | 1<<63
}

func unsortable(b uint64) float64 {
	switch {
	case b == 0:
		return math.NaN()
	case b>>63 == 0:
		return math.Float64frombits(^b)
	}
	return math.Float64frombits(b &^ (1 << 63))
}

func appendNumber(dst []byte, k value.NumberKey) []byte {
	dst = binary.BigEndian.AppendUint64(dst, sortable(k.Floor))
	if k.Exact {
		return append(dst, 0)
	}
	return binary.BigEndian.AppendUint64(append(dst, 1), k.Frac)
}

func appendNumberExact(dst []byte, v value.Value) []byte {
	v = value.Canonical(v)
	k := value.KeyOfNumber(v)
	dst = appendNumber(dst, k)
	switch {
	case k.Exact:
		return dst
	case v.Kind() == value.Decimal:
		return value.AppendDecimalKey(append(dst, 1), v)
	}
	return append(dst, 0)
}

// AppendIndex appends the index encoding of v. lossy means that v can't be read from the encoding: a match must be
// checked against the item.
func AppendIndex(dst []byte, v value.Value) (out []byte, lossy bool) {
	dst, lossy = AppendIndexFloor(dst, v)
	switch v.Class() {
	case value.ClassString, value.ClassRegex, value.ClassOther, value.ClassBinary:
		if lossy {
			dst = binary.BigEndian.AppendUint64(dst, xxhash.Sum64(indexText(v)))
		}
	}
	return dst, lossy
}

// AppendFormerIndex is AppendIndex of store format 2, which added a hash to the class of an array or object. Clients
// may still send continuations with positions in the order of such entries.
func AppendFormerIndex(dst []byte, v value.Value) (out []byte, lossy bool) {
	dst, lossy = AppendIndex(dst, v)
	switch v.Class() {
	case value.ClassArray, value.ClassObject:
		dst = binary.BigEndian.AppendUint64(dst, value.HashCosmos(v))
	}
	return dst, lossy
}

// FormerIndex reports whether an index encoding exists only in format 2.
func FormerIndex(b []byte) bool {
	return len(b) == 9 && (b[0] == value.ClassArray || b[0] == value.ClassObject)
}

// AppendIndexFloor appends the index encoding of v without the hash that is added to lossy encodings. It is a bound for
// range scans over the class of v (except arrays and objects, whose entries have no order). A value that is not below v
// has an index encoding that is not below the floor. A value that is not above v has an index encoding that is below
// the floor or begins with it.
func AppendIndexFloor(dst []byte, v value.Value) (out []byte, lossy bool) {
	class := v.Class()
	dst = append(dst, class)
	switch class {
	case value.ClassNumber:
		k := value.KeyOfNumber(v)
		return appendNumber(dst, k), k.Lossy
	case value.ClassString, value.ClassRegex:
		return appendCut(dst, v.Bytes())
	case value.ClassOther:
		dst, lossy = appendCut(append(dst, otherByte(v.Kind())), indexText(v))
		if v.Kind() == value.CodeScope && !lossy {
			dst[len(dst)-1], lossy = markCut, true
		}
		return dst, lossy
	case value.ClassArray, value.ClassObject:
		return dst, true
	case value.ClassBinary:
		b := v.Bytes()
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), v.Subtype())
		return append(dst, b[:min(len(b), cutAt)]...), len(b) > cutAt
	}
	return appendFixed(dst, v), false
}

// indexText returns the bytes of a text or binary value that an index entry keeps. Code with scope keeps only its code,
// because equal scopes may have different bytes.
func indexText(v value.Value) []byte {
	if v.Kind() == value.CodeScope {
		code, _ := v.CodeScopeParts()
		return code
	}
	return v.Bytes()
}

func appendCut(dst, text []byte) (out []byte, lossy bool) {
	if len(text) > cutAt {
		return append(appendEscaped(dst, text[:cutAt]), 0, markCut), true
	}
	return append(appendEscaped(dst, text), 0, markEnd), false
}

// AppendStringPrefix appends the common prefix of the index encodings of all strings that begin with prefix. A prefix
// of more than 256 bytes is cut, so other strings may share it.
func AppendStringPrefix(dst, prefix []byte) []byte {
	return appendEscaped(append(dst, value.ClassString), prefix[:min(len(prefix), cutAt)])
}

var errEncoding = status.New(status.Corruption, "a key holds a malformed value")

// AppendCell appends the index encoding of a cell (core/geo). Cells of a class sort by their numbers.
func AppendCell(dst []byte, class byte, cell uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, class), cell)
}

// skipIndex returns the bytes after the index encoding at the front of b.
func skipIndex(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, errEncoding
	}
	class := b[0]
	n, b := fixedSize(class), b[1:]
	switch class {
	case value.ClassAny:
		n = 0
	case value.ClassNumber:
		if n = 9; len(b) >= 9 && b[8] != 0 {
			n = 17
		}
	case value.ClassArray, value.ClassObject:
		n = 0
	case value.ClassLeafCell, value.ClassCell:
		n = 8
	case value.ClassBinary:
		if len(b) < 5 {
			return nil, errEncoding
		}
		if size := binary.BigEndian.Uint32(b); size > cutAt {
			n = 5 + cutAt + 8
		} else {
			n = 5 + int(size)
		}
	case value.ClassOther, value.ClassString, value.ClassRegex:
		if class == value.ClassOther {
			if len(b) == 0 {
				return nil, errEncoding
			}
			b = b[1:]
		}
		_, rest, mark, ok := escapedText(b)
		if !ok || mark == markCut && len(rest) < 8 {
			return nil, errEncoding
		}
		if mark == markCut {
			rest = rest[8:]
		}
		return rest, nil
	}
	if n < 0 || n > len(b) {
		return nil, errEncoding
	}
	return b[n:], nil
}

// escapedText splits b after the escaped text at its front and the end mark. text is still escaped.
func escapedText(b []byte) (text, rest []byte, mark byte, ok bool) {
	for i := 0; i+1 < len(b); i++ {
		if b[i] != 0 {
			continue
		}
		switch b[i+1] {
		case 0xFF:
			i++
		case markEnd, markCut:
			return b[:i], b[i+2:], b[i+1], true
		default:
			return nil, nil, 0, false
		}
	}
	return nil, nil, 0, false
}
