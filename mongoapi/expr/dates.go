package expr

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the binary is a single file, so it includes the time zones

	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

var dateOps = map[string]operator{
	"$dateAdd":       dateArith("$dateAdd", 1),
	"$dateSubtract":  dateArith("$dateSubtract", -1),
	"$dateDiff":      named([]string{"startDate", "endDate", "unit"}, []string{"timezone", "startOfWeek"}, dateDiff),
	"$dateTrunc":     named([]string{"date", "unit"}, []string{"binSize", "timezone", "startOfWeek"}, dateTrunc),
	"$dateFromParts": named(nil, datePartNames, dateFromParts),
	"$dateToParts":   named([]string{"date"}, []string{"timezone", "iso8601"}, dateToParts),
	"$dateFromString": named([]string{"dateString"}, []string{"format", "timezone", "onError", "onNull"},
		dateFromString),
	"$dateToString": named([]string{"date"}, []string{"format", "timezone", "onNull"}, dateToString),
	"$dayOfMonth":   datePart("$dayOfMonth", time.Time.Day),
	"$dayOfWeek":    datePart("$dayOfWeek", func(t time.Time) int { return int(t.Weekday()) + 1 }),
	"$dayOfYear":    datePart("$dayOfYear", time.Time.YearDay),
	"$hour":         datePart("$hour", time.Time.Hour),
	"$isoDayOfWeek": datePart("$isoDayOfWeek", isoWeekday),
	"$isoWeek":      datePart("$isoWeek", func(t time.Time) int { _, w := t.ISOWeek(); return w }),
	"$isoWeekYear":  datePart("$isoWeekYear", func(t time.Time) int { y, _ := t.ISOWeek(); return y }),
	"$millisecond":  datePart("$millisecond", func(t time.Time) int { return t.Nanosecond() / 1e6 }),
	"$minute":       datePart("$minute", time.Time.Minute),
	"$month":        datePart("$month", func(t time.Time) int { return int(t.Month()) }),
	"$second":       datePart("$second", time.Time.Second),
	"$week":         datePart("$week", sundayWeek),
	"$year":         datePart("$year", time.Time.Year),
	"$tsSecond": nullUnary(func(v value.Value) (value.Value, error) {
		if v.Kind() != value.Timestamp {
			return v, merr.New(5687301, "Argument to $tsSecond must be a timestamp, but is %s", TypeName(v))
		}
		return value.Int64Of(int64(v.Raw64() >> 32)), nil
	}),
	"$tsIncrement": nullUnary(func(v value.Value) (value.Value, error) {
		if v.Kind() != value.Timestamp {
			return v, merr.New(5687302, "Argument to $tsIncrement must be a timestamp, but is %s", TypeName(v))
		}
		return value.Int64Of(int64(uint32(v.Raw64()))), nil
	}),
}

