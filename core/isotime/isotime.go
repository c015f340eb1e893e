// Package isotime reads and writes dates and times in the forms of ISO 8601. The languages of the APIs accept different
// forms and keep different digits. Each language passes the forms that it accepts as a Form, and makes its own value
// from the fields.
//
//	t, ok := isotime.Parse("2024-03-04T05:06:07.5Z", isotime.Full)
//	t.Unix(), t.Nano // 1709528767, 500000000
package isotime

import "time"

// Form is a set of forms that a reader accepts in addition to Full.
type Form uint16

// The forms.
const (
	Full          Form = 0         // 2024-03-04T05:06:07, any digits of fraction, and Z or an offset +01:30
	DateOnly      Form = 1 << iota // 2024-03-04
	DateZone                       // 2024-03-04+01:30
	MonthOnly                      // 2024-03
	MinutesOnly                    // 2024-03-04T05:06Z
	NoZone                         // 2024-03-04T05:06:07
	Space                          // 2024-03-04 05:06:07Z
	SpacedZone                     // 2024-03-04T05:06:07 +01:30
	LowerCase                      // 2024-03-04t05:06:07z
	ShortOffset                    // an offset +0130
	OffsetSeconds                  // an offset +01:30:15
	ShortHour                      // 2024-03-04T5:06:07Z
	Basic                          // 20240304T050607Z and, with DateOnly, 20240304
)

// Time has the fields of a text. They are in the ranges of calendar and clock: no day beyond the end of its month, no
// hour 24, no second 60.
type Time struct {
	Year, Month, Day     int
	Hour, Minute, Second int
	Nano                 int  // further digits are truncated
	Offset               int  // seconds east of UTC, less than 24 hours
	Zoned                bool // the text has Z or an offset; otherwise Offset is 0
}

// Unix returns the seconds since 1970. A time without a zone is taken as UTC.
func (t *Time) Unix() int64 {
	days := daysOf(t.Year, t.Month, t.Day)
	return days*86400 + int64(t.Hour*3600+t.Minute*60+t.Second-t.Offset)
}

// UnixMilli returns the milliseconds since 1970, truncated.
func (t *Time) UnixMilli() int64 { return t.Unix()*1000 + int64(t.Nano/1e6) }

// Ticks returns the 100 ns units within the millisecond.
func (t *Time) Ticks() uint16 { return uint16(t.Nano % 1e6 / 100) }

// UTC returns the instant. A time without a zone is taken as UTC.
func (t *Time) UTC() time.Time { return time.Unix(t.Unix(), int64(t.Nano)).UTC() }

// In returns the time in the zone of the text, or in loc if the text has none.
func (t *Time) In(loc *time.Location) time.Time {
	if t.Zoned {
		if loc = time.UTC; t.Offset != 0 {
			loc = time.FixedZone("", t.Offset)
		}
	}
	return time.Date(t.Year, time.Month(t.Month), t.Day, t.Hour, t.Minute, t.Second, t.Nano, loc)
}

// daysOf returns the days from 1970-01-01 to a date of the Gregorian calendar. Its years start in March, so a leap day
// is the last day of a year. An era is 400 years.
func daysOf(y, m, d int) int64 {
	if m <= 2 {
		y, m = y-1, m+12
	}
	era := floorDiv(int64(y), 400)
	yoe := int64(y) - era*400
	doy := int64((153*(m-3)+2)/5 + d - 1)
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// dateOf is the inverse of daysOf.
func dateOf(days int64) (y, m, d int) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = int(doy - (153*mp+2)/5 + 1)
	m = int(mp + 3)
	y = int(yoe + era*400)
	if m > 12 {
		m -= 12
		y++
	}
	return y, m, d
}

// daysIn returns the number of days of a month.
func daysIn(y, m int) int {
	switch {
	case m == 2 && y%4 == 0 && (y%100 != 0 || y%400 == 0):
		return 29
	case m == 2:
		return 28
	case m == 4 || m == 6 || m == 9 || m == 11:
		return 30
	}
	return 31
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
