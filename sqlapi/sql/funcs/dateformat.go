package funcs

import (
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/value"
)

func init() {
	register(&Func{Name: "DateTimeFormat", Types: "ss", Eval: func(_ *Context, a []value.Value) value.Value {
		t, ok := parseDate(a[0], dateForms|isotime.Space)
		if !ok || len(a[1].Bytes()) > maxFormat {
			return value.Value{}
		}
		return value.StringOf(formatDate(t, a[1].Str()))
	}})
}

// maxFormat is the longest format in bytes. The output is at most a few times as long as the format.
const maxFormat = 64 << 10

// formatDate returns t in a format. A run of one of the letters y M d H h m s f F t is a part of the date; a longer run
// gives a longer form. A character after a backslash, text in single quotes, and all other characters are copied.
//
// Example: 2024-03-05T14:07:09Z in the format `yyyy-MM-dd 'at' H:mm` is "2024-03-05 at 14:07".
func formatDate(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); {
		c := format[i]
		switch {
		case c == '\\' && i+1 < len(format):
			b.WriteByte(format[i+1])
			i += 2
			continue
		case c == '\'' && strings.IndexByte(format[i+1:], '\'') >= 0:
			n := strings.IndexByte(format[i+1:], '\'')
			b.WriteString(format[i+1 : i+1+n])
			i += n + 2
			continue
		}
		n := 1
		for i+n < len(format) && format[i+n] == c {
			n++
		}
		writePart(&b, t, c, n, format[i:i+n])
		i += n
	}
	return b.String()
}

// writePart writes one run of n letters c.
func writePart(b *strings.Builder, t time.Time, c byte, n int, run string) {
	switch c {
	case 'y':
		if n <= 2 {
			pad(b, t.Year()%100, n)
		} else {
			pad(b, t.Year(), n)
		}
	case 'M':
		name(b, t.Month().String(), int(t.Month()), n)
	case 'd':
		name(b, t.Weekday().String(), t.Day(), n)
	case 'H':
		pad(b, t.Hour(), min(n, 2))
	case 'h':
		pad(b, (t.Hour()+11)%12+1, min(n, 2))
	case 'm':
		pad(b, t.Minute(), min(n, 2))
	case 's':
		pad(b, t.Second(), min(n, 2))
	case 'f', 'F':
		if n > 7 {
			b.WriteString(run)
			return
		}
		digits := strconv.Itoa(1e9 + t.Nanosecond())[1 : n+1]
		if c == 'F' {
			digits = strings.TrimRight(digits, "0")
		}
		b.WriteString(digits)
	case 't':
		half := "AM"
		if t.Hour() >= 12 {
			half = "PM"
		}
		b.WriteString(half[:min(n, 2)])
	default:
		b.WriteString(run)
	}
}

// name writes a month or day: its number for one or two letters, its short name for three, its full name for more.
func name(b *strings.Builder, long string, num, n int) {
	switch {
	case n <= 2:
		pad(b, num, n)
	case n == 3:
		b.WriteString(long[:3])
	default:
		b.WriteString(long)
	}
}

// pad writes x with at least n digits, up to 20.
func pad(b *strings.Builder, x, n int) {
	s := strconv.Itoa(x)
	for range min(n, 20) - len(s) {
		b.WriteByte('0')
	}
	b.WriteString(s)
}
