package gremlin

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokIdent
	tokNumber
	tokString
	tokPunct // text is the character, one of operators, or ".." for a range
)

// token is one lexical element. For a string, text is the decoded value.
type token struct {
	kind      tokenKind
	text      string
	line, col int32
	newline   bool // a line break precedes it
	spaced    bool // white space precedes it
}

// lexer splits a script into tokens, all at once, because scripts are short and the parser looks ahead.
type lexer struct {
	src       string
	pos       int
	line      int32
	lineStart int
	toks      []token
	colAt     int // position up to which colN has counted the characters of the line
	colN      int32
}

// lex returns the tokens of src. The last one is tokEOF.
func lex(src string) ([]token, error) {
	if len(src) > maxScript {
		return nil, &Error{Msg: "The script is too long", Line: 1, Col: 1}
	}
	l := &lexer{src: src, line: 1, toks: make([]token, 0, len(src)/3+4)}
	for {
		nl, sp, err := l.skipSpace()
		if err != nil {
			return nil, err
		}
		t := token{line: l.line, col: l.col(), newline: nl, spaced: sp}
		if l.pos == len(l.src) {
			l.toks = append(l.toks, t)
			return l.toks, nil
		}
		if err := l.next(&t); err != nil {
			return nil, err
		}
		l.toks = append(l.toks, t)
	}
}

// col returns the column. It continues counting from the last call, so a script with one long line isn't quadratic.
func (l *lexer) col() int32 {
	if l.colAt < l.lineStart || l.colAt > l.pos {
		l.colAt, l.colN = l.lineStart, 0
	}
	l.colN += int32(utf8.RuneCountInString(l.src[l.colAt:l.pos]))
	l.colAt = l.pos
	return l.colN + 1
}

func (l *lexer) fail(msg string) error { return &Error{Msg: msg, Line: int(l.line), Col: int(l.col())} }

// skipSpace skips white space and comments.
func (l *lexer) skipSpace() (newline, spaced bool, err error) {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == '\n':
			newline, spaced = true, true
			l.pos++
			l.line, l.lineStart = l.line+1, l.pos
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			spaced = true
			l.pos++
		case strings.HasPrefix(l.src[l.pos:], "//"):
			if i := strings.IndexByte(l.src[l.pos:], '\n'); i >= 0 {
				l.pos += i
			} else {
				l.pos = len(l.src)
			}
		case strings.HasPrefix(l.src[l.pos:], "/*"):
			i := strings.Index(l.src[l.pos+2:], "*/")
			if i < 0 {
				return false, false, l.fail("The comment is not closed")
			}
			text := l.src[l.pos : l.pos+i+4]
			if n := strings.Count(text, "\n"); n > 0 {
				newline = true
				l.line += int32(n)
				l.lineStart = l.pos + strings.LastIndexByte(text, '\n') + 1
			}
			l.pos += len(text)
			spaced = true
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(l.src[l.pos:])
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return newline, spaced, nil
			}
			l.pos += n
			spaced = true
		default:
			return newline, spaced, nil
		}
	}
	return newline, spaced, nil
}

// operators are the operators of several characters.
var operators = []string{"<=>", "==", "!=", "<=", ">=", "&&", "||", "?:", "?."}

func isIdentStart(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) next(t *token) error {
	c := l.src[l.pos]
	switch {
	case isDigit(c), c == '.' && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]) && !l.afterOperand():
		t.kind = tokNumber
		return l.number(t)
	case c == '\'' || c == '"':
		t.kind = tokString
		return l.str(t, c)
	case c == '.' && strings.HasPrefix(l.src[l.pos:], ".."):
		t.kind, t.text = tokPunct, ".."
		l.pos += 2
		return nil
	case strings.IndexByte("()[]{},.;:=-+*/<>!?&|%", c) >= 0:
		t.kind, t.text = tokPunct, l.src[l.pos:l.pos+1]
		for _, op := range operators {
			if strings.HasPrefix(l.src[l.pos:], op) {
				t.text = op
				break
			}
		}
		l.pos += len(t.text)
		return nil
	}
	r, _ := utf8.DecodeRuneInString(l.src[l.pos:])
	if !isIdentStart(r) {
		return l.fail("Unexpected character '" + string(r) + "'")
	}
	start := l.pos
	for l.pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if !isIdentStart(r) && !unicode.IsDigit(r) {
			break
		}
		l.pos += n
	}
	t.kind, t.text = tokIdent, l.src[start:l.pos]
	return nil
}

// afterOperand reports whether the last token ends an operand, so that a point is a member access and not a fraction.
func (l *lexer) afterOperand() bool {
	if len(l.toks) == 0 {
		return false
	}
	t := l.toks[len(l.toks)-1]
	return t.kind == tokIdent || t.kind == tokString || t.kind == tokNumber || t.text == ")" || t.text == "]" ||
		t.text == "}"
}

