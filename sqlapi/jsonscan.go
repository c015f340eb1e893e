package sqlapi

import (
	"encoding/json"

	"github.com/orrerydb/orrery/core/status"
)

// A request envelope (a batch, a query with parameters) holds JSON values that core/doc parses. These functions cut the
// envelope into the raw bytes of its members without decoding what is inside. They accept a superset of JSON inside the
// values: the parser of the value is the judge there.

// maxEnvelopeDepth bounds what skipValue walks through.
const maxEnvelopeDepth = 256

var errEnvelope = status.New(status.BadRequest, "The request body is not valid JSON of the documented shape.")

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the position after the string that begins at i; -1 when it does not end.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// skipValue returns the position after the JSON value that begins at i; -1 when there is none.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch ch := b[i]; ch {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
		case '{', '[':
			if depth++; depth > maxEnvelopeDepth {
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

// eachElement calls f with each element of the JSON array that b is.
func eachElement(b []byte, f func(raw []byte) error) error {
	return walk(b, '[', ']', func(i int) (int, error) {
		end := skipValue(b, i)
		if end < 0 {
			return 0, errEnvelope
		}
		return end, f(b[i:end])
	})
}

// eachMember calls f with each member of the JSON object that b is. Names with escapes are not decoded: no member that we
// look for is written so.
func eachMember(b []byte, f func(name string, raw []byte) error) error {
	return walk(b, '{', '}', func(i int) (int, error) {
		if b[i] != '"' {
			return 0, errEnvelope
		}
		n := skipString(b, i)
		if n < 0 {
			return 0, errEnvelope
		}
		name := b[i+1 : n-1]
		if i = skipSpace(b, n); i >= len(b) || b[i] != ':' {
			return 0, errEnvelope
		}
		i = skipSpace(b, i+1)
		end := skipValue(b, i)
		if end < 0 {
			return 0, errEnvelope
		}
		return end, f(string(name), b[i:end])
	})
}

// walk goes through the comma list between open and shut; one reads what begins at i and returns the position after it.
func walk(b []byte, open, shut byte, one func(i int) (int, error)) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != open {
		return errEnvelope
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == shut {
		return endOf(b, i+1)
	}
	for i < len(b) {
		end, err := one(i)
		if err != nil {
			return err
		}
		i = skipSpace(b, end)
		if i >= len(b) {
			break
		}
		switch b[i] {
		case shut:
			return endOf(b, i+1)
		case ',':
			i = skipSpace(b, i+1)
		default:
			return errEnvelope
		}
	}
	return errEnvelope
}

func endOf(b []byte, i int) error {
	if skipSpace(b, i) != len(b) {
		return errEnvelope
	}
	return nil
}

// stringOf decodes a raw JSON string; ok is false for anything else.
func stringOf(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	for _, ch := range raw[1 : len(raw)-1] {
		if ch == '\\' || ch < 0x20 || ch >= 0x80 {
			return s, json.Unmarshal(raw, &s) == nil
		}
	}
	return string(raw[1 : len(raw)-1]), true
}
