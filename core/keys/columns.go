package keys

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/value"
)

// Columns of composite indexes. A column is encoded like an index value, with two differences. Strings and binaries are
// cut earlier, so that all columns together fit into a key. In a descending column each byte is inverted. No encoding
// is a prefix of another, so inverting the bytes exactly reverses the order.
//
// Example, for the columns (a ascending, b descending) and the document {"a": "x", "b": 1}:
//
//	28 78 00 01             a: class String, "x", end mark
//	DF 400FFFFFFFFFFFFF FF  b: 20 BFF0000000000000 00 (the number 1), each byte inverted

// columnBytes is the limit of bytes for the strings of all columns of an entry together.
const columnBytes = 2 * cutAt

// ColumnCut returns how many bytes of a string or binary each of n columns keeps. For strings this includes the bytes
// that escaping adds.
func ColumnCut(n int) int { return min(cutAt, columnBytes/n) }

// CollatedCut is ColumnCut for sort keys, which are several times as long as their strings. One column may take the
// room that several have elsewhere.
func CollatedCut(n int) int { return columnBytes / n }

// AppendColumn appends a column's encoding of v. lossy means that v can't be read from the encoding, and that lossy
// encodings with the same kept part aren't in the order of their values.
func AppendColumn(dst []byte, v value.Value, cut int, desc bool) (out []byte, lossy bool) {
	from := len(dst)
	dst, lossy = AppendColumnFloor(dst, v, cut)
	switch v.Class() {
	case value.ClassArray, value.ClassObject:
		dst = binary.BigEndian.AppendUint64(dst, value.HashCosmos(v))
	case value.ClassString, value.ClassRegex, value.ClassOther, value.ClassBinary:
		if lossy {
			dst = binary.BigEndian.AppendUint64(dst, xxhash.Sum64(indexText(v)))
		}
	}
	if desc {
		Invert(dst[from:])
	}
	return dst, lossy
}

// Invert inverts every byte of b.
func Invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// AppendColumnFloor appends the ascending encoding of v without the hash that is added to lossy encodings. It is the
// bound of a range, like AppendIndexFloor for single values.
func AppendColumnFloor(dst []byte, v value.Value, cut int) (out []byte, lossy bool) {
	switch class := v.Class(); class {
	case value.ClassString, value.ClassRegex:
		return appendCutText(append(dst, class), v.Bytes(), cut)
	case value.ClassOther:
		dst, lossy = appendCutText(append(dst, class, otherByte(v.Kind())), indexText(v), cut)
		if v.Kind() == value.CodeScope && !lossy {
			dst[len(dst)-1], lossy = markCut, true
		}
		return dst, lossy
	case value.ClassBinary:
		b := v.Bytes()
		dst = append(binary.BigEndian.AppendUint32(append(dst, class), uint32(len(b))), v.Subtype())
		return append(dst, b[:min(len(b), cut)]...), len(b) > cut
	}
	return AppendIndexFloor(dst, v)
}

// AppendColumnPrefix appends the common prefix of the ascending encodings of all strings that begin with prefix.
func AppendColumnPrefix(dst, prefix []byte, cut int) []byte {
	dst, _ = appendPart(append(dst, value.ClassString), prefix, cut)
	return dst
}

// appendCutText appends the escaped text, cut to at most cut bytes, and its end mark.
func appendCutText(dst, text []byte, cut int) (out []byte, lossy bool) {
	dst, whole := appendPart(dst, text, cut)
	if !whole {
		return append(dst, 0, markCut), true
	}
	return append(dst, 0, markEnd), false
}

// appendPart appends as much of the escaped text as fits into cut bytes.
func appendPart(dst, text []byte, cut int) (out []byte, whole bool) {
	for i, c := range text {
		n := 1
		if c == 0 {
			n = 2
		}
		if cut -= n; cut < 0 {
			return appendEscaped(dst, text[:i]), false
		}
	}
	return appendEscaped(dst, text), true
}

// SkipColumn returns the bytes after the column at the front of b.
func SkipColumn(b []byte, cut int, desc bool) (rest []byte, err error) {
	var mask byte
	if desc {
		mask = 0xFF
	}
	if len(b) == 0 {
		return nil, errEncoding
	}
	class := b[0] ^ mask
	n, b := fixedSize(class), b[1:]
	switch class {
	case value.ClassNumber:
		if n = 9; len(b) >= 9 && b[8] != mask {
			n = 17
		}
	case value.ClassArray, value.ClassObject:
		n = 8
	case value.ClassBinary:
		if len(b) < 5 {
			return nil, errEncoding
		}
		size := binary.BigEndian.Uint32(b)
		if desc {
			size = ^size
		}
		if n = 5 + cut + 8; size <= uint32(cut) {
			n = 5 + int(size)
		}
	case value.ClassString, value.ClassRegex:
		n = skipColumnText(b, mask)
	case value.ClassOther:
		if n = -1; len(b) > 0 {
			if k := skipColumnText(b[1:], mask); k >= 0 {
				n = 1 + k
			}
		}
	}
	return skipN(b, n)
}

// skipColumnText returns the length of the escaped text at the front of b with its mark and hash, or -1 if it has no
// end.
func skipColumnText(b []byte, mask byte) int {
	for i := 0; i+1 < len(b); i++ {
		if b[i] != mask {
			continue
		}
		switch b[i+1] ^ mask {
		case 0xFF:
			i++
		case markEnd:
			return i + 2
		case markCut:
			return i + 10
		default:
			return -1
		}
	}
	return -1
}
