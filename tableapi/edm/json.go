package edm

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// token is one scalar of an entity's JSON: the kind is '"', '0' (number), 't', 'f' or 'n', text is a string's text or a
// number's digits. text points into the input or into the scanner's scratch.
type token struct {
	kind byte
	text []byte
}

// scanner reads the JSON of one flat object. Entities have no nesting, so it needs no stack; an array or object as a value
// is an error. Strings with escapes are decoded into scratch, which only grows, so earlier texts stay valid.
type scanner struct {
	b       []byte
	i       int
	scratch []byte
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// next consumes white space and then c, when c is there.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// scalar reads one value that is not an array or object.
func (s *scanner) scalar() (token, bool) {
	s.space()
	if s.i >= len(s.b) {
		return token{}, false
	}
	switch c := s.b[s.i]; c {
	case '"':
		s.i++
		text, ok := s.str()
		return token{'"', text}, ok
	case 't':
		return token{kind: 't'}, s.word("true")
	case 'f':
		return token{kind: 'f'}, s.word("false")
	case 'n':
		return token{kind: 'n'}, s.word("null")
	}
	text, ok := s.number()
	return token{'0', text}, ok
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scanner) digits() int {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i - start
}

// number reads a number by JSON's grammar.
func (s *scanner) number() ([]byte, bool) {
	start := s.i
	if s.b[s.i] == '-' {
		s.i++
	}
	lead := s.i
	n := s.digits()
	if n == 0 || n > 1 && s.b[lead] == '0' {
		return nil, false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if s.digits() == 0 {
			return nil, false
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			return nil, false
		}
	}
	return s.b[start:s.i], true
}

// str reads a string whose opening quote is consumed.
func (s *scanner) str() ([]byte, bool) {
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1 : s.i-1], true
		case c == '\\':
			return s.escaped(start)
		case c < 0x20:
			return nil, false
		}
		s.i++
	}
	return nil, false
}

// escaped goes on with a string that has an escape at s.i.
func (s *scanner) escaped(start int) ([]byte, bool) {
	from := len(s.scratch)
	s.scratch = append(s.scratch, s.b[start:s.i]...)
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			return s.scratch[from:len(s.scratch):len(s.scratch)], true
		case c < 0x20:
			return nil, false
		case c != '\\':
			s.scratch = append(s.scratch, c)
		case !s.escape():
			return nil, false
		}
	}
	return nil, false
}

// escape decodes what follows a backslash. A lone surrogate has no UTF-8 form and is refused.
func (s *scanner) escape() bool {
	if s.i >= len(s.b) {
		return false
	}
	c := s.b[s.i]
	s.i++
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
		return s.unicode()
	default:
		return false
	}
	s.scratch = append(s.scratch, c)
	return true
}

func (s *scanner) unicode() bool {
	r, ok := s.hex4()
	if !ok {
		return false
	}
	if utf16.IsSurrogate(r) {
		if !s.word(`\u`) {
			return false
		}
		low, ok := s.hex4()
		if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
			return false
		}
	}
	s.scratch = utf8.AppendRune(s.scratch, r)
	return true
}

func (s *scanner) hex4() (rune, bool) {
	if s.i+4 > len(s.b) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s.b[s.i:s.i+4]), 16, 16)
	s.i += 4
	return rune(n), err == nil
}
