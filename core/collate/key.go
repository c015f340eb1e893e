package collate

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// element is a collation element: the weights of a character at the three first levels.
type element struct {
	p uint32 // primary; 0: none. Up to four bytes, which end with zeros
	s uint16 // secondary
	t uint16 // tertiary; in bits 14 and 15 the case: 0 lower, 1 mixed, 2 upper; in bits 6 and 7 a weight of level 4
	q bool   // a variable element under Shifted: only level 4 has it
}

const (
	caseMask     = 0xc000
	tertiaryMask = 0x3f3f
	separator    = 1 // between levels; below all weights

	common = 0x0500 // the most frequent secondary and tertiary weight
)

// appendKey appends the levels of a key, each behind a separator.
func (c *Collation) appendKey(dst, s []byte, w *scratch) []byte {
	w.runes = decompose(w.runes[:0], s)
	w.ces = c.loc.elements(w.ces[:0], w.runes, c.o.Numeric)
	c.shift(w.ces)
	for _, e := range w.ces {
		if !e.q {
			dst = appendPrimary(dst, c.loc.reorder(e.p))
		}
	}
	if c.o.Strength >= 2 {
		dst = append(dst, separator)
		dst = c.appendSecondary(dst, w.ces)
	}
	if c.o.CaseLevel {
		dst = append(dst, separator)
		for _, e := range w.ces {
			if e.q || e.s == 0 || c.o.Strength == 1 && e.p == 0 {
				continue
			}
			dst = append(dst, c.caseWeight(e))
		}
	}
	if c.o.Strength >= 3 {
		dst = append(dst, separator)
		for _, e := range w.ces {
			if t := c.tertiary(e); t != 0 && !e.q {
				dst = append(dst, byte(t>>8), byte(t))
			}
		}
	}
	if c.o.Strength >= 4 {
		dst = append(dst, separator)
		for _, e := range w.ces {
			switch {
			case e.q:
				dst = appendPrimary(dst, c.loc.reorder(e.p))
			case e.t != 0:
				dst = append(dst, 0xfc+byte(e.t)>>6)
			}
		}
	}
	if c.o.Strength == 5 {
		dst = append(dst, separator)
		for _, r := range w.runes {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// shift marks the elements that Shifted ignores: variable ones, whose primary is small, and the accents behind them.
func (c *Collation) shift(ces []element) {
	if !c.o.Shifted {
		return
	}
	top := load().tops[1]
	if c.o.SpaceOnly {
		top = load().tops[0]
	}
	variable := false
	for i := range ces {
		e := &ces[i]
		switch {
		case e.p == 0 && variable:
			*e = element{}
		case e.p == 0:
		case e.p <= top && e.s != 0:
			e.q, variable = true, true
		default:
			variable = false
		}
	}
}

func appendPrimary(dst []byte, p uint32) []byte {
	for ; p != 0; p <<= 8 {
		dst = append(dst, byte(p>>24))
	}
	return dst
}

func (c *Collation) appendSecondary(dst []byte, ces []element) []byte {
	for i := range ces {
		e := ces[i]
		if c.o.Backwards {
			e = ces[len(ces)-1-i]
		}
		if e.s != 0 && !e.q {
			dst = append(dst, byte(e.s>>8), byte(e.s))
		}
	}
	return dst
}

func (c *Collation) caseWeight(e element) byte {
	w := byte(e.t>>14) + 2
	if c.o.CaseFirst == "upper" {
		return 8 - w
	}
	return w
}

// tertiary returns the weight at the third level. With CaseFirst, and without a level of its own for it, the case comes
// before the other differences.
func (c *Collation) tertiary(e element) uint16 {
	t := e.t & tertiaryMask
	if t == 0 || c.o.CaseFirst == "" || c.o.CaseLevel {
		return t
	}
	letter := e.t & caseMask
	if c.o.CaseFirst == "upper" {
		if e.p == 0 && e.s == 0 {
			return letter + t + 0x4000
		}
		letter ^= caseMask
	}
	return letter | t
}

// decompose appends the characters of a string in the normal form D.
func decompose(dst []rune, s []byte) []rune {
	if !ascii(s) && !norm.NFD.IsNormal(s) {
		s = norm.NFD.Bytes(s)
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		dst, s = append(dst, r), s[n:]
	}
	return dst
}

func ascii(s []byte) bool {
	for _, b := range s {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// elements appends the elements of a string. It moves accents to the letters that they belong to.
func (l *locale) elements(dst []element, runes []rune, numeric bool) []element {
	for i := 0; i < len(runes); {
		if numeric && unicode.IsDigit(runes[i]) {
			n := i + 1
			for n < len(runes) && unicode.IsDigit(runes[n]) {
				n++
			}
			dst = appendNumber(dst, runes[i:n])
			i = n
			continue
		}
		seq, n := l.longest(runes, i)
		if n == 0 {
			seq, n = []element{unassigned(runes[i])}, 1
		}
		dst = append(dst, seq...)
		i += n
	}
	return dst
}

// unassigned returns the element of a character that no table has: behind all others, in the order of code points.
func unassigned(r rune) element {
	const base = 252
	n := uint32(r)
	return element{p: 0xfe<<24 | (2+n/base/base)<<16 | (2+n/base%base)<<8 | (2 + n%base), s: common, t: common}
}