func isoWeekday(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

// sundayWeek counts weeks from the year's first Sunday.
func sundayWeek(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }

// zone parses a time zone: an Olson name or an offset. A missing zone is UTC. ok is false for null.
func zone(v value.Value, given bool) (loc *time.Location, ok bool, err error) {
	if !given {
		return time.UTC, true, nil
	}
	if nullish(v) {
		return nil, false, nil
	}
	if v.Kind() != value.String {
		return nil, false, merr.New(40517, "timezone must evaluate to a string, found %s", TypeName(v))
	}
	s := v.Str()
	if s == "UTC" || s == "GMT" || s == "Z" {
		return time.UTC, true, nil
	}
	if len(s) > 1 && (s[0] == '+' || s[0] == '-') {
		d := strings.ReplaceAll(s[1:], ":", "")
		n, err := strconv.Atoi(d)
		if err == nil && (len(d) == 2 || len(d) == 4) {
			if len(d) == 2 {
				n *= 100
			}
			sec := n/100*3600 + n%100*60
			if s[0] == '-' {
				sec = -sec
			}
			return time.FixedZone(s, sec), true, nil
		}
	}
	if !strings.ContainsAny(s, "\\.") && s != "" && s != "Local" {
		if loc, err := time.LoadLocation(s); err == nil {
			return loc, true, nil
		}
	}
	return nil, false, merr.New(40485, "unrecognized time zone identifier: \"%s\"", s)
}

// when returns the time of a date, a timestamp or an ObjectId.
func when(v value.Value) (time.Time, error) {
	switch v.Kind() {
	case value.Date:
		return time.UnixMilli(v.DateMS()).UTC(), nil
	case value.Timestamp:
		return time.Unix(int64(v.Raw64()>>32), 0).UTC(), nil
	case value.ObjectID:
		return time.Unix(int64(be32(v.Bytes())), 0).UTC(), nil
	}
	return time.Time{}, merr.New(16006, "can't convert from BSON type %s to Date", TypeName(v))
}

// zoned returns a date argument in the time zone that a names. null is true when the result of the expression is null.
func zoned(v value.Value, a map[string]value.Value) (t time.Time, null bool, err error) {
	tz, given := a["timezone"]
	loc, ok, err := zone(tz, given)
	if err != nil {
		return t, false, err
	}
	if !ok || nullish(v) {
		return t, true, nil
	}
	t, err = when(v)
	return t.In(loc), false, err
}

// datePart returns an operator such as $year. Its argument is a date or {date, timezone}.
//
//go:noinline // see named
func datePart(name string, part func(time.Time) int) operator {
	return operator{special: func(_ string, arg value.Value, s *Scope, depth int) (Expr, error) {
		if arg.Kind() == value.Array {
			if arg.Len() != 1 {
				return nil, merr.New(40536, "%s accepts exactly one argument if given an array, but was given %d",
					name, arg.Len())
			}
			arg = arg.At(0)
		}
		date, tz := arg, value.Undef()
		if isNamed(arg) {
			for it := arg.Iter(); it.Next(); {
				if k := string(it.Key()); k != "date" && k != "timezone" {
					return nil, merr.New(40535, "unrecognized option to %s: \"%s\"", name, k)
				}
			}
			if date, tz = arg.Get("date"), arg.Get("timezone"); !date.IsDefined() {
				return nil, merr.New(40539, "missing 'date' argument to %s, provided: %s: %s", name, name,
					merr.Show(arg))
			}
		}
		dx, err := compile(date, s, depth)
		if err != nil {
			return nil, err
		}
		tx, err := compile(tz, s, depth)
		if err != nil {
			return nil, err
		}
		return func(e *Env) (value.Value, error) {
			z, err := tx(e)
			if err != nil {
				return z, err
			}
			loc, ok, err := zone(z, tz.IsDefined())
			if err != nil || !ok {
				return value.NullValue(), err
			}
			d, err := dx(e)
			if err != nil || nullish(d) {
				return value.NullValue(), err
			}
			t, err := when(d)
			if err != nil {
				return d, err
			}
			n := int32(part(t.In(loc)))
			if name == "$isoWeekYear" {
				return value.Int64Of(int64(n)), nil
			}
			return value.Int32Of(n), nil
		}, nil
	}}
}

func dateToString(e *Env, a map[string]value.Value) (value.Value, error) {
	t, null, err := zoned(a["date"], a)
	if err != nil {
		return value.Undef(), err
	}
	if null {
		if v, ok := a["onNull"]; ok && nullish(a["date"]) {
			return v, nil
		}
		return value.NullValue(), nil
	}
	format := "%Y-%m-%dT%H:%M:%S.%LZ"
	if _, given := a["timezone"]; given && e.Later && t.Location() != time.UTC {
		format = "%Y-%m-%dT%H:%M:%S.%L"
	}
	if f, ok := a["format"]; ok {
		if nullish(f) {
			return value.NullValue(), nil
		}
		if f.Kind() != value.String {
			return f, merr.New(18533, "$dateToString requires that 'format' be a string, found: %s", TypeName(f))
		}
		format = f.Str()
	}
	s, err := formatDate(t, format)
	return value.StringOf(s), err
}

func formatDate(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i == len(format) {
			return "", merr.New(18535, "Unmatched '%%' at end of format string")
		}
		iy, iw := t.ISOWeek()
		switch format[i] {
		case 'd':
			fmt.Fprintf(&b, "%02d", t.Day())
		case 'G':
			fmt.Fprintf(&b, "%04d", iy)
		case 'H':
			fmt.Fprintf(&b, "%02d", t.Hour())
		case 'j':
			fmt.Fprintf(&b, "%03d", t.YearDay())
		case 'L':
			fmt.Fprintf(&b, "%03d", t.Nanosecond()/1e6)
		case 'm':
			fmt.Fprintf(&b, "%02d", int(t.Month()))
		case 'M':
			fmt.Fprintf(&b, "%02d", t.Minute())
		case 'S':
			fmt.Fprintf(&b, "%02d", t.Second())
		case 'w':
			fmt.Fprintf(&b, "%d", int(t.Weekday())+1)
		case 'u':
			fmt.Fprintf(&b, "%d", isoWeekday(t))
		case 'U':
			fmt.Fprintf(&b, "%02d", sundayWeek(t))
		case 'V':
			fmt.Fprintf(&b, "%02d", iw)
		case 'Y':
			fmt.Fprintf(&b, "%04d", t.Year())
		case 'b':
			b.WriteString(t.Format("Jan"))
		case 'B':
			b.WriteString(t.Format("January"))
		case 'z':
			b.WriteString(t.Format("-0700"))
		case 'Z':
			_, off := t.Zone()
			fmt.Fprintf(&b, "%d", off/60)
		case '%':
			b.WriteByte('%')
		default:
			return "", merr.New(18536, "Invalid format character '%%%c' in format string", format[i])
		}
	}
	return b.String(), nil
}

