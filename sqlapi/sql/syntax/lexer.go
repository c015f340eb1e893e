package syntax

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/json"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tEOF tokenKind = iota
	tIdent
	tKeyword // reserved word; text is its upper-case form
	tNumber
	tString
	tParam // @name, text without the @
	tOp    // operator or punctuation
)

// Span is a range of byte positions in the text.
type Span struct{ start, end int }

// token is one lexical unit. For tString text is the unescaped value.
type token struct {
	kind tokenKind
	text string
	raw  string // as written
	num  float64
	pos  Span
}

// keywords are the reserved words, case-insensitive except for those in lowerKeywords.
var keywords = map[string]bool{
	"AND": true, "ARRAY": true, "AS": true, "ASC": true, "BETWEEN": true, "BY": true, "DESC": true, "DISTINCT": true,
	"ESCAPE": true, "EXISTS": true, "FROM": true, "GROUP": true, "IN": true, "JOIN": true, "LEFT": true, "LIKE": true,
	"LIMIT": true, "NOT": true, "OFFSET": true, "OR": true, "ORDER": true, "RANK": true, "RIGHT": true, "SELECT": true,
	"TOP": true, "VALUE": true, "WHERE": true,
}

var lowerKeywords = map[string]bool{"false": true, "null": true, "true": true, "udf": true, "undefined": true}

// operators of more than one character, longest first.
var longOps = []string{">>>", "<<", ">>", "<=", ">=", "<>", "!=", "||", "??"}

// lexer splits a text into tokens, one for each call of next.
//
// Example: `c.n >= @min -- comment` gives the tokens ident c, op ".", ident n, op ">=", param min, and the end.
type lexer struct {
	text string
	pos  int
}

// next returns the next token.
func (l *lexer) next() (token, error) {
	l.skipSpace()
	if l.pos >= len(l.text) {
		return token{kind: tEOF, pos: Span{len(l.text), len(l.text)}}, nil
	}
	start, c := l.pos, l.text[l.pos]
	switch {
	case c >= '0' && c <= '9', c == '.' && l.pos+1 < len(l.text) && isDigit(l.text[l.pos+1]):
		return l.number()
	case c == '"' || c == '\'':
		return l.str(c)
	case c == '@':
		l.pos++
		for l.pos < len(l.text) && (IsWordByte(l.text[l.pos]) || l.text[l.pos] >= utf8.RuneSelf) {
			l.pos++
		}
		if l.pos == start+1 {
			return token{}, ErrorAt(l.text, Span{start, l.pos}, CodeSyntax, "Syntax error, incorrect syntax near '@'.")
		}
		raw := l.text[start:l.pos]
		return token{kind: tParam, text: raw[1:], raw: raw, pos: Span{start, l.pos}}, nil
	case IsWordByte(c) || c >= utf8.RuneSelf:
		return l.word()
	}
	for _, op := range longOps {
		if strings.HasPrefix(l.text[l.pos:], op) {
			l.pos += len(op)
			return token{kind: tOp, text: op, raw: op, pos: Span{start, l.pos}}, nil
		}
	}
	if strings.IndexByte("()[]{},.:?=<>+-*/%|&^~", c) < 0 {
		return token{}, ErrorAt(l.text, Span{start, start + 1}, codeToken, "Syntax error, invalid token '%s'.",
			l.text[start:start+1])
	}
	l.pos++
	op := l.text[start:l.pos]
	return token{kind: tOp, text: op, raw: op, pos: Span{start, l.pos}}, nil
}

// skipSpace skips blanks and -- comments.
func (l *lexer) skipSpace() {
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			l.pos++
		case c == '-' && strings.HasPrefix(l.text[l.pos:], "--"):
			for l.pos < len(l.text) && l.text[l.pos] != '\n' && l.text[l.pos] != '\r' {
				l.pos++
			}
		case c >= utf8.RuneSelf:
			r, w := utf8.DecodeRuneInString(l.text[l.pos:])
			if !unicode.IsSpace(r) && r != '\uFEFF' {
				return
			}
			l.pos += w
		default:
			return
		}
	}
}

// word reads an identifier or keyword.
func (l *lexer) word() (token, error) {
	start := l.pos
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		if IsWordByte(c) {
			l.pos++
			continue
		}
		if c < utf8.RuneSelf {
			break
		}
		r, w := utf8.DecodeRuneInString(l.text[l.pos:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) {
			break
		}
		l.pos += w
	}
	sp := Span{start, l.pos}
	if l.pos == start {
		_, w := utf8.DecodeRuneInString(l.text[start:])
		bad := strings.ToValidUTF8(l.text[start:start+w], "\uFFFD")
		return token{}, ErrorAt(l.text, Span{start, start + w}, CodeSyntax,
			"Syntax error, incorrect syntax near '%s'.", bad)
	}
	raw := l.text[start:l.pos]
	if lowerKeywords[raw] {
		return token{kind: tKeyword, text: raw, raw: raw, pos: sp}, nil
	}
	if len(raw) <= 8 {
		var buf [8]byte
		n := copy(buf[:], raw)
		for i := range buf[:n] {
			if buf[i] >= 'a' && buf[i] <= 'z' {
				buf[i] -= 'a' - 'A'
			}
		}
		if keywords[string(buf[:n])] {
			return token{kind: tKeyword, text: string(buf[:n]), raw: raw, pos: sp}, nil
		}
	}
	return token{kind: tIdent, text: raw, raw: raw, pos: sp}, nil
}

