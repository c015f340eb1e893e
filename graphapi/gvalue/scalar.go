package gvalue

import (
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"
)

// UUID is a universally unique identifier.
type UUID = uuid.UUID

// Char is a single character.
type Char rune

// Class is the name of a Java class.
type Class string

// BigDecimal is Unscaled * 10^-Scale.
type BigDecimal struct {
	Unscaled *big.Int
	Scale    int32
}

// String returns the decimal, without an exponent if its scale allows that.
func (d *BigDecimal) String() string {
	u := d.Unscaled
	if u == nil {
		u = new(big.Int)
	}
	digits := new(big.Int).Abs(u).String()
	neg := ""
	if u.Sign() < 0 {
		neg = "-"
	}
	switch s := int(d.Scale); {
	case s == 0:
		return neg + digits
	case s > maxPlainScale || s < -maxPlainScale:
		return neg + digits + "E" + big.NewInt(-int64(d.Scale)).String()
	case s < 0:
		return neg + digits + strings.Repeat("0", -s)
	case len(digits) > s:
		return neg + digits[:len(digits)-s] + "." + digits[len(digits)-s:]
	default:
		return neg + "0." + strings.Repeat("0", s-len(digits)) + digits
	}
}

// Limits of BigDecimal. A text or scale beyond them is refused, or written with an exponent, so that a short number
// can't become a long text.
const (
	maxPlainScale    = 400
	maxDecimalDigits = 1000
)

// ParseBigDecimal reads a decimal with an optional exponent. ok is false if s isn't one or is longer than 1,000 bytes.
func ParseBigDecimal(s string) (d *BigDecimal, ok bool) {
	if len(s) == 0 || len(s) > maxDecimalDigits {
		return nil, false
	}
	exp := int64(0)
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, ok := new(big.Int).SetString(strings.TrimPrefix(s[i+1:], "+"), 10)
		if !ok || !e.IsInt64() || e.Int64() > 1<<30 || e.Int64() < -(1<<30) {
			return nil, false
		}
		exp, s = e.Int64(), s[:i]
	}
	scale := int64(0)
	if i := strings.IndexByte(s, '.'); i >= 0 {
		frac := s[i+1:]
		if strings.ContainsAny(frac, "+-_") {
			return nil, false
		}
		scale = int64(len(frac))
		s = s[:i] + frac
	}
	u, ok := new(big.Int).SetString(strings.TrimPrefix(s, "+"), 10)
	if !ok || strings.HasPrefix(s, "+-") || strings.HasPrefix(s, "++") {
		return nil, false
	}
	return &BigDecimal{Unscaled: u, Scale: int32(scale - exp)}, true
}

// Date is java.util.Date: milliseconds since 1970.
type Date int64

// Timestamp is java.sql.Timestamp: milliseconds since 1970.
type Timestamp int64

// Time returns the instant in UTC.
func (d Date) Time() time.Time { return time.UnixMilli(int64(d)).UTC() }

// OffsetDateTime is an instant with an offset from UTC, the result of datetime() in TinkerPop 3.8.
type OffsetDateTime struct{ time.Time }

// ZonedDateTime is an instant with a time zone, of which only the offset is kept.
type ZonedDateTime struct{ time.Time }

// Instant is a point on the time line.
type Instant struct {
	Seconds int64 // since 1970
	Nanos   int32
}

// Duration is an amount of time.
type Duration struct {
	Seconds int64
	Nanos   int32 // 0..999,999,999
}

// The other calendar types.
type (
	// LocalDate is a day without a zone.
	LocalDate struct {
		Year       int32
		Month, Day int8
	}
	// LocalTime is the nanosecond of a day.
	LocalTime int64
	// LocalDateTime is a day and the time in it.
	LocalDateTime struct {
		Date LocalDate
		Time LocalTime
	}
	// MonthDay is a day of any year.
	MonthDay struct{ Month, Day int8 }
	// ZoneOffset is an offset from UTC in seconds.
	ZoneOffset int32
	// OffsetTime is a time of day with an offset.
	OffsetTime struct {
		Time   LocalTime
		Offset ZoneOffset
	}
	// Period is an amount of calendar time.
	Period struct{ Years, Months, Days int32 }
	// Year is a year of the calendar.
	Year int32
	// YearMonth is a month of one year.
	YearMonth struct {
		Year  int32
		Month int8
	}
	// InetAddress is an IPv4 or IPv6 address in 4 or 16 bytes.
	InetAddress []byte
)
