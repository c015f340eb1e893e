package funcs

import (
	"unicode/utf8"
)

// Pattern is a compiled LIKE pattern: % any text, _ one character, [a-z] and [^a-z] a set, other characters
// themselves.
type Pattern struct {
	parts []likePart
}

// likePart is one element of a pattern.
type likePart struct {
	kind byte // 'c' character, '_' any one, '%' any text, '[' set
	r    rune
	set  []runeRange
	not  bool
}

type runeRange struct{ lo, hi rune }

// CompileLike reads a pattern; after the escape character (0 for none) the next character stands for itself.
func CompileLike(pattern string, escape rune) *Pattern {
	p := &Pattern{}
	rs := []rune(pattern)
	for i := 0; i < len(rs); i++ {
		switch r := rs[i]; {
		case escape != 0 && r == escape && i+1 < len(rs):
			i++
			p.parts = append(p.parts, likePart{kind: 'c', r: rs[i]})
		case r == '%':
			if n := len(p.parts); n == 0 || p.parts[n-1].kind != '%' {
				p.parts = append(p.parts, likePart{kind: '%'})
			}
		case r == '_':
			p.parts = append(p.parts, likePart{kind: '_'})
		case r == '[':
			part, next := likeSet(rs, i)
			p.parts = append(p.parts, part)
			i = next
		default:
			p.parts = append(p.parts, likePart{kind: 'c', r: r})
		}
	}
	return p
}

// likeSet reads the set that begins at rs[i]; without a closing bracket the bracket stands for itself.
func likeSet(rs []rune, i int) (likePart, int) {
	part := likePart{kind: '['}
	j := i + 1
	if j < len(rs) && rs[j] == '^' {
		part.not = true
		j++
	}
	for start := j; j < len(rs); j++ {
		if rs[j] == ']' && j > start {
			return part, j
		}
		r := runeRange{rs[j], rs[j]}
		if j+2 < len(rs) && rs[j+1] == '-' && rs[j+2] != ']' {
			r.hi = rs[j+2]
			j += 2
		}
		part.set = append(part.set, r)
	}
	return likePart{kind: 'c', r: '['}, i
}

func (p likePart) accepts(r rune) bool {
	switch p.kind {
	case 'c':
		return p.r == r
	case '_':
		return true
	}
	for _, x := range p.set {
		if r >= x.lo && r <= x.hi {
			return !p.not
		}
	}
	return p.not
}

// Match reports whether s matches as a whole. It goes back only to the last %, so it needs at most length times parts
// steps.
func (p *Pattern) Match(s []byte) bool {
	i, star, mark := 0, -1, 0
	for pos := 0; pos < len(s); {
		if i < len(p.parts) && p.parts[i].kind == '%' {
			star, mark = i, pos
			i++
			continue
		}
		r, w := utf8.DecodeRune(s[pos:])
		if i < len(p.parts) && p.parts[i].accepts(r) {
			i++
			pos += w
			continue
		}
		if star < 0 {
			return false
		}
		_, w = utf8.DecodeRune(s[mark:])
		mark += w
		pos, i = mark, star+1
	}
	for i < len(p.parts) && p.parts[i].kind == '%' {
		i++
	}
	return i == len(p.parts)
}

// Prefix returns the literal text that every match begins with.
func (p *Pattern) Prefix() string {
	var out []rune
	for _, x := range p.parts {
		if x.kind != 'c' {
			break
		}
		out = append(out, x.r)
	}
	return string(out)
}
