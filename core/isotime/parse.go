package isotime

// Parse reads s, which must have the form Full or one of f; otherwise ok is false. It stops at the first character that
// doesn't fit, so a long text costs no more than a short one.
func Parse[S ~string | ~[]byte](s S, f Form) (t Time, ok bool) {
	p := parser[S]{s: s, form: f}
	p.date(&t)
	if !p.bad {
		p.rest(&t)
	}
	return t, !p.bad && p.i == len(s)
}

// ParseDate reads a date: 2024-03-04.
func ParseDate[S ~string | ~[]byte](s S) (t Time, ok bool) {
	p := parser[S]{s: s}
	p.date(&t)
	return t, !p.bad && p.i == len(s)
}

// ParseClock reads a time of day: 05:06:07.5, or 05:06 if f has MinutesOnly.
func ParseClock[S ~string | ~[]byte](s S, f Form) (t Time, ok bool) {
	p := parser[S]{s: s, form: f}
	p.clock(&t)
	return t, !p.bad && p.i == len(s)
}

// ParseOffset reads Z or an offset and returns its seconds east of UTC.
func ParseOffset[S ~string | ~[]byte](s S, f Form) (seconds int, ok bool) {
	p := parser[S]{s: s, form: f}
	var t Time
	p.zone(&t)
	return t.Offset, !p.bad && p.i == len(s)
}

// parser reads fields of fixed width. bad is set by the first fault and stays set.
type parser[S ~string | ~[]byte] struct {
	s     S
	i     int
	form  Form
	basic bool // no separators between the fields
	bad   bool
}

func (p *parser[S]) is(f Form) bool { return p.form&f != 0 }

// num reads a number of width digits.
func (p *parser[S]) num(width int) int {
	if p.bad || len(p.s)-p.i < width {
		p.bad = true
		return 0
	}
	n := 0
	for ; width > 0; width-- {
		c := p.s[p.i]
		if c < '0' || c > '9' {
			p.bad = true
			return 0
		}
		n = n*10 + int(c-'0')
		p.i++
	}
	return n
}

// take consumes c if it is the next character.
func (p *parser[S]) take(c byte) bool {
	if p.bad || p.i >= len(p.s) || p.s[p.i] != c {
		return false
	}
	p.i++
	return true
}

// sep consumes the separator c between two fields. The basic form has none.
func (p *parser[S]) sep(c byte) {
	if !p.basic && !p.take(c) {
		p.bad = true
	}
}

// digit reports whether the character at i is a digit.
func (p *parser[S]) digit(i int) bool { return i < len(p.s) && p.s[i] >= '0' && p.s[i] <= '9' }

func (p *parser[S]) date(t *Time) {
	t.Year = p.num(4)
	p.basic = p.is(Basic) && p.digit(p.i)
	p.sep('-')
	t.Month = p.num(2)
	if p.is(MonthOnly) && !p.basic && p.i == len(p.s) {
		t.Day = 1
	} else {
		p.sep('-')
		t.Day = p.num(2)
	}
	if t.Month < 1 || t.Month > 12 || t.Day < 1 || t.Day > daysIn(t.Year, t.Month) {
		p.bad = true
	}
}

// rest reads everything after a date.
func (p *parser[S]) rest(t *Time) {
	if p.i == len(p.s) && (p.is(DateOnly) || p.is(MonthOnly) && p.i == len("2006-01")) {
		return
	}
	if p.take('T') || p.is(LowerCase) && p.take('t') || p.is(Space) && p.take(' ') {
		p.clock(t)
		if p.i == len(p.s) && p.is(NoZone) {
			return
		}
		if p.is(SpacedZone) {
			p.take(' ')
		}
	} else if !p.is(DateZone) {
		p.bad = true
	}
	p.zone(t)
}

func (p *parser[S]) clock(t *Time) {
	if p.is(ShortHour) && p.digit(p.i) && !p.digit(p.i+1) {
		t.Hour = p.num(1)
	} else {
		t.Hour = p.num(2)
	}
	p.sep(':')
	t.Minute = p.num(2)
	if more := p.basic && p.digit(p.i) || !p.basic && p.i < len(p.s) && p.s[p.i] == ':'; more || !p.is(MinutesOnly) {
		p.sep(':')
		if t.Second = p.num(2); p.take('.') {
			t.Nano = p.fraction()
		}
	}
	if t.Hour > 23 || t.Minute > 59 || t.Second > 59 {
		p.bad = true
	}
}

// fraction reads at least one digit and returns the fraction in nanoseconds.
func (p *parser[S]) fraction() int {
	n, digits := 0, 0
	for ; p.digit(p.i); p.i++ {
		if digits < 9 {
			n = n*10 + int(p.s[p.i]-'0')
		}
		digits++
	}
	if digits == 0 {
		p.bad = true
	}
	for ; digits < 9; digits++ {
		n *= 10
	}
	return n
}

// zone reads Z or an offset.
func (p *parser[S]) zone(t *Time) {
	t.Zoned = true
	if p.take('Z') || p.is(LowerCase) && p.take('z') {
		return
	}
	sign := 1
	if p.take('-') {
		sign = -1
	} else if !p.take('+') {
		p.bad = true
	}
	h := p.num(2)
	if !p.take(':') && !p.is(ShortOffset) {
		p.bad = true
	}
	m := p.num(2)
	s := 0
	if p.is(OffsetSeconds) && p.take(':') {
		s = p.num(2)
	}
	if h > 23 || m > 59 || s > 59 {
		p.bad = true
	}
	t.Offset = sign * (h*3600 + m*60 + s)
}