// dateForms are the forms of ISO 8601 that $dateFromString and $toDate accept.
const dateForms = isotime.DateOnly | isotime.MonthOnly | isotime.MinutesOnly | isotime.NoZone |
	isotime.Space | isotime.SpacedZone |
	isotime.ShortOffset | isotime.ShortHour | isotime.Basic

// parseDate parses a date and returns milliseconds since 1970. loc is the zone of a text without one; nil: UTC.
func parseDate(s string, loc *time.Location) (int64, error) {
	if loc == nil {
		loc = time.UTC
	}
	if t, ok := isotime.Parse(s, dateForms); ok {
		if t.Zoned {
			if err := onlyZone(s, loc); err != nil {
				return 0, err
			}
		}
		return t.In(loc).UnixMilli(), nil
	}
	if ms, ok, err := parseFree(s, loc); ok || err != nil {
		return ms, err
	}
	return 0, merr.New(merr.ConversionFailure, "Error parsing date string '%s'", s)
}

func dateFromString(_ *Env, a map[string]value.Value) (value.Value, error) {
	v, err := dateFromText(a)
	if x, ok := a["onError"]; err != nil && ok && merr.From(err).Code == merr.ConversionFailure {
		return x, nil
	}
	if x, ok := a["onNull"]; ok && err == nil && nullish(a["dateString"]) {
		return x, nil
	}
	return v, err
}

func dateFromText(a map[string]value.Value) (value.Value, error) {
	tz, given := a["timezone"]
	loc, ok, err := zone(tz, given)
	if err != nil {
		return value.Undef(), err
	}
	s := a["dateString"]
	if !ok || nullish(s) {
		return value.NullValue(), nil
	}
	if s.Kind() != value.String {
		return s, merr.New(merr.ConversionFailure, "$dateFromString requires that 'dateString' be a string, found: %s",
			TypeName(s))
	}
	f, given := a["format"]
	if !given {
		ms, err := parseDate(s.Str(), loc)
		return value.DateOf(ms, 0), err
	}
	if nullish(f) {
		return value.NullValue(), nil
	}
	if f.Kind() != value.String {
		return f, merr.New(40684, "$dateFromString requires that 'format' be a string, found: %s with value %s",
			TypeName(f), merr.Show(f))
	}
	if err := checkFormat(f.Str()); err != nil {
		return f, err
	}
	ms, err := readDate(s.Str(), f.Str(), loc)
	return value.DateOf(ms, 0), err
}

func intArg(name string, v value.Value) (int, error) {
	n, ok := num.ToInt64(v, false)
	if !ok || n > 1<<31 || n < -1<<31 {
		return 0, merr.New(40515, "'%s' must evaluate to an integer, found %s", name, TypeName(v))
	}
	return int(n), nil
}
