package funcs

import (
	"math"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/value"
)

// Dates are ISO 8601 strings in UTC. Ticks count units of 100 ns, timestamps milliseconds, both since 1970-01-01.
func init() {
	now := func(name string, static bool, fn func(t time.Time) value.Value) *Func {
		return &Func{Name: name, Types: "", Volatile: true, Eval: func(c *Context, _ []value.Value) value.Value {
			if static {
				return fn(c.Now)
			}
			return fn(c.present())
		}}
	}
	ms := func(t time.Time) value.Value { return value.IntOf(t.UnixMilli()) }
	ticks := func(t time.Time) value.Value { return value.IntOf(toTicks(t)) }
	register(
		now("GetCurrentDateTime", false, dateValue), now("GetCurrentDateTimeStatic", true, dateValue),
		now("GetCurrentTimestamp", false, ms), now("GetCurrentTimestampStatic", true, ms),
		now("GetCurrentTicks", false, ticks), now("GetCurrentTicksStatic", true, ticks),
		&Func{Name: "DateTimeAdd", Types: "sns", Eval: dateAdd},
		&Func{Name: "DateTimeBin", Types: "ss?ns", Eval: dateBin},
		&Func{Name: "DateTimeDiff", Types: "sss", Eval: dateDiff},
		&Func{Name: "DateTimeFromParts", Types: "nnn?nnnn", Eval: dateFromParts},
		&Func{Name: "DateTimePart", Types: "ss", Eval: func(_ *Context, a []value.Value) value.Value {
			t, ok := ParseDateTime(a[1])
			if !ok {
				return value.Value{}
			}
			return partOf(a[0].Str(), t)
		}},
		dateTo("DateTimeToTicks", ticks), dateTo("DateTimeToTimestamp", ms),
		dateTo("DAY", func(t time.Time) value.Value { return value.IntOf(int64(t.Day())) }),
		dateTo("MONTH", func(t time.Time) value.Value { return value.IntOf(int64(t.Month())) }),
		dateTo("YEAR", func(t time.Time) value.Value { return value.IntOf(int64(t.Year())) }),
		&Func{Name: "TicksToDateTime", Types: "n", Eval: func(_ *Context, a []value.Value) value.Value {
			if n, ok := toInt64(a[0]); ok {
				return dateValue(fromTicks(n))
			}
			return value.Value{}
		}},
		&Func{Name: "TimestampToDateTime", Types: "n", Eval: func(_ *Context, a []value.Value) value.Value {
			if n, ok := toInt64(a[0]); ok {
				return dateValue(time.UnixMilli(n).UTC())
			}
			return value.Value{}
		}},
	)
	register(
		&Func{Name: "NOW", Types: "?sn", Volatile: true, Eval: func(c *Context, a []value.Value) value.Value {
			switch t := c.present(); len(a) {
			case 0:
				return dateValue(t)
			case 2:
				return shifted(t, a[0].Str(), a[1], 1)
			}
			return value.Value{}
		}},
		&Func{Name: "AGO", Types: "sn", Volatile: true, Eval: func(c *Context, a []value.Value) value.Value {
			return shifted(c.present(), a[0].Str(), a[1], -1)
		}},
	)
}

// present returns the current time, which can differ between rows of one execution.
func (c *Context) present() time.Time {
	if c.Clock != nil {
		return c.Clock()
	}
	return c.Now
}

// dateForms are the forms of dates that the functions accept.
const dateForms = isotime.DateOnly | isotime.NoZone

// ParseDateTime reads an ISO 8601 string (YYYY-MM-DDThh:mm:ss[.fffffff]Z, or a date alone).
func ParseDateTime(v value.Value) (time.Time, bool) { return parseDate(v, dateForms) }

