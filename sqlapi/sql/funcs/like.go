package funcs

import (
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/status"
)

// Pattern is a compiled LIKE pattern. % matches any text, _ one character, [a-z] and [^a-z] one character of a set.
// Other characters match themselves.
//
// Example: `a%[0-9]` compiles to the parts character a, any text, set 0-9. It matches "a7" and "abc7", not "abc". Its
// prefix is "a", which an index can search for.
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

// CompileLike compiles a pattern. The character after the escape character matches itself; escape 0 means that there is
// no escape character.
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

// likeSet reads the set that begins at rs[i]. Without a closing bracket, the opening bracket matches itself.
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

// maxLikeSteps bounds the steps of one match, which takes some tenths of a second then. Usual patterns need a few steps
// for each character of the longest text.
const maxLikeSteps = 1 << 26

// Match reports whether the whole of s matches. On a mismatch it goes back to the last % only and lets it match one
// more character. So it takes at most len(s) times the number of parts in steps, and fails when these are too many.
func (p *Pattern) Match(s []byte) (bool, error) {
	i, star, mark := 0, -1, 0
	steps := 0
	for pos := 0; pos < len(s); steps++ {
		if steps == maxLikeSteps {
			return false, errSlowLike
		}
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
			return false, nil
		}
		_, w = utf8.DecodeRune(s[mark:])
		mark += w
		pos, i = mark, star+1
	}
	for i < len(p.parts) && p.parts[i].kind == '%' {
		i++
	}
	return i == len(p.parts), nil
}

var errSlowLike = status.New(status.Timeout, "A LIKE of the query takes too long: its pattern and text are too long.")

// Prefix returns the literal text at the beginning of every match.
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