// number reads a decimal or hexadecimal literal.
func (l *lexer) number() (token, error) {
	start := l.pos
	if strings.HasPrefix(l.text[start:], "0x") || strings.HasPrefix(l.text[start:], "0X") {
		l.pos += 2
		for l.pos < len(l.text) && isHex(l.text[l.pos]) {
			l.pos++
		}
		n, err := strconv.ParseUint(l.text[start+2:l.pos], 16, 64)
		if err != nil {
			return token{}, l.badNumber(start)
		}
		return l.finishNumber(start, float64(n))
	}
	l.digits()
	if l.pos < len(l.text) && l.text[l.pos] == '.' {
		l.pos++
		l.digits()
	}
	if l.pos < len(l.text) && (l.text[l.pos] == 'e' || l.text[l.pos] == 'E') {
		l.pos++
		if l.pos < len(l.text) && (l.text[l.pos] == '+' || l.text[l.pos] == '-') {
			l.pos++
		}
		before := l.pos
		l.digits()
		if l.pos == before {
			return token{}, l.badNumber(start)
		}
	}
	f, err := strconv.ParseFloat(l.text[start:l.pos], 64)
	if err != nil && !math.IsInf(f, 0) {
		return token{}, l.badNumber(start)
	}
	if math.IsInf(f, 0) {
		return token{}, ErrorAt(l.text, Span{start, l.pos}, codeNumber, "Syntax error, number literal '%s' is too "+
			"large.", Clip(l.text[start:l.pos]))
	}
	return l.finishNumber(start, f)
}

func (l *lexer) digits() {
	for l.pos < len(l.text) && isDigit(l.text[l.pos]) {
		l.pos++
	}
}

func (l *lexer) finishNumber(start int, f float64) (token, error) {
	if l.pos < len(l.text) && (IsWordByte(l.text[l.pos]) || l.text[l.pos] >= utf8.RuneSelf) {
		return token{}, l.badNumber(start)
	}
	raw := l.text[start:l.pos]
	return token{kind: tNumber, text: raw, raw: raw, num: f, pos: Span{start, l.pos}}, nil
}

func (l *lexer) badNumber(start int) error {
	for l.pos < len(l.text) && IsWordByte(l.text[l.pos]) {
		l.pos++
	}
	return ErrorAt(l.text, Span{start, l.pos}, CodeSyntax, "Syntax error, incorrect syntax near '%s'.",
		Clip(l.text[start:l.pos]))
}

// str reads a string literal in single or double quotes. The escape of a lone surrogate becomes U+FFFD, because strings
// are kept as UTF-8.
func (l *lexer) str(quote byte) (token, error) {
	start := l.pos
	l.pos++
	plain := l.pos
	var buf []byte
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		if c == quote {
			var text string
			if buf == nil {
				text = l.text[plain:l.pos]
			} else {
				text = string(append(buf, l.text[plain:l.pos]...))
			}
			l.pos++
			if !utf8.ValidString(text) {
				text = strings.ToValidUTF8(text, "\uFFFD")
			}
			return token{kind: tString, text: text, raw: l.text[start:l.pos], pos: Span{start, l.pos}}, nil
		}
		if c != '\\' {
			l.pos++
			continue
		}
		buf = append(buf, l.text[plain:l.pos]...)
		if buf == nil {
			buf = []byte{}
		}
		r, ok := l.escape()
		if !ok {
			return token{}, l.badString(start)
		}
		buf = utf8.AppendRune(buf, r)
		plain = l.pos
	}
	return token{}, l.badString(start)
}

// escape reads one backslash escape.
func (l *lexer) escape() (rune, bool) {
	if l.pos+1 >= len(l.text) {
		return 0, false
	}
	c := l.text[l.pos+1]
	if c == 'u' {
		return l.unicode()
	}
	l.pos += 2
	switch c {
	case '"', '\'', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// unicode reads \uXXXX. If it is a high surrogate and the next escape a low one, it reads both as one character.
func (l *lexer) unicode() (rune, bool) {
	r, ok := json.Hex4(l.text, l.pos)
	if !ok {
		l.pos += 2
		return 0, false
	}
	l.pos += 6
	if !utf16.IsSurrogate(r) {
		return r, true
	}
	if low, ok := json.Hex4(l.text, l.pos); ok {
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			l.pos += 6
			return full, true
		}
	}
	return utf8.RuneError, true
}

func (l *lexer) badString(start int) error {
	end := l.pos
	if end > len(l.text) {
		end = len(l.text)
	}
	return ErrorAt(l.text, Span{start, end}, codeString, "Syntax error, invalid string literal token '%s'.",
		Clip(l.text[start:end]))
}

// Clip shortens a part of the text for a quotation in an error message.
func Clip(s string) string {
	if len(s) > 128 {
		s = s[:128]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// IsWordByte reports whether an ASCII character may be part of an identifier.
func IsWordByte(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}