func parseDate(v value.Value, f isotime.Form) (time.Time, bool) {
	if v.Kind() != value.String {
		return time.Time{}, false
	}
	t, ok := isotime.Parse(v.Bytes(), f)
	if !ok {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// dateValue returns a date as the language writes it: in UTC, with seven digits of a second.
func dateValue(t time.Time) value.Value {
	if t.Year() < 1 || t.Year() > 9999 {
		return value.Value{}
	}
	return value.StringBytes(isotime.AppendTicks(make([]byte, 0, len("2006-01-02T15:04:05.0000000Z")), t))
}

func toTicks(t time.Time) int64 { return t.Unix()*1e7 + int64(t.Nanosecond())/100 }
func fromTicks(n int64) time.Time {
	return time.Unix(floorDiv(n, 1e7), (n-floorDiv(n, 1e7)*1e7)*100).UTC()
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func dateTo(name string, fn func(t time.Time) value.Value) *Func {
	return &Func{Name: name, Types: "s", Eval: func(_ *Context, a []value.Value) value.Value {
		if t, ok := ParseDateTime(a[0]); ok {
			return fn(t)
		}
		return value.Value{}
	}}
}

// partNames maps each spelling of a date part to its canonical name.
var partNames = map[string]string{
	"year": "year", "yyyy": "year", "yy": "year", "month": "month", "mm": "month", "m": "month", "day": "day",
	"dd": "day", "d": "day", "hour": "hour", "hh": "hour", "minute": "minute", "mi": "minute", "n": "minute",
	"second": "second", "ss": "second", "s": "second", "millisecond": "ms", "ms": "ms", "microsecond": "mcs",
	"mcs": "mcs", "nanosecond": "ns", "ns": "ns",
}

// unit maps each date part shorter than a month to its length.
var unit = map[string]time.Duration{
	"day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second, "ms": time.Millisecond,
	"mcs": time.Microsecond, "ns": 1,
}

func partOf(name string, t time.Time) value.Value {
	n := 0
	switch partNames[strings.ToLower(name)] {
	case "year":
		n = t.Year()
	case "month":
		n = int(t.Month())
	case "day":
		n = t.Day()
	case "hour":
		n = t.Hour()
	case "minute":
		n = t.Minute()
	case "second":
		n = t.Second()
	case "ms":
		n = t.Nanosecond() / 1e6
	case "mcs":
		n = t.Nanosecond() / 1e3
	case "ns":
		n = t.Nanosecond()
	default:
		return value.Value{}
	}
	return value.IntOf(int64(n))
}

// dateAdd is DateTimeAdd(part, number, date). If the resulting month is too short for the day, the result is the
// month's last day.
func dateAdd(_ *Context, a []value.Value) value.Value {
	if t, ok := ParseDateTime(a[2]); ok {
		return shifted(t, a[0].Str(), a[1], 1)
	}
	return value.Value{}
}

// shifted returns t plus sign*number parts.
func shifted(t time.Time, name string, number value.Value, sign int64) value.Value {
	n, whole := toInt64(number)
	part := partNames[strings.ToLower(name)]
	if !whole || part == "" || n > 1e15 || n < -1e15 {
		return value.Value{}
	}
	n *= sign
	switch part {
	case "year":
		return addMonths(t, n*12)
	case "month":
		return addMonths(t, n)
	}
	u := int64(unit[part])
	days := floorDiv(n, int64(24*time.Hour)/u)
	if days > 4e6 || days < -4e6 {
		return value.Value{}
	}
	return dateValue(t.AddDate(0, 0, int(days)).Add(time.Duration((n - days*(int64(24*time.Hour)/u)) * u)))
}

func addMonths(t time.Time, n int64) value.Value {
	if n > 120000 || n < -120000 {
		return value.Value{}
	}
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return dateValue(first.AddDate(0, 0, min(t.Day(), last)-1))
}

// dateDiff is DateTimeDiff(part, from, to): the number of boundaries of the part between the two dates.
func dateDiff(_ *Context, a []value.Value) value.Value {
	from, ok1 := ParseDateTime(a[1])
	to, ok2 := ParseDateTime(a[2])
	part := partNames[strings.ToLower(a[0].Str())]
	if !ok1 || !ok2 || part == "" {
		return value.Value{}
	}
	switch part {
	case "year":
		return value.IntOf(int64(to.Year() - from.Year()))
	case "month":
		return value.IntOf(int64((to.Year()-from.Year())*12 + int(to.Month()) - int(from.Month())))
	case "ns":
		ticks := toTicks(to) - toTicks(from)
		if ticks < -math.MaxInt64/100 || ticks > math.MaxInt64/100 {
			return Num(float64(ticks) * 100)
		}
		return value.IntOf(ticks * 100)
	case "mcs", "ms":
		ticks := int64(unit[part]) / 100
		return value.IntOf(floorDiv(toTicks(to), ticks) - floorDiv(toTicks(from), ticks))
	}
	sec := int64(unit[part] / time.Second)
	return value.IntOf(floorDiv(to.Unix(), sec) - floorDiv(from.Unix(), sec))
}

// allTicks is more than there is between two dates.
const allTicks = 10000 * 366 * 24 * 3600 * 1e7

// dateBin is DateTimeBin(date, part[, size[, origin]]): the start of the bin that contains the date.
func dateBin(_ *Context, a []value.Value) value.Value {
	t, ok := ParseDateTime(a[0])
	part := partNames[strings.ToLower(a[1].Str())]
	size, whole := int64(1), true
	if len(a) > 2 {
		size, whole = toInt64(a[2])
	}
	origin := time.Unix(0, 0).UTC()
	if len(a) > 3 {
		var ok2 bool
		origin, ok2 = ParseDateTime(a[3])
		ok = ok && ok2
	}
	if !ok || !whole || part == "" || size < 1 || size > 1e9 {
		return value.Value{}
	}
	switch part {
	case "year", "month":
		if part == "year" {
			size *= 12
		}
		months := int64((t.Year()-origin.Year())*12 + int(t.Month()) - int(origin.Month()))
		bin := addMonths(origin, floorDiv(months, size)*size)
		if start, ok := ParseDateTime(bin); ok && start.After(t) {
			return addMonths(origin, (floorDiv(months, size)-1)*size)
		}
		return bin
	}
	ticks, from := max(int64(unit[part])/100, 1), toTicks(origin)
	ticks *= min(size, allTicks/ticks+1) // a longer bin holds all dates too
	return dateValue(fromTicks(from + floorDiv(toTicks(t)-from, ticks)*ticks))
}

// dateFromParts is DateTimeFromParts(year, month, day[, hour[, minute[, second[, fraction in 100 ns]]]]).
func dateFromParts(_ *Context, a []value.Value) value.Value {
	limits := [7][2]int64{{1, 9999}, {1, 12}, {1, 31}, {0, 23}, {0, 59}, {0, 59}, {0, 9999999}}
	parts := [7]int64{}
	for i, v := range a {
		n, ok := toInt64(v)
		if !ok || n < limits[i][0] || n > limits[i][1] {
			return value.Value{}
		}
		parts[i] = n
	}
	t := time.Date(int(parts[0]), time.Month(parts[1]), int(parts[2]), int(parts[3]), int(parts[4]), int(parts[5]),
		int(parts[6])*100, time.UTC)
	if t.Day() != int(parts[2]) {
		return value.Value{}
	}
	return dateValue(t)
}
