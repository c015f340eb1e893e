package expr

import (
	"io"
	"regexp"
	"unicode/utf8"
)

// longText is the length in bytes from which a text is matched rune by rune. Such a match stops when the run has ended.
// It takes about twice as long as a match of the whole text.
const longText = 4 << 10

// runesPerLook is the number of runes that are matched between two checks of the context.
const runesPerLook = 64

// Match reports whether re matches b. If the run ends during the match, the result is meaningless and Cut returns the
// error.
func (r *Run) Match(p *Pattern, b []byte) bool {
	re := p.re
	if re == nil {
		return r.matchBack(p, b)
	}
	if r == nil || len(b) < longText {
		return re.Match(b)
	}
	return re.MatchReader(&runeReader{run: r, b: b})
}

// Fail makes Cut return err: for a function that can't return one itself. The first error stays.
func (r *Run) Fail(err error) {
	if r != nil && r.cut == nil {
		r.cut = err
	}
}

// Cut returns the error of a run that ended during a Match, or was given to Fail; else nil.
func (r *Run) Cut() error {
	if r == nil {
		return nil
	}
	return r.cut
}

// findAll is re.FindAllSubmatchIndex(b, most). For a long text it stops when the run has ended.
func (r *Run) findAll(p *Pattern, b []byte, most int) ([][]int, error) {
	re := p.re
	if re == nil {
		return r.findBack(p, b, most)
	}
	if r == nil || len(b) < longText {
		return re.FindAllSubmatchIndex(b, most), nil
	}
	return r.findEach(re, b, most)
}

// findEach finds the matches one at a time. A search that begins inside the text must also read the character before
// its start, because ^ and word boundaries depend on it. So it searches for any character followed by the pattern.
//
// Example: \bb in "ab b". The first search, from the start, finds the b at index 3, because the b at index 1 follows a
// letter. The next search begins at index 4 and reads from index 3.
func (r *Run) findEach(re *regexp.Regexp, b []byte, most int) ([][]int, error) {
	inner, err := regexp.Compile("(?s:.)(" + re.String() + ")")
	if err != nil {
		return nil, err
	}
	var out [][]int
	last := -1 // end of the previous match
	for pos := 0; pos <= len(b) && len(out) != most; {
		m := r.findAt(re, inner, b, pos)
		if r.cut != nil {
			return nil, r.cut
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

// runeReader reads a text. It reports the end of the text when the run has ended.
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
