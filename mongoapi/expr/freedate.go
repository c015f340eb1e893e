package expr

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// freeDate reads a date that a person wrote.
//
// Examples: "July 4th, 2017 12:39:30 BST", "7/4/17", "2017-Jul-04 noon" and "Tue, 4 Jul 2017 10:00:00 GMT+0200". The
// parts come in any order, with spaces, commas and points between them. Words of relative times, as in "tomorrow" and
// "+1 day", are none of them.
type freeDate struct {
	rest             string
	year, month, day int // 0: not given
	hour, min, sec   int
	ms               int64
	weekday          time.Weekday
	zone             *time.Location
	has              freePart
}

// freePart is a set of the parts that a text has given.
type freePart byte

const (
	freeDay freePart = 1 << iota
	freeTime
	freeWeekday
	freeYear
)

const (
	freeMonth = `(january|february|march|april|may|june|july|august|september|sept|october|november|december|` +
		`jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)`
	freeNumber = `(\d\d?)(?:st|nd|rd|th)?`
)

// freeForms are the forms of the parts. Each sets what its groups have, in the order of its letters: y, m and d; M is
// the name of a month; h, i, s and f are of the time, and p is a or p.
var freeForms = compileForms(
	"ymd", `(\d{4})([-/])(\d\d?)([-/])(\d\d?)`,
	"dmy", `(\d\d?)[-.](\d\d?)[-.](\d{4})`,
	"ymd", `(\d\d)(-)(\d\d?)(-)(\d\d?)`,
	"mdy", `(\d\d?)/(\d\d?)/(\d{4}|\d\d)`,
	"yMd", `(\d{4})[- ]`+freeMonth+`[- ]`+freeNumber,
	"dMy", freeNumber+`[ .-]*`+freeMonth+`[ .,-]*(\d{4})`,
	"Mdy", freeMonth+`[ .-]*`+freeNumber+`[ .,-]+(\d{4})`,
	"My", freeMonth+`[ .-]*(\d{4})`,
	"dM", freeNumber+`[ .-]*`+freeMonth,
	"Md", freeMonth+`[ .-]*`+freeNumber,
	"hisfp", `t?(\d\d?):(\d\d)[:.](\d\d)(\.\d+)? *([ap])\.?m\b\.?`,
	"hisf", `t?(\d\d?):(\d\d)[:.](\d\d)(\.\d+)?`,
	"hip", `t?(\d\d?):(\d\d) *([ap])\.?m\b\.?`,
	"hi", `t?(\d\d?):(\d\d)`,
	"hp", `(\d\d?) *([ap])\.?m\b\.?`,
	"h", `t(\d\d)`,
)

type freeForm struct {
	letters string
	re      *regexp.Regexp
}

func compileForms(texts ...string) []freeForm {
	forms := make([]freeForm, 0, len(texts)/2)
	for i := 0; i < len(texts); i += 2 {
		forms = append(forms, freeForm{texts[i], regexp.MustCompile(`^(?i:` + texts[i+1] + `)`)})
	}
	return forms
}

// parseFree parses a date that a person wrote, and returns milliseconds since 1970. loc is the zone of a text without
// one. It's not ok if the text is no such date.
func parseFree(s string, loc *time.Location) (ms int64, ok bool, err error) {
	f := &freeDate{rest: s}
	for {
		if f.rest = strings.TrimLeft(f.rest, " \t\n,."); f.rest == "" {
			break
		}
		if !f.form() && !f.word() && !f.lateYear() && !f.offset() {
			return 0, false, nil
		}
	}
	if f.has&(freeDay|freeTime|freeWeekday) == 0 {
		return 0, false, nil
	}
	if f.has&freeDay == 0 || f.has&freeYear == 0 {
		return 0, false, merr.New(merr.ConversionFailure, "an incomplete date/time string has been found, with "+
			"elements missing: \"%s\"", s)
	}
	if f.zone != nil {
		if err := onlyZone(s, loc); err != nil {
			return 0, false, err
		}
		loc = f.zone
	}
	t := time.Date(f.year, time.Month(f.month), f.day, f.hour, f.min, f.sec, 0, loc)
	if day := time.Date(f.year, time.Month(f.month), f.day, 0, 0, 0, 0, time.UTC); f.month < 1 || f.month > 12 ||
		f.day < 1 || day.Day() != f.day || f.hour > 23 || f.min > 59 || f.sec > 59 ||
		f.has&freeWeekday != 0 && day.Weekday() != f.weekday {
		return 0, false, nil
	}
	return t.UnixMilli() + f.ms, true, nil
}

// form reads one of the forms of dates and times.
func (f *freeDate) form() bool {
	for _, form := range freeForms {
		part := freeDay
		if strings.Contains(form.letters, "h") {
			part = freeTime
		}
		groups := form.re.FindStringSubmatch(f.rest)
		if groups == nil || f.has&part != 0 || !ends(f.rest, len(groups[0])) {
			continue
		}
		if form.letters == "ymd" { // the same sign twice
			if groups[2] != groups[4] {
				continue
			}
			groups = []string{groups[0], groups[1], groups[3], groups[5]}
		}
		f.rest, f.has = f.rest[len(groups[0]):], f.has|part
		for i, letter := range form.letters {
			if !f.set(letter, groups[i+1]) {
				return false
			}
		}
		if form.letters == "My" {
			f.day = 1
		}
		return true
	}
	return false
}

