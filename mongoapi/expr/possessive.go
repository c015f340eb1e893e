package expr

import "strings"

// possessive replaces the possessive quantifiers of PCRE by atomic groups, which mean the same and which the
// backtracking engine has. The result is the pattern itself if it has none.
//
// Example: a*+b becomes (?>a*)b, and (ab){2,3}+ becomes (?>(ab){2,3}).
func possessive(p string) string {
	var out []byte
	var groups []int // where the groups that are open begin in out
	atom := 0        // where the last atom begins in out
	for i := 0; i < len(p); {
		begin := len(out)
		switch c := p[i]; c {
		case '(':
			groups = append(groups, begin)
			out, i = append(out, c), i+1
			if strings.HasPrefix(p[i:], "?#") { // a comment: nothing in it is an atom
				n := strings.IndexByte(p[i:], ')')
				if n < 0 {
					return p
				}
				out, i = append(out, p[i:i+n]...), i+n
			} else if i < len(p) && p[i] == '?' { // no quantifier
				out, i = append(out, '?'), i+1
			}
			atom = len(out)
			continue
		case ')':
			out, i = append(out, c), i+1
			if len(groups) == 0 {
				return p // which the engine refuses
			}
			atom, groups = groups[len(groups)-1], groups[:len(groups)-1]
		case '*', '+', '?', '{':
			n := quantifier(p[i:])
			if n == 0 { // a brace
				out, i, atom = append(out, c), i+1, begin
				continue
			}
			out, i = append(out, p[i:i+n]...), i+n
			if i < len(p) && p[i] == '+' {
				i++
				out = append(out[:atom], append([]byte("(?>"), append(out[atom:], ')')...)...)
			} else if i < len(p) && p[i] == '?' {
				out, i = append(out, '?'), i+1
			}
		case '[':
			n := classEnd(p[i:])
			out, i, atom = append(out, p[i:i+n]...), i+n, begin
		case '\\':
			n := escapeEnd(p[i:])
			out, i, atom = append(out, p[i:i+n]...), i+n, begin
		default:
			n := 1
			for i+n < len(p) && p[i+n]&0xC0 == 0x80 { // the rest of a character
				n++
			}
			out, i, atom = append(out, p[i:i+n]...), i+n, begin
		}
	}
	return string(out)
}

// quantifier returns the length of the quantifier at the front of p, 0 if there is none.
func quantifier(p string) int {
	if p[0] != '{' {
		return 1
	}
	n, digits := 1, 0
	for ; n < len(p) && (p[n] >= '0' && p[n] <= '9' || p[n] == ','); n++ {
		digits++
	}
	if n == len(p) || p[n] != '}' || digits == 0 || p[1] == ',' {
		return 0
	}
	return n + 1
}

// classEnd returns the length of the class at the front of p, or of p if it has no end.
func classEnd(p string) int {
	n := 1
	if n < len(p) && p[n] == '^' {
		n++
	}
	if n < len(p) && p[n] == ']' { // as the first character it stands for itself
		n++
	}
	for n < len(p) {
		switch {
		case p[n] == '\\':
			n++
		case strings.HasPrefix(p[n:], "[:"):
			if e := strings.Index(p[n:], ":]"); e > 0 {
				n += e + 1
			}
		case p[n] == ']':
			return n + 1
		}
		n++
	}
	return len(p)
}

// escapeEnd returns the length of the escape at the front of p. The braces of \p{..}, \x{..} and \k<..> belong to it,
// and \Q..\E is one as a whole.
func escapeEnd(p string) int {
	if len(p) < 2 {
		return len(p)
	}
	if p[1] == 'Q' {
		if e := strings.Index(p, `\E`); e > 0 {
			return e + 2
		}
		return len(p)
	}
	if len(p) > 2 && strings.IndexByte("pPxkgNo", p[1]) >= 0 && (p[2] == '{' || p[2] == '<') {
		if e := strings.IndexAny(p, "}>"); e > 0 {
			return e + 1
		}
	}
	return 2
}
