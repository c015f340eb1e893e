package gvalue

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/isotime"
)

// dateForms are the accepted forms of a date and time.
const dateForms = isotime.DateOnly | isotime.MinutesOnly | isotime.NoZone | isotime.Space |
	isotime.ShortOffset | isotime.OffsetSeconds

// ParseOffsetDateTime reads an ISO 8601 date and time. Seconds, fraction and the whole time are optional. Without an
// offset the time is UTC.
func ParseOffsetDateTime(s string) (OffsetDateTime, bool) {
	if i := strings.IndexByte(s, '['); i > 0 && strings.HasSuffix(s, "]") { // the name of a zone after the offset
		s = s[:i]
	}
	t, ok := isotime.Parse(s, dateForms)
	if !ok {
		return OffsetDateTime{}, false
	}
	return OffsetDateTime{t.In(time.UTC)}, true
}

// ParseTimeText reads a text of TimeText. kind is the name of the type: "Instant", "LocalDate", "Duration", ..
func ParseTimeText(kind, s string) (v any, ok bool) {
	if len(s) > 64 {
		return nil, false
	}
	switch kind {
	case "OffsetDateTime":
		return asAny(ParseOffsetDateTime(s))
	case "ZonedDateTime":
		t, ok := ParseOffsetDateTime(s)
		return ZonedDateTime(t), ok
	case "Instant":
		t, ok := ParseOffsetDateTime(s)
		return Instant{t.Unix(), int32(t.Nanosecond())}, ok
	case "Duration":
		return asAny(parseDuration(s))
	case "LocalDate":
		return asAny(parseDate(s))
	case "LocalTime":
		return asAny(parseClock(s))
	case "LocalDateTime":
		date, clock, found := strings.Cut(s, "T")
		d, ok1 := parseDate(date)
		t, ok2 := parseClock(clock)
		return LocalDateTime{d, t}, found && ok1 && ok2
	case "MonthDay":
		t, err := time.Parse("--01-02", s)
		return MonthDay{int8(t.Month()), int8(t.Day())}, err == nil
	case "OffsetTime":
		i := strings.IndexAny(s, "Z+-")
		if i < 0 {
			return nil, false
		}
		t, ok1 := parseClock(s[:i])
		o, ok2 := parseOffset(s[i:])
		return OffsetTime{t, o}, ok1 && ok2
	case "ZoneOffset":
		return asAny(parseOffset(s))
	case "Period":
		return asAny(parsePeriod(s))
	case "Year":
		n, err := strconv.ParseInt(s, 10, 32)
		return Year(n), err == nil
	case "YearMonth":
		t, err := time.Parse("2006-01", s)
		return YearMonth{int32(t.Year()), int8(t.Month())}, err == nil
	case "InetAddress":
		a, err := netip.ParseAddr(s)
		return InetAddress(a.AsSlice()), err == nil && a.Zone() == ""
	}
	return nil, false
}

func asAny[T any](v T, ok bool) (any, bool) { return v, ok }

func parseDate(s string) (LocalDate, bool) {
	t, ok := isotime.ParseDate(s)
	return LocalDate{int32(t.Year), int8(t.Month), int8(t.Day)}, ok
}

func parseClock(s string) (LocalTime, bool) {
	t, ok := isotime.ParseClock(s, isotime.MinutesOnly)
	return LocalTime(int64(t.Hour*3600+t.Minute*60+t.Second)*1e9 + int64(t.Nano)), ok
}

func parseOffset(s string) (ZoneOffset, bool) {
	sec, ok := isotime.ParseOffset(s, isotime.OffsetSeconds)
	return ZoneOffset(sec), ok
}

// parsePeriod reads P1Y2M3D.
func parsePeriod(s string) (p Period, ok bool) {
	s, ok = strings.CutPrefix(s, "P")
	for ok && s != "" {
		i := strings.IndexAny(s, "YMWD")
		if i < 0 {
			return p, false
		}
		n, err := strconv.ParseInt(s[:i], 10, 32)
		switch s[i] {
		case 'Y':
			p.Years = int32(n)
		case 'M':
			p.Months = int32(n)
		case 'W':
			p.Days += int32(7 * n)
		case 'D':
			p.Days += int32(n)
		}
		ok, s = err == nil, s[i+1:]
	}
	return p, ok
}

// parseDuration reads P1DT2H3M4.5S. Each part may have a sign, and so may the whole.
func parseDuration(s string) (d Duration, ok bool) {
	sign := 1.0
	if t, neg := strings.CutPrefix(s, "-"); neg {
		sign, s = -1, t
	}
	s, ok = strings.CutPrefix(s, "P")
	ok = ok && s != "" && s != "T"
	inTime := false
	var sec, nano int64
	for ok && s != "" {
		if s[0] == 'T' && !inTime {
			inTime, s = true, s[1:]
			continue
		}
		i := strings.IndexAny(s, "DHMS")
		if i < 0 {
			return d, false
		}
		unit := map[byte]int64{'D': 86400, 'H': 3600, 'M': 60, 'S': 1}[s[i]]
		whole, frac, _ := strings.Cut(s[:i], ".")
		n, err := strconv.ParseInt(whole, 10, 64)
		if whole == "-0" || whole == "-" || whole == "" {
			n, err = 0, nil
		}
		if err != nil || len(frac) > 9 || frac != "" && s[i] != 'S' || (s[i] != 'D') != inTime ||
			n > math.MaxInt32*int64(86400) || n < -math.MaxInt32*int64(86400) {
			return d, false
		}
		sec += n * unit
		if frac != "" {
			f, err := strconv.ParseUint(frac+"000000000"[len(frac):], 10, 32)
			if err != nil {
				return d, false
			}
			if whole[0:min(1, len(whole))] == "-" {
				nano -= int64(f)
			} else {
				nano += int64(f)
			}
		}
		s = s[i+1:]
	}
	sec, nano = int64(sign)*sec, int64(sign)*nano
	if nano < 0 {
		sec, nano = sec-1, nano+1e9
	}
	return Duration{sec, int32(nano)}, ok
}
