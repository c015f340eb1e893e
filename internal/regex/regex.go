// Package regex matches Go's regular expressions so that a match can be ended.
//
// The time of a match is linear in the length of the text, and in the size of the compiled pattern. A repetition makes
// a short pattern a large one, so a match of a long text can take minutes.
//
// Example: (a?){1000}b tries up to 2,000 instructions at each character.
package regex

import (
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// longText is the length in bytes from which a text is matched rune by rune. Such a match can be ended. It takes about
// twice as long as a match of the whole text.
const longText = 4 << 10

// runesPerLook is the number of runes that are matched between two looks whether the match has to end.
const runesPerLook = 64

// maxProgram is the largest compiled pattern in instructions. A match can try each instruction at each character.
const maxProgram = 1 << 15

// TooLarge reports whether the compiled pattern is too large. Only repetitions such as {1000} make it larger than the
// pattern.
func TooLarge(pattern string) bool {
	if strings.IndexByte(pattern, '{') < 0 {
		return false
	}
	p, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return false // regexp.Compile returns a better error
	}
	prog, err := syntax.Compile(p.Simplify())
	return err == nil && len(prog.Inst) > maxProgram
}

// End says when a match ends. A context is one.
type End interface {
	// Err returns an error when the match has to end. It is called now and then.
	Err() error
}

// Match reports whether re matches b. If end has an error during the match, that is the error.
func Match(re *regexp.Regexp, b []byte, end End) (bool, error) {
	if len(b) < longText {
		return re.Match(b), nil
	}
	r := reader{end: end}
	ok := re.MatchReader(r.from(b))
	return ok && r.err == nil, r.err
}

// MatchString is Match for a string.
func MatchString(re *regexp.Regexp, s string, end End) (bool, error) {
	if len(s) < longText {
		return re.MatchString(s), nil
	}
	return Match(re, []byte(s), end)
}

// FindAll is re.FindAllSubmatchIndex(b, most). If end has an error meanwhile, that is the error.
func FindAll(re *regexp.Regexp, b []byte, most int, end End) ([][]int, error) {
	if len(b) < longText {
		return re.FindAllSubmatchIndex(b, most), nil
	}
	return findEach(re, b, most, end)
}

// findEach finds the matches one at a time. A search that begins inside the text must also read the character
// before its start, because ^ and word boundaries depend on it. So it searches for any character followed by the
// pattern.
//
// Example: \bb in "ab b". The first search, from the start, finds the b at index 3, because the b at index 1 follows a
// letter. The next search begins at index 4 and reads from index 3.
func findEach(re *regexp.Regexp, b []byte, most int, end End) ([][]int, error) {
	inner, err := regexp.Compile("(?s:.)(" + re.String() + ")")
	if err != nil {
		return nil, err
	}
	var out [][]int
	r := reader{end: end}
	last := -1 // end of the previous match
	for pos := 0; pos <= len(b) && len(out) != most; {
		m := r.findAt(re, inner, b, pos)
		if r.err != nil {
			return nil, r.err
		}
		if m == nil {
			break
		}
		empty := m[1] == pos
		if !empty || m[0] != last { // an empty match directly behind another match doesn't count
			out = append(out, m)
		}
		if last = m[1]; !empty {
			pos = m[1]
			continue
		}
		_, width := utf8.DecodeRune(b[pos:])
		pos += max(width, 1)
	}
	return out, nil
}

// reader reads a text. It reports the end of the text when the match has to end.
type reader struct {
	end End
	b   []byte
	n   int
	err error
}

func (r *reader) from(b []byte) *reader {
	r.b = b
	return r
}

func (r *reader) findAt(re, inner *regexp.Regexp, b []byte, pos int) []int {
	if pos == 0 {
		return re.FindReaderSubmatchIndex(r.from(b))
	}
	_, width := utf8.DecodeLastRune(b[:pos])
	from := pos - width
	m := inner.FindReaderSubmatchIndex(r.from(b[from:]))
	if m == nil {
		return nil
	}
	m = m[2:]
	for i := range m {
		if m[i] >= 0 {
			m[i] += from
		}
	}
	return m
}

// ReadRune implements io.RuneReader.
func (r *reader) ReadRune() (rune, int, error) {
	if r.n++; r.n%runesPerLook == 0 && r.err == nil {
		r.err = r.end.Err()
	}
	if len(r.b) == 0 || r.err != nil {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRune(r.b)
	r.b = r.b[n:]
	return c, n, nil
}
