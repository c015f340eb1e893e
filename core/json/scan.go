package json

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Space returns the index of the first byte from i on that isn't white space, or len(b).
func Space(b []byte, i int) int {
	for ; i < len(b); i++ {
		if c := b[i]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return i
		}
	}
	return len(b)
}

// Word reports whether the literal w (true, false, null) is at i. The caller checks what follows it.
func Word(b []byte, i int, w string) bool { return len(b)-i >= len(w) && string(b[i:i+len(w)]) == w }

// A Fault says why text is not JSON. It has no position: the scanning function returns that.
type Fault string

// Error implements error.
func (f Fault) Error() string { return string(f) }

// The faults of strings and numbers.
const (
	NoString      Fault = "a string is expected"
	NoEnd         Fault = "a string has no end"
	ControlChar   Fault = "a control character in a string must be escaped"
	NotUTF8       Fault = "a string is not UTF-8"
	UnknownEscape Fault = "an escape sequence is unknown"
	BadHex        Fault = "an escape sequence needs four hex digits"
	LoneSurrogate Fault = "an escaped surrogate has no partner"
	BadNumber     Fault = "a number is malformed"
)

// Lenient says which parts of a string that aren't Unicode text are replaced by U+FFFD. All others are refused.
type Lenient uint8

// The values of Lenient.
const (
	Strict     Lenient = 0
	Surrogates Lenient = 1 // an escaped surrogate without its partner
	RawBytes   Lenient = 2 // bytes that aren't UTF-8
)

// PlainEnd returns the position of the closing quote of a string whose text begins at i, if the string is ASCII without
// escapes, as nearly all are. For other strings it returns 0; AppendUnquoted reads those.
func PlainEnd(b []byte, i int) int {
	if end := escapeAt(b, i); end < len(b) && b[end] == '"' {
		return end
	}
	return 0
}

// UnescapedEnd is PlainEnd for strings that may also have non-ASCII bytes, which it doesn't check. It is for text that
// is known to be UTF-8.
func UnescapedEnd(b []byte, i int) int {
	if end, _ := plainRun(b, i); end < len(b) && b[end] == '"' {
		return end
	}
	return 0
}

// AppendUnquoted appends the text of the string whose opening quote is at i, and returns the position after its closing
// quote. If there is a fault, end is its position.
func AppendUnquoted(dst, b []byte, i int, l Lenient) (out []byte, end int, fault Fault) {
	if i >= len(b) || b[i] != '"' {
		return dst, i, NoString
	}
	for i++; ; {
		end, ascii := plainRun(b, i)
		switch {
		case ascii || utf8.Valid(b[i:end]):
			dst = append(dst, b[i:end]...)
		case l&RawBytes == 0:
			return dst, i, NotUTF8
		default:
			for _, r := range string(b[i:end]) {
				dst = utf8.AppendRune(dst, r)
			}
		}
		if i = end; i >= len(b) {
			return dst, i, NoEnd
		}
		switch b[i] {
		case '"':
			return dst, i + 1, ""
		case '\\':
			if dst, i, fault = appendUnescaped(dst, b, i, l); fault != "" {
				return dst, i, fault
			}
		default:
			return dst, i, ControlChar
		}
	}
}

// plainRun returns the first index >= i of a quote, a backslash or a control character, and whether all bytes before it
// are ASCII. It tests eight bytes at once, as escapeAt does.
func plainRun(b []byte, i int) (end int, ascii bool) {
	var seen uint64
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, back := x^(ones*'"'), x^(ones*'\\')
		if hit := ((x-ones*0x20)&^x | (quote-ones)&^quote | (back-ones)&^back) & tops; hit != 0 {
			n := bits.TrailingZeros64(hit) &^ 7
			return i + n>>3, (seen|x&(1<<n-1))&tops == 0
		}
		seen |= x
	}
	for ; i < len(b); i++ {
		c := b[i]
		if c < 0x20 || c == '"' || c == '\\' {
			break
		}
		seen |= uint64(c)
	}
	return i, seen&tops == 0
}

// appendUnescaped appends the character of the escape sequence at i.
func appendUnescaped(dst, b []byte, i int, l Lenient) (out []byte, end int, fault Fault) {
	if i+1 >= len(b) {
		return dst, i, NoEnd
	}
	c := b[i+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return appendUnicode(dst, b, i, l)
	default:
		return dst, i, UnknownEscape
	}
	return append(dst, c), i + 2, ""
}

func appendUnicode(dst, b []byte, i int, l Lenient) (out []byte, end int, fault Fault) {
	r, ok := Hex4(b, i)
	if !ok {
		return dst, i, BadHex
	}
	i += 6
	if r >= 0xD800 && r < 0xE000 {
		low, ok := Hex4(b, i)
		switch {
		case r < 0xDC00 && ok && low >= 0xDC00 && low < 0xE000:
			i += 6
			r = (r-0xD800)<<10 | (low - 0xDC00) + 0x10000
		case l&Surrogates == 0:
			return dst, i - 6, LoneSurrogate
		default:
			r = utf8.RuneError
		}
	}
	return utf8.AppendRune(dst, r), i, ""
}

// Hex4 reads the escape \uXXXX at i.
func Hex4[S ~string | ~[]byte](b S, i int) (r rune, ok bool) {
	if len(b)-i < 6 || b[i] != '\\' || b[i+1] != 'u' {
		return 0, false
	}
	for j := i + 2; j < i+6; j++ {
		c := b[j]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
