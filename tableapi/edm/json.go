package edm

import "github.com/orrerydb/orrery/core/json"

// token is one scalar of an entity's JSON. The kind is '"', '0' (number), 't', 'f' or 'n'. text is the text of a string
// or the digits of a number; it points into the input or into the scanner's scratch.
type token struct {
	kind byte
	text []byte
}

// scanner reads the JSON of one flat object. Entities aren't nested, so it needs no stack: an array or object as a
// value is an error. Strings with escapes are decoded into scratch, which is only appended to, so earlier texts stay
// valid.
type scanner struct {
	b       []byte
	i       int
	scratch []byte
}

func (s *scanner) space() { s.i = json.Space(s.b, s.i) }

// next consumes white space, and c if it is the next character.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// scalar reads one value that isn't an array or object.
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
	if !json.Word(s.b, s.i, w) {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scanner) number() ([]byte, bool) {
	start := s.i
	_, end, ok := json.ScanNumber(s.b, start)
	s.i = end
	return s.b[start:end], ok
}

// str reads a string whose opening quote is already consumed. An escaped surrogate without its partner has no UTF-8
// form and is refused.
func (s *scanner) str() ([]byte, bool) {
	if end := json.UnescapedEnd(s.b, s.i); end > 0 {
		start := s.i
		s.i = end + 1
		return s.b[start:end:end], true
	}
	from := len(s.scratch)
	var fault json.Fault
	s.scratch, s.i, fault = json.AppendUnquoted(s.scratch, s.b, s.i-1, json.Strict)
	return s.scratch[from:len(s.scratch):len(s.scratch)], fault == ""
}
