package doc

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Validate checks untrusted BSON before it is used as a Doc: one document that fills b exactly, every length in bounds, all
// types known, names and strings UTF-8, booleans 0 or 1, at most maxDepth nested documents and arrays (0 = DefaultMaxDepth).
// Errors are *status.Error, BadRequest. It doesn't look for names that are there twice: BSON allows them, and the first counts.
func Validate(b []byte, maxDepth int) error {
	if maxDepth <= 0 {
		maxDepth = DefaultMaxDepth
	}
	if msg := validateDoc(b, maxDepth); msg != "" {
		return status.New(status.BadRequest, "invalid BSON: %s", msg)
	}
	return nil
}

// validateDoc returns what is wrong with the document or array b, "" when nothing is.
func validateDoc(b []byte, depth int) string {
	if depth == 0 {
		return "nested too deep"
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
		n := value.SizeOf(t, r)
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

func validateValue(t byte, b []byte, depth int) string {
	switch t {
	case 0x02, 0x0D, 0x0E:
		return validateString(b)
	case 0x03, 0x04:
		return validateDoc(b, depth-1)
	case 0x05:
		if b[4] == value.SubtypeOld && (len(b) < 9 || int64(binary.LittleEndian.Uint32(b[5:])) != int64(len(b)-9)) {
			return "a binary of subtype 2 has a wrong second length"
		}
	case 0x08:
		if b[0] > 1 {
			return "a boolean is neither 0 nor 1"
		}
	case 0x0B:
		if !utf8.Valid(b) {
			return "a regular expression is not UTF-8"
		}
	case 0x0C:
		return validateString(b[:len(b)-12])
	case 0x0F:
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
		return validateDoc(b[8+n:], depth-1)
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
