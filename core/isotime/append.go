package isotime

import (
	"strconv"
	"time"
)

// Append appends a Unix time in UTC as 2024-03-04T05:06:07. The caller appends fraction and zone.
func Append(dst []byte, sec int64) []byte { return AppendColon(dst, sec, ":") }

// AppendColon is Append with another text for the colons, for places that must escape them.
func AppendColon(dst []byte, sec int64, colon string) []byte {
	days := floorDiv(sec, 86400)
	clock := int(sec - days*86400)
	y, m, d := dateOf(days)
	dst = append(AppendDate(dst, y, m, d), 'T')
	dst = append(AppendPadded(dst, clock/3600, 2), colon...)
	dst = append(AppendPadded(dst, clock/60%60, 2), colon...)
	return AppendPadded(dst, clock%60, 2)
}

// AppendDate appends 2024-03-04. The year has at least four digits.
func AppendDate(dst []byte, y, m, d int) []byte {
	if y < 0 {
		dst, y = append(dst, '-'), -y
	}
	dst = append(AppendPadded(dst, y, 4), '-')
	dst = append(AppendPadded(dst, m, 2), '-')
	return AppendPadded(dst, d, 2)
}

// AppendMilli appends a time in milliseconds since 1970 in UTC, with Z. The fraction has three digits, or seven if
// ticks, the 100 ns units within the millisecond, isn't 0.
func AppendMilli(dst []byte, ms int64, ticks uint16) []byte {
	sec := floorDiv(ms, 1000)
	dst = append(Append(dst, sec), '.')
	dst = AppendPadded(dst, int(ms-sec*1000), 3)
	if ticks != 0 {
		dst = AppendPadded(dst, int(ticks), 4)
	}
	return append(dst, 'Z')
}

// AppendTicks appends t in UTC with all seven digits of its fraction, and Z.
func AppendTicks(dst []byte, t time.Time) []byte {
	dst = append(Append(dst, t.Unix()), '.')
	return append(AppendPadded(dst, t.Nanosecond()/100, 7), 'Z')
}

// AppendPadded appends a non-negative number with at least width digits.
func AppendPadded(dst []byte, n, width int) []byte {
	pow := 10
	for i := 1; i < width; i++ {
		pow *= 10
	}
	if n >= pow {
		return strconv.AppendInt(dst, int64(n), 10)
	}
	for pow /= 10; pow > 0; pow /= 10 {
		dst = append(dst, byte('0'+n/pow%10))
	}
	return dst
}
