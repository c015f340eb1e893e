package json

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

const hexDigits = "0123456789abcdef"

// AppendString appends text as a JSON string. Bytes that aren't UTF-8 become U+FFFD, so the result is always valid
// JSON.
func AppendString(dst []byte, text string) []byte {
	return AppendText(dst, unsafe.Slice(unsafe.StringData(text), len(text)))
}

// IsPlain reports whether a string is the text between its quotes in JSON: ASCII without anything to escape.
func IsPlain(text string) bool {
	return escapeAt(unsafe.Slice(unsafe.StringData(text), len(text)), 0) == len(text)
}

// AppendText is AppendString for a byte slice.
func AppendText(dst, text []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; ; {
		i = escapeAt(text, i)
		if i >= len(text) {
			break
		}
		c := text[i]
		if c >= utf8.RuneSelf {
			end := i + 1
			for end < len(text) && text[end] >= utf8.RuneSelf {
				end++
			}
			if utf8.Valid(text[i:end]) {
				i = end
				continue
			}
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, text[from:i]...)
				dst = append(dst, "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		dst = appendEscape(append(dst, text[from:i]...), c)
		i++
		from = i
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}

// appendEscape appends a control character, a quote or a backslash as an escape sequence.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
	case '\n':
		c = 'n'
	case '\r':
		c = 'r'
	case '\t':
		c = 't'
	case '\b':
		c = 'b'
	case '\f':
		c = 'f'
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
	return append(dst, '\\', c)
}

// AppendName appends the name of a member as a JSON string, and a colon.
func AppendName(dst, name []byte) []byte {
	for _, c := range name {
		if needsEscape[c] {
			return append(AppendText(dst, name), ':')
		}
	}
	dst = append(append(dst, '"'), name...)
	return append(dst, '"', ':')
}

// AppendASCII appends JSON text with all non-ASCII characters as \u escapes, as needed in a header.
func AppendASCII(dst, text []byte) []byte {
	for _, ch := range string(text) {
		switch {
		case ch < utf8.RuneSelf:
			dst = append(dst, byte(ch))
		case ch < 0x10000:
			dst = appendUnit(dst, uint16(ch))
		default:
			ch -= 0x10000
			dst = appendUnit(appendUnit(dst, uint16(0xD800+ch>>10)), uint16(0xDC00+ch&0x3FF))
		}
	}
	return dst
}

func appendUnit(dst []byte, u uint16) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

// Words with the lowest and with the highest bit of each byte set.
const ones, tops = 0x0101010101010101, 0x8080808080808080

// escapeAt returns the first index >= i of a control character, a quote, a backslash or a non-ASCII byte; len(b) if
// there is none.
//
// It tests eight bytes at once. Each term sets the top bit of the bytes that match. A borrow of a subtraction can set
// it for a byte that doesn't match, but only after (above) a byte that does. So the lowest set bit is always right. For
// the quote: in "ab\"c" XOR with eight quotes makes byte 2 zero, and 0 - 1 sets its top bit.
func escapeAt(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, back := x^(ones*'"'), x^(ones*'\\')
		if hit := (x | (x - ones*0x20) | (quote - ones) | (back - ones)) & tops; hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for ; i < len(b); i++ {
		if needsEscape[b[i]] {
			return i
		}
	}
	return i
}

// needsEscape is the table of the bytes that escapeAt searches for.
var needsEscape = func() (t [256]bool) {
	for c := range t {
		t[c] = c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf
	}
	return t
}()
