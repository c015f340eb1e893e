package expr

import (
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/mongoapi/merr"
)

// dateReader reads a text by a format of $dateFromString.
//
// Example: "4/26/1992" by "%m/%d/%Y". A day or month may have one digit. What the text doesn't have of the time is 0.
type dateReader struct {
	s, rest string
	n       map[byte]int // what the letters of the format gave
	zone    *time.Location
}

func (r *dateReader) failed(why string) error {
	return merr.New(merr.ConversionFailure, "Error parsing date string '%s'; %d: %s '%s'", r.s, len(r.s)-len(r.rest),
		why, r.rest[:min(1, len(r.rest))])
}

// dateDigits are the least and the greatest numbers of digits for a letter of the format.
var dateDigits = map[byte][2]int{'d': {1, 2}, 'G': {1, 4}, 'H': {1, 2}, 'j': {1, 3}, 'L': {1, 3}, 'm': {1, 2},
	'M': {2, 2}, 'S': {2, 2}, 'u': {1, 1}, 'V': {1, 2}, 'Y': {4, 4}}

// checkFormat refuses a format with letters that $dateFromString doesn't know.
func checkFormat(format string) error {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if i++; i == len(format) {
			return merr.New(18535, "Unmatched '%%' at end of format string")
		}
		if _, ok := dateDigits[format[i]]; !ok && !strings.ContainsRune("bBzZ%", rune(format[i])) {
			return merr.New(18536, "Invalid format character '%%%c' in format string", format[i])
		}
	}
	return nil
}

// readDate returns the time of a text in a format that checkFormat has taken, in milliseconds since 1970. loc is the
// zone of a text without one.
func readDate(s, format string, loc *time.Location) (int64, error) {
	r := &dateReader{s: s, rest: s, n: map[byte]int{}}
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c == '%' {
			if i++; format[i] != '%' {
				if err := r.part(format[i]); err != nil {
					return 0, err
				}
				continue
			}
		}
		switch {
		case r.rest == "":
			return 0, r.failed("Data missing")
		case r.rest[0] != c:
			return 0, r.failed("Format literal not found")
		}
		r.rest = r.rest[1:]
	}
	if r.rest != "" {
		return 0, r.failed("Trailing data")
	}
	if r.zone != nil {
		if err := onlyZone(s, loc); err != nil {
			return 0, err
		}
		loc = r.zone
	}
	return r.time(loc)
}

// onlyZone refuses a text with a zone if an argument names one too.
func onlyZone(s string, loc *time.Location) error {
	if loc == time.UTC {
		return nil
	}
	return merr.New(merr.ConversionFailure, "you cannot pass in a date/time string with time zone information ('%s') "+
		"together with a timezone argument", s)
}

// part reads what a letter of the format stands for.
func (r *dateReader) part(letter byte) error {
	if r.rest == "" {
		return r.failed("Data missing")
	}
	switch letter {
	case 'b', 'B':
		for m := time.January; m <= time.December; m++ {
			for _, name := range []string{m.String(), m.String()[:3]} {
				if len(r.rest) >= len(name) && strings.EqualFold(r.rest[:len(name)], name) {
					r.n['m'], r.rest = int(m), r.rest[len(name):]
					return nil
				}
			}
		}
		return r.failed("A textual month could not be found")
	case 'z':
		return r.offset()
	case 'Z':
		sign := strings.TrimLeft(r.rest, "+-")
		digits := sign[:len(sign)-len(strings.TrimLeft(sign, "0123456789"))]
		minutes, err := strconv.Atoi(r.rest[:len(r.rest)-len(sign)] + digits)
		if err != nil || minutes <= -1440 || minutes >= 1440 {
			return r.failed("A timezone offset in minutes could not be found")
		}
		r.zone, r.rest = time.FixedZone("", minutes*60), sign[len(digits):]
		return nil
	}
	digits, n, v := dateDigits[letter], 0, 0
	for n < digits[1] && n < len(r.rest) && r.rest[n] >= '0' && r.rest[n] <= '9' {
		v = 10*v + int(r.rest[n]-'0')
		n++
	}
	if n < digits[0] {
		return r.failed("A number could not be found")
	}
	for of := n; letter == 'L' && of < 3; of++ { // a fraction of a second
		v *= 10
	}
	r.n[letter], r.rest = v, r.rest[n:]
	return nil
}

// offset reads a time zone: an abbreviation, or an offset, also after GMT.
func (r *dateReader) offset() error {
	zone, rest, ok := cutZone(strings.TrimLeft(r.rest, " "))
	if !ok {
		return r.failed("The timezone could not be found in the database")
	}
	r.zone, r.rest = zone, rest
	return nil
}

// time returns the time of the parts that were read.
func (r *dateReader) time(loc *time.Location) (int64, error) {
	part := func(letter byte, missing int) int {
		if v, ok := r.n[letter]; ok {
			return v
		}
		return missing
	}
	var day time.Time
	year, hasYear := r.n['Y']
	if isoYear, ok := r.n['G']; ok {
		day = isoDate(isoYear, part('V', 1), part('u', 1), time.UTC)
	} else if yearDay, ok := r.n['j']; ok && hasYear {
		day = time.Date(year, 1, yearDay, 0, 0, 0, 0, time.UTC)
	} else {
		month, date := r.n['m'], r.n['d']
		if _, ok := r.n['d']; !ok || !hasYear || month == 0 {
			return 0, merr.New(merr.ConversionFailure, "an incomplete date/time string has been found, with elements "+
				"missing: \"%s\"", r.s)
		}
		if day = time.Date(year, time.Month(month), date, 0, 0, 0, 0, time.UTC); day.Day() != date || month > 12 {
			return 0, r.failed("The parsed date was invalid")
		}
	}
	if r.n['H'] > 23 || r.n['M'] > 59 || r.n['S'] > 59 {
		return 0, r.failed("The parsed time was invalid")
	}
	t := time.Date(day.Year(), day.Month(), day.Day(), r.n['H'], r.n['M'], r.n['S'], 0, loc)
	return t.UnixMilli() + int64(r.n['L']), nil
}

// isoDate returns a day of a week of an ISO year.
func isoDate(year, week, day int, loc *time.Location) time.Time {
	jan4 := time.Date(year, 1, 4, 0, 0, 0, 0, loc)
	return jan4.AddDate(0, 0, 1-isoWeekday(jan4)+7*(week-1)+day-1)
}