// ends tells if a part of a text can end before byte n: it's not inside a number or a word.
func ends(s string, n int) bool {
	if n == len(s) {
		return true
	}
	last, next := s[n-1]|0x20, s[n]|0x20
	digits := last >= '0' && last <= '9' && s[n] >= '0' && s[n] <= '9'
	return !digits && !(last >= 'a' && last <= 'z' && next >= 'a' && next <= 'z')
}

// set sets a part by a letter of freeForms.
func (f *freeDate) set(letter rune, s string) bool {
	n, _ := strconv.Atoi(s)
	switch letter {
	case 'y':
		f.has |= freeYear
		if f.year = n; len(s) == 2 {
			f.year += 1900
			if n < 70 {
				f.year += 100
			}
		}
	case 'm':
		f.month = n
	case 'M':
		f.month = monthNamed(s)
	case 'd':
		f.day = n
	case 'h':
		f.hour = n
	case 'i':
		f.min = n
	case 's':
		f.sec = n
	case 'f':
		if s != "" {
			ms, _ := strconv.Atoi((s[1:] + "000")[:3])
			f.ms = int64(ms)
		}
	case 'p':
		if f.hour < 1 || f.hour > 12 {
			return false
		}
		if f.hour %= 12; s == "p" || s == "P" {
			f.hour += 12
		}
	}
	return true
}

// monthNamed returns the number of a month by the first three letters of its name.
func monthNamed(s string) int {
	for m := time.January; m <= time.December; m++ {
		if strings.EqualFold(m.String()[:3], s[:3]) {
			return int(m)
		}
	}
	return 0
}

// word reads noon, midnight, the name of a weekday or of a zone.
func (f *freeDate) word() bool {
	n := 0
	for n < len(f.rest) && (f.rest[n]|0x20) >= 'a' && (f.rest[n]|0x20) <= 'z' {
		n++
	}
	word := strings.ToLower(f.rest[:n])
	if word == "" {
		return false
	}
	if word == "noon" || word == "midnight" {
		if f.has&freeTime != 0 {
			return false
		}
		if f.has |= freeTime; word == "noon" {
			f.hour = 12
		}
		f.rest = f.rest[n:]
		return true
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := strings.ToLower(d.String()); f.has&freeWeekday == 0 && (word == name || word == name[:3]) {
			f.weekday, f.has, f.rest = d, f.has|freeWeekday, f.rest[n:]
			return true
		}
	}
	zone, after, ok := cutZone(f.rest)
	if !ok || f.zone != nil || len(f.rest)-len(after) < n {
		return false
	}
	f.zone, f.rest = zone, after
	return true
}

// lateYear reads a year after the time, as in "Tue Jul  4 10:00:00 2017".
func (f *freeDate) lateYear() bool {
	if f.has&(freeDay|freeTime|freeYear) != freeDay|freeTime || len(f.rest) < 4 || !ends(f.rest, 4) {
		return false
	}
	n, err := strconv.ParseUint(f.rest[:4], 10, 16)
	if err != nil {
		return false
	}
	f.year, f.has, f.rest = int(n), f.has|freeYear, f.rest[4:]
	return true
}

// offset reads the offset of a zone.
func (f *freeDate) offset() bool {
	zone, after, ok := cutZone(f.rest)
	if !ok || f.zone != nil {
		return false
	}
	f.zone, f.rest = zone, after
	return true
}

// zoneNames are the hours from UTC of the abbreviations that texts use for zones. The letters of the military are
// others.
var zoneNames = map[string]float64{"utc": 0, "gmt": 0, "wet": 0, "west": 1, "bst": 1, "cet": 1, "cest": 2, "eet": 2,
	"eest": 3, "jst": 9, "awst": 8, "aest": 10, "aedt": 11, "acst": 9.5, "acdt": 10.5, "nzst": 12, "nzdt": 13,
	"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "akdt": -8,
	"hst": -10, "ast": -4, "adt": -3}

// cutZone cuts the zone at the start of a text: an abbreviation, an offset, or an offset after GMT or UTC.
func cutZone(s string) (zone *time.Location, after string, ok bool) {
	n := 0
	for n < len(s) && (s[n]|0x20) >= 'a' && (s[n]|0x20) <= 'z' {
		n++
	}
	name := strings.ToLower(s[:n])
	if name != "" && (name != "gmt" && name != "utc" || n == len(s) || s[n] != '+' && s[n] != '-') {
		hours, known := zoneNames[name]
		if n == 1 {
			hours, known = militaryZone(name[0])
		}
		return time.FixedZone("", int(hours*3600)), s[n:], known
	}
	if n == len(s) || s[n] != '+' && s[n] != '-' {
		return nil, s, false
	}
	m := n + 1
	for m < len(s) && (s[m] >= '0' && s[m] <= '9' || s[m] == ':') {
		m++
	}
	text := s[n:m]
	switch len(text) {
	case 2:
		text = text[:1] + "0" + text[1:] + ":00"
	case 3:
		text += ":00"
	}
	sec, ok := isotime.ParseOffset(text, isotime.ShortOffset)
	return time.FixedZone("", sec), s[m:], ok
}

// militaryZone returns the hours from UTC of a zone with a letter for a name: A to M without J are to the east, N to Y
// to the west, and Z is UTC.
func militaryZone(letter byte) (hours float64, ok bool) {
	switch {
	case letter <= 'i':
		return float64(letter - 'a' + 1), true
	case letter == 'j':
		return 0, false
	case letter <= 'm':
		return float64(letter - 'a'), true
	case letter <= 'y':
		return -float64(letter - 'n' + 1), true
	}
	return 0, true
}
