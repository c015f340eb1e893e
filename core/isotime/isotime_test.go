package isotime

import (
	"strings"
	"testing"
	"time"
)

const all = DateOnly | DateZone | MonthOnly | MinutesOnly | NoZone | Space | SpacedZone | LowerCase |
	ShortOffset | OffsetSeconds | ShortHour | Basic

func TestForms(t *testing.T) {
	for _, c := range []struct {
		in   string
		form Form // the only form that accepts it, in addition to Full
		want string
	}{
		{"2024-03-04T05:06:07Z", Full, "2024-03-04T05:06:07Z"},
		{"2024-03-04T05:06:07.123456789Z", Full, "2024-03-04T05:06:07.123456789Z"},
		{"2024-03-04T05:06:07.1234567899Z", Full, "2024-03-04T05:06:07.123456789Z"},
		{"2024-03-04T05:06:07.5+01:30", Full, "2024-03-04T05:06:07.5+01:30"},
		{"2024-03-04T05:06:07-23:59", Full, "2024-03-04T05:06:07-23:59"},
		{"0000-01-01T00:00:00Z", Full, "0000-01-01T00:00:00Z"},
		{"2024-03-04", DateOnly, "2024-03-04T00:00:00Z"},
		{"2024-02-29", DateOnly, "2024-02-29T00:00:00Z"},
		{"2000-02-29", DateOnly, "2000-02-29T00:00:00Z"},
		{"2024-03-04+01:00", DateZone, "2024-03-04T00:00:00+01:00"},
		{"2024-03", MonthOnly, "2024-03-01T00:00:00Z"},
		{"2024-03-04T05:06Z", MinutesOnly, "2024-03-04T05:06:00Z"},
		{"2024-03-04T05:06:07", NoZone, "2024-03-04T05:06:07Z"},
		{"2024-03-04 05:06:07Z", Space, "2024-03-04T05:06:07Z"},
		{"2024-03-04T05:06:07 +01:00", SpacedZone, "2024-03-04T05:06:07+01:00"},
		{"2024-03-04t05:06:07z", LowerCase, "2024-03-04T05:06:07Z"},
		{"2024-03-04T05:06:07+0130", ShortOffset, "2024-03-04T05:06:07+01:30"},
		{"2024-03-04T05:06:07+00:00:15", OffsetSeconds, "2024-03-04T05:06:07+00:00"},
		{"2024-03-04T5:06:07Z", ShortHour, "2024-03-04T05:06:07Z"},
		{"20240304T050607Z", Basic, "2024-03-04T05:06:07Z"},
		{"20240304", Basic | DateOnly, "2024-03-04T00:00:00Z"},
		{"20240304T0506", Basic | MinutesOnly | NoZone, "2024-03-04T05:06:00Z"},
	} {
		for _, f := range []Form{c.form, all} {
			got, ok := Parse(c.in, f)
			if text := got.In(time.UTC).Format(time.RFC3339Nano); !ok || text != c.want {
				t.Errorf("%q, form %b: %s %v, want %s", c.in, f, text, ok, c.want)
			}
		}
		if c.form == Full {
			continue
		}
		for f := DateOnly; f <= Basic; f <<= 1 {
			if _, ok := Parse(c.in, c.form&^f); ok && c.form&f != 0 {
				t.Errorf("%q is taken without form %b", c.in, f)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, in := range []string{
		"", "2", "2024", "2024-", "2024-3-04", "2024-00-01", "2024-13-01", "2024-03-00", "2024-03-32",
		"2024-02-30", "2023-02-29",
		"1900-02-29", "2024-04-31", "2024-03-04T", "2024-03-04T24:00:00Z", "2024-03-04T05:60:00Z",
		"2024-03-04T05:06:60Z", "2024-03-04T05:06:07.Z", "2024-03-04T05:06:07,5Z", "2024-03-04T05:06:07Zx",
		"2024-03-04T05:06:07+", "2024-03-04T05:06:07+1",
		"2024-03-04T05:06:07+24:00", "2024-03-04T05:06:07+01:60", "2024-03-04T05:06:07+01", " 2024-03-04",
		"2024-03-04 ", "-024-03-04",
		"2024-0304", "202403-04", "2024-03T05:06:07Z", "２024-03-04", "2024-03-04T05:06:07Z" + strings.Repeat("0", 100),
	} {
		if got, ok := Parse(in, all); ok {
			t.Errorf("%q is read as %+v", in, got)
		}
	}
}

func TestParts(t *testing.T) {
	if d, ok := ParseDate("2024-03-04"); !ok || d.Year != 2024 || d.Month != 3 || d.Day != 4 {
		t.Error(d, ok)
	}
	if c, ok := ParseClock("05:06:07.25", Full); !ok || c.Hour != 5 || c.Minute != 6 || c.Second != 7 ||
		c.Nano != 25e7 {
		t.Error(c, ok)
	}
	if _, ok := ParseClock("05:06", Full); ok {
		t.Error("05:06 has seconds")
	}
	for in, want := range map[string]int{"Z": 0, "+01:30": 5400, "-00:00:01": -1} {
		if got, ok := ParseOffset(in, OffsetSeconds); !ok || got != want {
			t.Errorf("%s: %d %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "z", "01:30", "+01:30x"} {
		if _, ok := ParseOffset(in, OffsetSeconds); ok {
			t.Errorf("%q is an offset", in)
		}
	}
}

// TestCalendar compares the calendar with that of package time, over all months of years at the ends of centuries and
// eras.
func TestCalendar(t *testing.T) {
	for _, y := range []int{-401, -400, -1, 0, 1, 4, 99, 100, 399, 400, 1600, 1899, 1900, 1969, 1970, 2000,
		2023, 2024, 9999, 12000} {
		for m := 1; m <= 12; m++ {
			last := time.Date(y, time.Month(m)+1, 0, 23, 59, 59, 0, time.UTC)
			if got := daysIn(y, m); got != last.Day() {
				t.Errorf("%d-%d has %d days, want %d", y, m, got, last.Day())
			}
			for _, d := range []int{1, last.Day()} {
				want := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Unix() / 86400
				if got := daysOf(y, m, d); got != want {
					t.Errorf("%d-%d-%d is day %d, want %d", y, m, d, got, want)
				}
				if gy, gm, gd := dateOf(want); gy != y || gm != m || gd != d {
					t.Errorf("day %d is %d-%d-%d, want %d-%d-%d", want, gy, gm, gd, y, m, d)
				}
			}
			if y >= 0 && y <= 9999 {
				if got, want := string(Append(nil, last.Unix())), last.Format("2006-01-02T15:04:05"); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
		}
	}
}

func TestAppend(t *testing.T) {
	at := time.Date(2024, 3, 4, 5, 6, 7, 120_345_600, time.UTC)
	for _, c := range [][2]string{
		{string(AppendMilli(nil, at.UnixMilli(), 0)), "2024-03-04T05:06:07.120Z"},
		{string(AppendMilli(nil, at.UnixMilli(), 3456)), "2024-03-04T05:06:07.1203456Z"},
		{string(AppendMilli(nil, -1, 9999)), "1969-12-31T23:59:59.9999999Z"},
		{string(AppendTicks(nil, at.In(time.FixedZone("", 3600)))), "2024-03-04T05:06:07.1203456Z"},
		{string(AppendColon(nil, at.Unix(), "%3A")), "2024-03-04T05%3A06%3A07"},
		{string(AppendMilli(nil, 253402300800000, 0)), "10000-01-01T00:00:00.000Z"},
		{string(AppendMilli(nil, -62198755200000, 0)), "-0001-01-01T00:00:00.000Z"},
		{string(AppendPadded(nil, 0, 1)), "0"},
		{string(AppendPadded(nil, 12345, 3)), "12345"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s, want %s", c[0], c[1])
		}
	}
}

// FuzzParse: package time reads a text of the form Full as RFC 3339 to the same instant. What was read is written, and
// reads back to the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"2024-03-04T05:06:07.1234567Z", "2024-02-30T00:00:00Z", "20240304T050607",
		"2024-03-04 5:06", "2024-03", "0001-01-01T00:00:00-23:59"} {
		f.Add(s, uint16(all))
	}
	f.Fuzz(func(t *testing.T, s string, form uint16) {
		full, ok := Parse(s, Full)
		if std, err := time.Parse(time.RFC3339Nano, s); ok && (err != nil || !std.Equal(full.In(time.UTC))) {
			t.Fatalf("%q: %v, package time says %v %v", s, full, std, err)
		}
		got, ok := Parse([]byte(s), Form(form))
		if !ok {
			return
		}
		if want := got.In(time.UTC); !want.Equal(got.UTC()) {
			t.Fatalf("%q: %s and %s", s, want, got.UTC())
		}
		again, ok := Parse(AppendMilli(nil, got.UnixMilli(), got.Ticks()), Full)
		y, same := got.UTC().Year(), again.UnixMilli() == got.UnixMilli() && again.Ticks() == got.Ticks()
		if ok != (y >= 0 && y <= 9999) || ok && !same {
			t.Fatalf("%q: %+v became %+v", s, got, again)
		}
	})
}
