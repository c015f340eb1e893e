package expr

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/orrerydb/orrery/internal/regex"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// maxPattern is the longest pattern in bytes. It is MongoDB's limit.
const maxPattern = 16384

// Regexp compiles a pattern with MongoDB's options (i, m, s, x, u). prefix is a string at the beginning of every
// matching text, "" when there is none; an index can search for it.
//
// Example: ^ab.*c has the prefix "ab"; ab.*c has none.
func Regexp(pattern, options string) (p *Pattern, prefix string, err error) {
	if len(pattern) > maxPattern {
		return nil, "", invalidPattern(patternTooLarge)
	}
	if strings.IndexByte(pattern, 0) >= 0 {
		return nil, "", merr.New(merr.BadValue, "Regular expression cannot contain an embedded null byte")
	}
	flags := ""
	for _, o := range options {
		switch o {
		case 'i', 'm', 's':
			flags += string(o)
		case 'x':
			pattern = stripExtended(pattern)
		case 'u':
		default:
			return nil, "", merr.New(merr.InvalidRegexFlag, "invalid flag in regex options: %c", o)
		}
	}
	text := pattern
	if flags != "" {
		text = "(?" + flags + ")" + pattern
	}
	if regex.TooLarge(text) {
		return nil, "", invalidPattern(patternTooLarge)
	}
	re, cerr := regexp.Compile(text)
	if cerr != nil {
		p, err := backtracking(possessive(pattern), flags)
		if err == nil {
			return p, "", nil
		}
		return nil, "", invalidPattern(patternFault(cerr, err))
	}
	if flags == "" || flags == "s" {
		prefix = literalPrefix(pattern)
	}
	return &Pattern{re: re}, prefix, nil
}

// literalPrefix returns the literal that follows a leading ^ or \A in every match.
func literalPrefix(pattern string) string {
	p, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	p = p.Simplify()
	if p.Op != syntax.OpConcat || len(p.Sub) < 2 || p.Sub[0].Op != syntax.OpBeginText &&
		p.Sub[0].Op != syntax.OpBeginLine {
		return ""
	}
	if p.Sub[0].Op == syntax.OpBeginLine && p.Sub[0].Flags&syntax.OneLine == 0 {
		return ""
	}
	if l := p.Sub[1]; l.Op == syntax.OpLiteral && l.Flags&syntax.FoldCase == 0 {
		return string(l.Rune)
	}
	return ""
}

// stripExtended removes what option x ignores: white space and comments outside of character classes.
func stripExtended(p string) string {
	var b strings.Builder
	class := false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\' && i+1 < len(p):
			b.WriteByte(c)
			i++
			b.WriteByte(p[i])
			continue
		case c == '[':
			class = true
		case c == ']':
			class = false
		case !class && strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			continue
		case !class && c == '#':
			for i < len(p) && p[i] != '\n' {
				i++
			}
			continue
		}
		b.WriteByte(p[i])
	}
	return b.String()
}
