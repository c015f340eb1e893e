package gvalue

import "time"

// TimeOf returns a date value of any type as a time, and the zero time for other values.
func TimeOf(v any) time.Time {
	switch d := v.(type) {
	case Date:
		return d.Time()
	case Timestamp:
		return Date(d).Time()
	case OffsetDateTime:
		return d.Time
	case ZonedDateTime:
		return d.Time
	case Instant:
		return time.Unix(d.Seconds, int64(d.Nanos)).UTC()
	}
	return time.Time{}
}
