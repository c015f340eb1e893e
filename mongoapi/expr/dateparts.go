package expr

import (
	"math"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

var datePartNames = []string{"year", "isoWeekYear", "month", "isoWeek", "day", "isoDayOfWeek", "hour", "minute",
	"second", "millisecond", "timezone"}

func dateFromParts(_ *Env, a map[string]value.Value) (value.Value, error) {
	tz, given := a["timezone"]
	loc, ok, err := zone(tz, given)
	if err != nil || !ok {
		return value.NullValue(), err
	}
	_, iso := a["isoWeekYear"]
	if _, plain := a["year"]; !plain && !iso {
		return value.Undef(), merr.New(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
	}
	if err := apart(a, iso); err != nil {
		return value.Undef(), err
	}
	n := map[string]int{"month": 1, "day": 1, "isoWeek": 1, "isoDayOfWeek": 1}
	for k, v := range a {
		if k == "timezone" {
			continue
		}
		if nullish(v) {
			return value.NullValue(), nil
		}
		if n[k], err = intArg(k, v); err != nil {
			return v, err
		}
		if bounded := k != "year" && k != "isoWeekYear" && k != "second" && k != "millisecond"; bounded &&
			n[k] != int(int16(n[k])) {
			return v, merr.New(31034, "'%s' must evaluate to a value in the range [-32768, 32767]; value %d is not in "+
				"range", k, n[k])
		}
	}
	year, code := "year", int32(40523)
	if iso {
		year, code = "isoWeekYear", 31095
	}
	if n[year] < 1 || n[year] > 9999 {
		return value.Undef(), merr.New(code, "'%s' must evaluate to an integer in the range 1 to 9999, found %d", year,
			n[year])
	}
	var t time.Time
	if iso {
		t = isoDate(n["isoWeekYear"], n["isoWeek"], n["isoDayOfWeek"], loc)
		t = time.Date(t.Year(), t.Month(), t.Day(), n["hour"], n["minute"], n["second"], 0, loc)
	} else {
		t = time.Date(n["year"], time.Month(n["month"]), n["day"], n["hour"], n["minute"], n["second"], 0, loc)
	}
	return value.DateOf(t.UnixMilli()+int64(n["millisecond"]), 0), nil
}

// apart refuses parts of an ISO date beside those of another one.
func apart(a map[string]value.Value, iso bool) error {
	others, err := []string{"isoWeekYear", "isoWeek", "isoDayOfWeek"}, merr.New(40489,
		"$dateFromParts does not allow mixing natural dates with ISO dates")
	if _, plain := a["year"]; !plain && iso {
		others, err = []string{"month", "day"}, merr.New(40525,
			"$dateFromParts does not allow mixing ISO dates with natural dates")
	}
	for _, k := range others {
		if _, ok := a[k]; ok {
			return err
		}
	}
	return nil
}

func dateToParts(_ *Env, a map[string]value.Value) (value.Value, error) {
	t, null, err := zoned(a["date"], a)
	if err != nil || null {
		return value.NullValue(), err
	}
	iso := a["iso8601"]
	if iso.Kind() == value.Null {
		return iso, nil
	} else if iso.IsDefined() && iso.Kind() != value.Bool {
		return iso, merr.New(40521, "iso8601 must evaluate to a bool, found %s", TypeName(iso))
	}
	at, b := bson.Begin(nil)
	if iso.IsDefined() && iso.Bool() {
		y, w := t.ISOWeek()
		b = bson.AppendInt32(b, "isoWeekYear", int32(y))
		b = bson.AppendInt32(b, "isoWeek", int32(w))
		b = bson.AppendInt32(b, "isoDayOfWeek", int32(isoWeekday(t)))
	} else {
		b = bson.AppendInt32(b, "year", int32(t.Year()))
		b = bson.AppendInt32(b, "month", int32(t.Month()))
		b = bson.AppendInt32(b, "day", int32(t.Day()))
	}
	b = bson.AppendInt32(b, "hour", int32(t.Hour()))
	b = bson.AppendInt32(b, "minute", int32(t.Minute()))
	b = bson.AppendInt32(b, "second", int32(t.Second()))
	b = bson.AppendInt32(b, "millisecond", int32(t.Nanosecond()/1e6))
	return value.ObjectOf(bson.End(b, at)), nil
}

// Unit parses a date unit of the operator that name names. It returns "" for null.
func Unit(name string, v value.Value) (string, error) {
	if nullish(v) {
		return "", nil
	}
	if v.Kind() != value.String {
		return "", merr.New(5439013, "%s requires 'unit' to be a string, but got %s", name, TypeName(v))
	}
	switch s := v.Str(); s {
	case "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond":
		return s, nil
	}
	return "", merr.New(merr.FailedToParse, "unknown time unit value: %s", v.Str())
}

func dateArith(name string, sign int) operator {
	return named([]string{"startDate", "unit", "amount"}, []string{"timezone"},
		func(_ *Env, a map[string]value.Value) (value.Value, error) {
			u, err := Unit(name, a["unit"])
			if err != nil {
				return value.Undef(), err
			}
			t, null, err := zoned(a["startDate"], a)
			if err != nil || null || u == "" || nullish(a["amount"]) {
				return value.NullValue(), err
			}
			n, ok := num.ToInt64(a["amount"], false)
			if !ok {
				return a["amount"], merr.New(5166405, "%s expects integer amount of time units", name)
			}
			switch span := float64(n) * float64(sign) * leastMillis[u]; {
			case math.Abs(span) > math.MaxInt64:
				return a["amount"], merr.New(5976500, "invalid dateAdd 'amount' parameter value: %d %s", n, u)
			case math.Abs(span+float64(t.UnixMilli())) > math.MaxInt64:
				return a["amount"], merr.New(5166406, "dateAdd overflowed")
			}
			return value.DateOf(AddUnits(t, u, int(n)*sign).UnixMilli(), 0), nil
		})
}

// leastMillis are the lengths of units in milliseconds, at least.
var leastMillis = map[string]float64{"year": 365 * 864e5, "quarter": 90 * 864e5, "month": 28 * 864e5,
	"week": 7 * 864e5, "day": 864e5, "hour": 36e5, "minute": 6e4, "second": 1e3, "millisecond": 1}

var unitLength = map[string]time.Duration{
	"hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond,
}

// AddUnits adds n units of time in the time zone of t.
func AddUnits(t time.Time, u string, n int) time.Time {
	switch u {
	case "year":
		return addMonths(t, 12*n)
	case "quarter":
		return addMonths(t, 3*n)
	case "month":
		return addMonths(t, n)
	case "week":
		return t.AddDate(0, 0, 7*n)
	case "day":
		return t.AddDate(0, 0, n)
	}
	// The product is computed in milliseconds, because a time.Duration only covers 292 years.
	ms := int64(n) * int64(unitLength[u]/time.Millisecond)
	return time.UnixMilli(t.UnixMilli() + ms).In(t.Location())
}

// addMonths adds n months. It keeps the day of the month, or takes the last day if the month is shorter.
func addMonths(t time.Time, n int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(),
		t.Location())
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}

// weekStart returns the first day of a week, which only the unit week has. null is true when the result is null.
func weekStart(name, unit string, a map[string]value.Value) (d time.Weekday, null bool, err error) {
	v, given := a["startOfWeek"]
	if !given || unit != "week" {
		return time.Sunday, false, nil
	}
	if nullish(v) {
		return 0, true, nil
	}
	if v.Kind() != value.String {
		return 0, false, merr.New(5439015, "%s requires 'startOfWeek' to be a string, but got %s", name, TypeName(v))
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		s := lower(v.Str())
		if name := lower(d.String()); s == name || s == name[:3] {
			return d, false, nil
		}
	}
	return 0, false, merr.New(merr.FailedToParse, "unknown day of week value: %s", v.Str())
}

// dayNumber returns the number of days since 1970-01-01 in t's own time zone.
func dayNumber(t time.Time) int {
	d := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix()
	return int((d - mod64(d, 86400)) / 86400)
}

func mod64(a, b int64) int64 { return ((a % b) + b) % b }

func weekNumber(t time.Time, start time.Weekday) int {
	n := int64(dayNumber(t)) + 4 - int64(start) // 1970-01-01 was a Thursday
	return int((n - mod64(n, 7)) / 7)
}

func dateDiff(_ *Env, a map[string]value.Value) (value.Value, error) {
	u, err := Unit("$dateDiff", a["unit"])
	if err != nil {
		return value.Undef(), err
	}
	from, null1, err := zoned(a["startDate"], a)
	if err != nil {
		return value.Undef(), err
	}
	to, null2, err := zoned(a["endDate"], a)
	if err != nil || null1 || null2 || u == "" {
		return value.NullValue(), err
	}
	start, null, err := weekStart("$dateDiff", u, a)
	if err != nil || null {
		return value.NullValue(), err
	}
	months := func(t time.Time) int { return t.Year()*12 + int(t.Month()) - 1 }
	var n int64
	switch u {
	case "year":
		n = int64(to.Year() - from.Year())
	case "quarter":
		n = int64(months(to)/3 - months(from)/3)
	case "month":
		n = int64(months(to) - months(from))
	case "week":
		n = int64(weekNumber(to, start) - weekNumber(from, start))
	case "day":
		n = int64(dayNumber(to) - dayNumber(from))
	default:
		size := int64(unitLength[u] / time.Millisecond)
		_, o1 := from.Zone()
		_, o2 := to.Zone()
		x, y := from.UnixMilli()+int64(o1)*1000, to.UnixMilli()+int64(o2)*1000
		if u != "hour" {
			x, y = from.UnixMilli(), to.UnixMilli()
		}
		n = (y-mod64(y, size))/size - (x-mod64(x, size))/size
	}
	return value.Int64Of(n), nil
}

func dateTrunc(_ *Env, a map[string]value.Value) (value.Value, error) {
	u, err := Unit("$dateTrunc", a["unit"])
	if err != nil {
		return value.Undef(), err
	}
	t, null, err := zoned(a["date"], a)
	if err != nil || null || u == "" {
		return value.NullValue(), err
	}
	bin := 1
	if v, ok := a["binSize"]; ok {
		if nullish(v) {
			return value.NullValue(), nil
		}
		if bin, err = intArg("binSize", v); err != nil {
			return v, err
		}
		if bin <= 0 {
			return v, merr.New(5439018, "$dateTrunc requires 'binSize' to be greater than 0, but got value %d", bin)
		}
	}
	start, null, err := weekStart("$dateTrunc", u, a)
	if err != nil || null {
		return value.NullValue(), err
	}
	return value.DateOf(truncTo(t, u, bin, start).UnixMilli(), 0), nil
}

// truncTo returns the start of the bin that contains t. Bins start on 1 January 2000, for weeks on the first
// start-of-week day from then on.
func truncTo(t time.Time, u string, bin int, start time.Weekday) time.Time {
	loc := t.Location()
	floor := func(n, size int) int { return int(int64(n) - mod64(int64(n), int64(size))) }
	switch u {
	case "year", "quarter", "month":
		size := bin * map[string]int{"year": 12, "quarter": 3, "month": 1}[u]
		m := floor((t.Year()-2000)*12+int(t.Month())-1, size)
		return time.Date(2000, time.Month(1+m), 1, 0, 0, 0, 0, loc)
	case "week", "day":
		ref := time.Date(2000, 1, 1, 0, 0, 0, 0, loc)
		size := bin
		if u == "week" {
			size *= 7
			ref = ref.AddDate(0, 0, (int(start)-int(ref.Weekday())+7)%7)
		}
		return ref.AddDate(0, 0, floor(dayNumber(t)-dayNumber(ref), size))
	}
	ref := time.Date(2000, 1, 1, 0, 0, 0, 0, loc).UnixMilli()
	size := int64(unitLength[u]/time.Millisecond) * int64(bin)
	d := t.UnixMilli() - ref
	return time.UnixMilli(ref + d - mod64(d, size)).In(loc)
}
