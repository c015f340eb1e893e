package expr

import (
	"io"
	"regexp"
	"unicode/utf8"
)

// longText is from where on a text is matched rune by rune, so that a run that has ended stops it. That takes about
// twice as long.
const longText = 4 << 10

// runesPerLook is how many runes are matched between two looks at the context.
const runesPerLook = 64

// Match reports whether re matches b. When the run ends meanwhile the answer means nothing, and Cut says so.
func (r *Run) Match(re *regexp.Regexp, b []byte) bool {
	if r == nil || len(b) < longText {
		return re.Match(b)
	}
	return re.MatchReader(&runeReader{run: r, b: b})
}

// Cut is the error of a run that has ended within a Match.
func (r *Run) Cut() error {
	if r == nil {
		return nil
	}
	return r.cut
}

// findAll is re.FindAllSubmatchIndex(b, most). A long text ends with the run.
func (r *Run) findAll(re *regexp.Regexp, b []byte, most int) ([][]int, error) {
	if r == nil || len(b) < longText {
		return re.FindAllSubmatchIndex(b, most), nil
	}
	return r.findEach(re, b, most)
}

// findEach finds one match after the other. A search that begins within the text must see the character before it,
// for ^ and word boundaries: it is for any character and then the pattern.
func (r *Run) findEach(re *regexp.Regexp, b []byte, most int) ([][]int, error) {
	inner, err := regexp.Compile("(?s:.)(" + re.String() + ")")
	if err != nil {
		return nil, err
	}
	var out [][]int
	last := -1 // end of the last match
	for pos := 0; pos <= len(b) && len(out) != most; {
		m := r.findAt(re, inner, b, pos)
		if r.cut != nil {
			return nil, r.cut
		}
		if m == nil {
			break
		}
		empty := m[1] == pos
		if !empty || m[0] != last { // no empty match directly behind another one
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

func (r *Run) findAt(re, inner *regexp.Regexp, b []byte, pos int) []int {
	if pos == 0 {
		return re.FindReaderSubmatchIndex(&runeReader{run: r, b: b})
	}
	_, width := utf8.DecodeLastRune(b[:pos])
	from := pos - width
	m := inner.FindReaderSubmatchIndex(&runeReader{run: r, b: b[from:]})
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

// runeReader reads a text until its run ends.
type runeReader struct {
	run *Run
	b   []byte
	n   int
}

// ReadRune implements io.RuneReader.
func (s *runeReader) ReadRune() (rune, int, error) {
	if s.n++; s.n%runesPerLook == 0 {
		if err := s.run.ctx.Err(); err != nil {
			s.run.cut = err
		}
	}
	if len(s.b) == 0 || s.run.cut != nil {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRune(s.b)
	s.b = s.b[n:]
	return c, n, nil
}