// number reads the longest text that can be a number with its suffix. The parser interprets it.
func (l *lexer) number(t *token) error {
	start := l.pos
	s := l.src
	if s[l.pos] == '0' && l.pos+1 < len(s) && (s[l.pos+1] == 'x' || s[l.pos+1] == 'X') {
		l.pos += 2
		for l.pos < len(s) && (isDigit(s[l.pos]) || s[l.pos] == '_' ||
			strings.IndexByte("abcdefABCDEF", s[l.pos]) >= 0) {
			l.pos++
		}
	} else {
		l.digits()
		if l.pos+1 < len(s) && s[l.pos] == '.' && isDigit(s[l.pos+1]) {
			l.pos++
			l.digits()
		}
		if l.pos < len(s) && (s[l.pos] == 'e' || s[l.pos] == 'E') {
			p := l.pos + 1
			if p < len(s) && (s[p] == '+' || s[p] == '-') {
				p++
			}
			if p < len(s) && isDigit(s[p]) {
				l.pos = p
				l.digits()
			}
		}
	}
	if l.pos < len(s) && strings.IndexByte("bBsSiIlLnNgGfFdDmM", s[l.pos]) >= 0 {
		l.pos++
	}
	if r, _ := utf8.DecodeRuneInString(s[l.pos:]); l.pos < len(s) && (isIdentStart(r) || unicode.IsDigit(r)) {
		return l.fail("Invalid number '" + s[start:l.pos] + string(r) + "'")
	}
	t.text = strings.ReplaceAll(s[start:l.pos], "_", "")
	return nil
}

func (l *lexer) digits() {
	for l.pos < len(l.src) && (isDigit(l.src[l.pos]) || l.src[l.pos] == '_') {
		l.pos++
	}
}

// str decodes a string in single or double quotes.
func (l *lexer) str(t *token, quote byte) error {
	s := l.src
	start := l.pos + 1
	for i := start; i < len(s); i++ {
		switch s[i] {
		case quote:
			t.text = s[start:i]
			l.pos = i + 1
			return nil
		case '\\':
			return l.escaped(t, quote, start, i)
		case '\n':
			l.line, l.lineStart = l.line+1, i+1
		}
	}
	return &Error{Msg: "The string is not closed", Line: int(t.line), Col: int(t.col)}
}

// escaped decodes a string from its first backslash at i.
func (l *lexer) escaped(t *token, quote byte, start, i int) error {
	s := l.src
	var b strings.Builder
	b.WriteString(s[start:i])
	for i < len(s) {
		c := s[i]
		if c == quote {
			t.text = b.String()
			l.pos = i + 1
			return nil
		}
		if c == '\n' {
			l.line, l.lineStart = l.line+1, i+1
		}
		if c != '\\' {
			b.WriteByte(c)
			i++
			continue
		}
		n := l.escape(&b, i+1)
		if n == 0 {
			l.pos = i
			return l.fail("Invalid escape in a string")
		}
		i += 1 + n
	}
	return &Error{Msg: "The string is not closed", Line: int(t.line), Col: int(t.col)}
}

var simpleEscapes = map[byte]byte{'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', '"': '"', '\'': '\'',
	'\\': '\\', '$': '$'}

// escape decodes the escape sequence after a backslash and returns its length, 0 if it is malformed.
func (l *lexer) escape(b *strings.Builder, i int) int {
	s := l.src
	if i >= len(s) {
		return 0
	}
	if c, ok := simpleEscapes[s[i]]; ok {
		b.WriteByte(c)
		return 1
	}
	if s[i] == 'u' {
		r, n := l.unicodeEscape(i)
		if n == 0 {
			return 0
		}
		if r >= 0xD800 && r < 0xDC00 && i+n+1 < len(s) && s[i+n] == '\\' && s[i+n+1] == 'u' {
			if low, m := l.unicodeEscape(i + n + 1); m > 0 && low >= 0xDC00 && low < 0xE000 {
				b.WriteRune((r-0xD800)<<10 + (low - 0xDC00) + 0x10000)
				return n + 1 + m
			}
		}
		b.WriteRune(r)
		return n
	}
	v, n := 0, 0
	for n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' {
		if n == 2 && s[i] > '3' {
			break
		}
		v = v*8 + int(s[i+n]-'0')
		n++
	}
	if n > 0 {
		b.WriteRune(rune(v))
	}
	return n
}

// unicodeEscape reads uXXXX at i, and returns the code unit and the length.
func (l *lexer) unicodeEscape(i int) (rune, int) {
	n := 0
	for i+n < len(l.src) && l.src[i+n] == 'u' { // Java allows any number of u
		n++
	}
	if i+n+4 > len(l.src) {
		return 0, 0
	}
	var r rune
	for _, c := range []byte(l.src[i+n : i+n+4]) {
		switch {
		case isDigit(c):
			r = r<<4 + rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 + rune(c-'a') + 10
		case c >= 'A' && c <= 'F':
			r = r<<4 + rune(c-'A') + 10
		default:
			return 0, 0
		}
	}
	return r, n + 4
}
