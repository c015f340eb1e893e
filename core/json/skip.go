package json

import (
	"encoding/binary"
	"math/bits"

	"github.com/orrerydb/orrery/core/status"
)

// A request envelope (a batch, a query with parameters) contains JSON values that another reader parses. These
// functions cut the envelope into the raw bytes of its members without decoding them. Inside the values they accept a
// superset of JSON: the reader of a value validates it.
//
//	EachMember of {"query": "SELECT 1", "parameters": [{"name": "@a"}]}
//	calls f("query", `"SELECT 1"`) and f("parameters", `[{"name": "@a"}]`)

// maxSkipDepth limits the nesting of values that Skip accepts.
const maxSkipDepth = 256

// ErrShape is the error of EachElement and EachMember for text that isn't an array or an object.
var ErrShape = status.New(status.BadRequest, "The request body is not valid JSON of the documented shape.")

// skipString returns the position after the string that begins at i, or -1 if it has no end. Eight bytes are looked at
// together, as plainRun does.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, back := x^(ones*'"'), x^(ones*'\\')
			if hit := ((quote-ones)&^quote | (back-ones)&^back) & tops; hit != 0 {
				i += bits.TrailingZeros64(hit) >> 3
				break
			}
			i += 8
		}
		if i == len(b) {
			break
		}
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// Skip returns the position after the JSON value that begins at i, or -1 if there is none.
func Skip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch ch := b[i]; ch {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
		case '{', '[':
			if depth++; depth > maxSkipDepth {
				return -1
			}
			i++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return -1
			}
			i++
		case ',', ':', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return -1
			}
			i++
			continue
		default:
			start := i
			for i < len(b) && !delimiter(b[i]) {
				i++
			}
			if i == start {
				return -1
			}
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

func delimiter(ch byte) bool {
	switch ch {
	case ',', ':', ' ', '\n', '\r', '\t', '}', ']', '{', '[', '"':
		return true
	}
	return false
}

// EachElement calls f with each element of the JSON array b. It returns the first error of f, or ErrShape.
func EachElement(b []byte, f func(raw []byte) error) error {
	return walk(b, '[', ']', func(i int) (int, error) {
		end := Skip(b, i)
		if end < 0 {
			return 0, ErrShape
		}
		return end, f(b[i:end])
	})
}

// ElementsAt calls f with each element of the JSON array that begins at i of b, which goes on behind it. It returns the
// position after the array. So an array in a large object is read once, and not first to find its end.
func ElementsAt(b []byte, i int, f func(raw []byte) error) (end int, err error) {
	i = Space(b, i)
	if i >= len(b) || b[i] != '[' {
		return 0, ErrShape
	}
	if i = Space(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for i < len(b) {
		next := Skip(b, i)
		if next < 0 {
			return 0, ErrShape
		}
		if err := f(b[i:next]); err != nil {
			return 0, err
		}
		if i = Space(b, next); i >= len(b) {
			break
		}
		switch b[i] {
		case ']':
			return i + 1, nil
		case ',':
			i = Space(b, i+1)
		default:
			return 0, ErrShape
		}
	}
	return 0, ErrShape
}

// EachMember calls f with each member of the JSON object b. It returns the first error of f, or ErrShape.
func EachMember(b []byte, f func(name string, raw []byte) error) error {
	return EachNamed(b, func(name, raw []byte) error { return f(string(name), raw) })
}

// EachNamed is EachMember for callers that only compare names: they allocate nothing. A name is valid until f returns.
func EachNamed(b []byte, f func(name, raw []byte) error) error {
	return walk(b, '{', '}', func(i int) (int, error) {
		if b[i] != '"' {
			return 0, ErrShape
		}
		n := skipString(b, i)
		if n < 0 {
			return 0, ErrShape
		}
		name, ok := text(b[i:n])
		if i = Space(b, n); !ok || i >= len(b) || b[i] != ':' {
			return 0, ErrShape
		}
		i = Space(b, i+1)
		end := Skip(b, i)
		if end < 0 {
			return 0, ErrShape
		}
		return end, f(name, b[i:end])
	})
}

// walk iterates over the comma-separated list between open and shut. one reads the element that begins at i and returns
// the position after it.
func walk(b []byte, open, shut byte, one func(i int) (int, error)) error {
	i := Space(b, 0)
	if i >= len(b) || b[i] != open {
		return ErrShape
	}
	i = Space(b, i+1)
	if i < len(b) && b[i] == shut {
		return endOf(b, i+1)
	}
	for i < len(b) {
		end, err := one(i)
		if err != nil {
			return err
		}
		i = Space(b, end)
		if i >= len(b) {
			break
		}
		switch b[i] {
		case shut:
			return endOf(b, i+1)
		case ',':
			i = Space(b, i+1)
		default:
			return ErrShape
		}
	}
	return ErrShape
}

func endOf(b []byte, i int) error {
	if Space(b, i) != len(b) {
		return ErrShape
	}
	return nil
}

// String returns the text of a raw JSON string. ok is false if raw isn't a string. Parts that aren't Unicode text
// become U+FFFD.
func String(raw []byte) (s string, ok bool) {
	b, ok := text(raw)
	return string(b), ok
}

// text is String without a copy where no character is escaped.
func text(raw []byte) (b []byte, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return nil, false
	}
	if end := PlainEnd(raw, 1); end > 0 && end == len(raw)-1 {
		return raw[1:end], true
	}
	b, end, fault := AppendUnquoted(nil, raw, 0, Surrogates|RawBytes)
	return b, fault == "" && end == len(raw)
}
