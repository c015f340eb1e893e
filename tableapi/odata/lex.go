package odata

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokKind is the kind of a token of $filter.
type tokKind uint8

const (
	tokEnd tokKind = iota
	tokOpen
	tokClose
	tokName   // identifier or operator word
	tokNumber // digits with sign, fraction, exponent, suffix
	tokString // 'text', without quotes, doubled quotes made single
	tokTyped  // name'text': datetime, guid, X, binary
	tokComma
)

type token struct {
	kind tokKind
	text string
	typ  string // of tokTyped
}

// lexer splits $filter into tokens. White space is any number of blanks and tabs.
type lexer struct {
	s string
	i int
}

func (l *lexer) next() (token, error) {
	for l.i < len(l.s) && strings.IndexByte(" \t\r\n", l.s[l.i]) >= 0 {
		l.i++
	}
	if l.i == len(l.s) {
		return token{}, nil
	}
	c := l.s[l.i]
	switch {
	case c == '(':
		l.i++
		return token{kind: tokOpen}, nil
	case c == ')':
		l.i++
		return token{kind: tokClose}, nil
	case c == ',':
		l.i++
		return token{kind: tokComma}, nil
	case c == '\'':
		text, err := l.quoted()
		return token{kind: tokString, text: text}, err
	case c >= '0' && c <= '9' || c == '-' || c == '.':
		return l.number(), nil
	}
	return l.name()
}

// quoted reads 'text' with doubled quotes.
func (l *lexer) quoted() (string, error) {
	start := l.i + 1
	doubled := false
	for i := start; i < len(l.s); i++ {
		if l.s[i] != '\'' {
			continue
		}
		if i+1 < len(l.s) && l.s[i+1] == '\'' {
			doubled = true
			i++
			continue
		}
		l.i = i + 1
		if text := l.s[start:i]; !doubled {
			return text, nil
		}
		return strings.ReplaceAll(l.s[start:i], "''", "'"), nil
	}
	return "", bad("There is an unterminated string literal in the filter.")
}

func (l *lexer) number() token {
	start := l.i
	for l.i++; l.i < len(l.s); l.i++ {
		c := l.s[l.i]
		sign := (c == '-' || c == '+') && (l.s[l.i-1] == 'e' || l.s[l.i-1] == 'E')
		if !sign && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.') {
			break
		}
	}
	return token{kind: tokNumber, text: l.s[start:l.i]}
}

func (l *lexer) name() (token, error) {
	start := l.i
	for l.i < len(l.s) {
		r, n := utf8.DecodeRuneInString(l.s[l.i:])
		if r != '_' && r != '.' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			break
		}
		l.i += n
	}
	word := l.s[start:l.i]
	if word == "" {
		return token{}, bad("There is a character in the filter that is not expected.")
	}
	if l.i < len(l.s) && l.s[l.i] == '\'' {
		text, err := l.quoted()
		return token{kind: tokTyped, text: text, typ: word}, err
	}
	return token{kind: tokName, text: word}, nil
}
