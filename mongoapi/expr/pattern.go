package expr

import (
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Pattern is a compiled regular expression. Nearly all run on Go's engine, whose time is linear in the length of the
// text. Patterns that it doesn't know (look-around, back references, atomic groups) run on a backtracking engine, which
// gives up after matchTime or with matchStack alternatives left to try; then the command fails, as it does in MongoDB
// at PCRE's limits.
//
// Example: ^a+b$ runs on Go's engine; (\w)\1 has a back reference and runs on the other one.
type Pattern struct {
	re   *regexp.Regexp
	back *regexp2.Regexp // if re is nil
}

const (
	matchTime  = 250 * time.Millisecond
	matchStack = 1 << 20 // integers: 8 MiB
)

// backtracking compiles a pattern for the backtracking engine. flags are some of i, m and s.
func backtracking(pattern, flags string) (*Pattern, error) {
	opts := regexp2.RegexOptions(0)
	for _, f := range flags {
		opts |= map[rune]regexp2.RegexOptions{'i': regexp2.IgnoreCase, 'm': regexp2.Multiline,
			's': regexp2.Singleline}[f]
	}
	re, err := regexp2.Compile(pattern, opts, regexp2.OptionMaxBacktrackingStackSize(matchStack),
		regexp2.OptionMaintainCaptureOrder())
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = matchTime
	return &Pattern{back: re}, nil
}

// tooSlow is the error of a match that was given up.
func tooSlow() error {
	return merr.New(51156, "Error occurred while executing the regular expression. Result code: match limit exceeded")
}

// charge accounts for the characters of a long text. It returns what ends that.
func (r *Run) charge(b []byte) (func(), error) {
	if r == nil || len(b) <= freeHeld {
		return func() {}, nil
	}
	n := int64(4 * len(b))
	return func() { r.mem.Shrink(n) }, r.mem.Grow(n)
}

// matchBack is Match on the backtracking engine.
func (r *Run) matchBack(p *Pattern, b []byte) bool {
	end, err := r.charge(b)
	ok := false
	if err == nil {
		defer end()
		if ok, err = p.back.MatchString(string(b)); err != nil {
			err = tooSlow()
		}
	}
	if err != nil && r != nil && r.cut == nil {
		r.cut = err
	}
	return ok && err == nil
}

// findBack is findAll on the backtracking engine.
func (r *Run) findBack(p *Pattern, b []byte, most int) (out [][]int, err error) {
	end, err := r.charge(b)
	if err != nil {
		return nil, err
	}
	defer end()
	m, err := p.back.FindStringMatch(string(b))
	var begin place // of the match
	index := func(n int) int {
		from := begin
		if n < from.rune { // a group of a look-behind
			from = place{}
		}
		return from.forward(b, n).byte
	}
	for ; err == nil && m != nil && len(out) != most; m, err = p.back.FindNextMatch(m) {
		var found []int
		begin = begin.forward(b, m.RuneIndex)
		for _, g := range m.Groups() {
			if len(g.Captures) == 0 {
				found = append(found, -1, -1)
				continue
			}
			from := index(g.RuneIndex)
			found = append(found, from, index(g.RuneIndex+g.RuneLength))
		}
		out = append(out, found)
		if err := r.Step(); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, tooSlow()
	}
	return out, nil
}

// place is an index in a text, in bytes and in characters.
type place struct{ byte, rune int }

// forward returns the place of a later character.
func (p place) forward(b []byte, to int) place {
	for ; p.rune < to && p.byte < len(b); p.rune++ {
		_, width := utf8.DecodeRune(b[p.byte:])
		p.byte += width
	}
	return p
}
