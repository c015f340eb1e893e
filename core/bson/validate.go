package bson

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// Validate returns what is wrong with the untrusted document or array b, "" when nothing is: it fills b exactly, every
// length is in bounds, all types are known, names and strings are UTF-8, booleans are 0 or 1, and at most depth
// documents and arrays are nested. Names that are there twice are allowed.
func Validate(b []byte, depth int) string {
	if depth == 0 {
		return TooDeep
	}
	if len(b) < 5 || int64(binary.LittleEndian.Uint32(b)) != int64(len(b)) || b[len(b)-1] != 0 {
		return "a document's length doesn't fit its bytes"
	}
	for r := b[4 : len(b)-1]; len(r) > 0; {
		t, k, ascii := r[0], 1, byte(0)
		for k < len(r) && r[k] != 0 {
			ascii |= r[k]
			k++
		}
		if k == len(r) {
			return "a field name has no end"
		}
		if ascii >= utf8.RuneSelf && !utf8.Valid(r[1:k]) {
			return "a field name is not UTF-8"
		}
		r = r[k+1:]
		n := SizeOf(t, r)
		if n < 0 || n > len(r) {
			return "a value is malformed or longer than its document"
		}
		if msg := validateValue(t, r[:n], depth); msg != "" {
			return msg
		}
		r = r[n:]
	}
	return ""
}

// TooDeep is what Validate says of documents with too many levels.
const TooDeep = "nested too deep"

// Deeper reports whether more documents and arrays are nested in b, a valid document, than depth, with b itself. path,
// if it isn't nil, gets the names on the way to the first that is too deep.
func Deeper(b []byte, depth int, path *[]string) bool {
	if len(b) < leastNested*depth {
		return false
	}
	for r := b[4:]; len(r) > 1; {
		k := bytes.IndexByte(r, 0)
		t, name := r[0], r[1:k]
		n := SizeOf(t, r[k+1:])
		v := r[k+1 : k+1+n]
		r = r[k+1+n:]
		if t == TypeCodeScope {
			v = v[8+binary.LittleEndian.Uint32(v[4:]):]
		} else if t != TypeDocument && t != TypeArray {
			continue
		}
		if depth == 1 || Deeper(v, depth-1, path) {
			if path != nil {
				*path = append(*path, string(name))
			}
			return true
		}
	}
	return false
}

// leastNested is the least number of bytes that a level has: a length, a type, two times NUL.
const leastNested = 7

func validateValue(t byte, b []byte, depth int) string {
	switch t {
	case TypeString, TypeCode, TypeSymbol:
		return validateString(b)
	case TypeDocument, TypeArray:
		return Validate(b, depth-1)
	case TypeBinary:
		if b[4] == SubtypeOld && (len(b) < 9 || int64(binary.LittleEndian.Uint32(b[5:])) != int64(len(b)-9)) {
			return "a binary of subtype 2 has a wrong second length"
		}
	case TypeBool:
		if b[0] > 1 {
			return "a boolean is neither 0 nor 1"
		}
	case TypeRegex:
		if !utf8.Valid(b) {
			return "a regular expression is not UTF-8"
		}
	case TypeDBPointer:
		return validateString(b[:len(b)-12])
	case TypeCodeScope:
		if len(b) < 14 {
			return "code with scope is malformed"
		}
		n := int(int32(binary.LittleEndian.Uint32(b[4:])))
		if n < 1 || n > len(b)-8-5 {
			return "code with scope is malformed"
		}
		if msg := validateString(b[4 : 8+n]); msg != "" {
			return msg
		}
		return Validate(b[8+n:], depth-1)
	}
	return ""
}

// validateString checks a string with its length and NUL.
func validateString(b []byte) string {
	if b[len(b)-1] != 0 {
		return "a string doesn't end with NUL"
	}
	if !utf8.Valid(b[4 : len(b)-1]) {
		return "a string is not UTF-8"
	}
	return ""
}
