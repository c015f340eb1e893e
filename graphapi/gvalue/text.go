package gvalue

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/isotime"
)

func sortStrings(s []string) { slices.Sort(s) }

// maxTextDepth limits the nesting in a Text. Deeper parts become "...".
const maxTextDepth = 100

// Text returns the value in the form of Java's toString(), which the Gremlin Console prints. It is also the key of a
// map in formats that only have string keys.
func Text(v any) string { return string(AppendValueText(nil, v)) }

// AppendValueText appends Text(v).
func AppendValueText(dst []byte, v any) []byte { return appendValueText(dst, v, 0) }

func appendValueText(dst []byte, v any, depth int) []byte {
	if depth > maxTextDepth {
		return append(dst, "..."...)
	}
	switch x := v.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return append(dst, x...)
	case bool:
		return strconv.AppendBool(dst, x)
	case int8:
		return strconv.AppendInt(dst, int64(x), 10)
	case int16:
		return strconv.AppendInt(dst, int64(x), 10)
	case int32:
		return strconv.AppendInt(dst, int64(x), 10)
	case int64:
		return strconv.AppendInt(dst, x, 10)
	case float32:
		return appendFloatText(dst, float64(x), 32)
	case float64:
		return appendFloatText(dst, x, 64)
	case *big.Int:
		return x.Append(dst, 10)
	case *BigDecimal:
		return append(dst, x.String()...)
	case Char:
		return utf8.AppendRune(dst, rune(x))
	case UUID:
		return append(dst, x.String()...)
	case Class:
		return append(append(dst, "class "...), x...)
	case []byte:
		return hex.AppendEncode(dst, x)
	case Enum:
		return append(dst, x.EnumName()...)
	case []any:
		return appendListText(dst, x, depth)
	}
	if b, ok := appendElementText(dst, v, depth); ok {
		return b
	}
	if s, ok := TimeText(v); ok {
		return append(dst, s...)
	}
	return appendLanguageText(dst, v, depth)
}

// appendElementText writes elements and collections other than lists.
func appendElementText(dst []byte, v any, depth int) ([]byte, bool) {
	switch x := v.(type) {
	case *Vertex:
		return append(appendValueText(append(dst, "v["...), x.ID, depth+1), ']'), true
	case *Edge:
		dst = appendValueText(append(dst, "e["...), x.ID, depth+1)
		dst = appendValueText(append(dst, "]["...), x.OutV, depth+1)
		dst = append(append(append(dst, '-'), x.Label...), "->"...)
		return append(appendValueText(dst, x.InV, depth+1), ']'), true
	case *VertexProperty:
		dst = append(append(append(dst, "vp["...), x.Label...), "->"...)
		return append(append(dst, cut20(x.Value, depth)...), ']'), true
	case *Property:
		dst = append(append(append(dst, "p["...), x.Key...), "->"...)
		return append(append(dst, cut20(x.Value, depth)...), ']'), true
	case *Path:
		return appendListText(append(dst, "path"...), x.Objects, depth), true
	case Traverser:
		return appendValueText(dst, x.Value, depth), true
	case *Set:
		return appendListText(dst, x.Items(), depth), true
	case *BulkSet:
		dst = append(dst, '{')
		for i, e := range x.Items() {
			dst = sep(dst, i)
			dst = strconv.AppendInt(append(appendValueText(dst, e.Value, depth+1), '='), e.Bulk, 10)
		}
		return append(dst, '}'), true
	case *Map:
		dst = append(dst, '{')
		for i, e := range x.Entries() {
			dst = sep(dst, i)
			dst = appendValueText(append(appendValueText(dst, e.Key, depth+1), '='), e.Value, depth+1)
		}
		return append(dst, '}'), true
	case *Tree:
		dst = append(dst, '{')
		for i, e := range x.Entries {
			dst = sep(dst, i)
			dst = appendValueText(append(appendValueText(dst, e.Key, depth+1), '='), e.Child, depth+1)
		}
		return append(dst, '}'), true
	case *Graph:
		return fmt.Appendf(dst, "graph[vertices:%d edges:%d]", len(x.Vertices), len(x.Edges)), true
	}
	return dst, false
}

// appendLanguageText writes predicates, bytecode and metrics.
func appendLanguageText(dst []byte, v any, depth int) []byte {
	switch x := v.(type) {
	case *P:
		dst = append(append(dst, x.Op...), '(')
		for i, a := range x.Args {
			dst = appendValueText(sep(dst, i), a, depth+1)
		}
		return append(dst, ')')
	case *Bytecode:
		dst = append(dst, '[')
		for i, in := range append(slices.Clone(x.Source), x.Steps...) {
			dst = append(append(sep(dst, i), in.Op...), '(')
			for j, a := range in.Args {
				dst = appendValueText(sep(dst, j), a, depth+1)
			}
			dst = append(dst, ')')
		}
		return append(dst, ']')
	case *Lambda:
		return append(append(dst, "lambda["...), x.Language+"]"...)
	case *Binding:
		return appendValueText(append(append(dst, x.Key...), '='), x.Value, depth+1)
	case *Strategy:
		return append(dst, x.Name()...)
	case CardinalityValue:
		return append(appendValueText(append(append(dst, x.Cardinality...), '('), x.Value, depth+1), ')')
	case *Metrics:
		return fmt.Appendf(dst, "%s %.3f ms", x.Name, float64(x.Duration)/1e6)
	case *TraversalMetrics:
		dst = append(dst, "Traversal Metrics\n"...)
		for _, m := range x.Metrics {
			dst = append(appendValueText(dst, m, depth+1), '\n')
		}
		return fmt.Appendf(dst, "TOTAL %.3f ms", float64(x.Duration)/1e6)
	}
	return fmt.Appendf(dst, "%T", v)
}

func sep(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ", "...)
	}
	return dst
}

func appendListText(dst []byte, l []any, depth int) []byte {
	dst = append(dst, '[')
	for i, e := range l {
		dst = appendValueText(sep(dst, i), e, depth+1)
	}
	return append(dst, ']')
}

// cut20 returns the short form of a property's value: at most 20 characters.
func cut20(v any, depth int) string {
	s := string(appendValueText(nil, v, depth+1))
	if utf8.RuneCountInString(s) <= 20 {
		return s
	}
	r := []rune(s)
	return string(r[:17]) + "..."
}

// appendFloatText appends a number in Java's form: at least one digit after the point, an exponent for 10^7 and above
// and below 10^-3.
func appendFloatText(dst []byte, f float64, bits int) []byte {
	switch abs := math.Abs(f); {
	case f != f:
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		n := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, bits)
		if !strings.Contains(string(dst[n:]), ".") {
			dst = append(dst, ".0"...)
		}
		return dst
	default:
		s := strconv.FormatFloat(f, 'E', -1, bits)
		mant, exp, _ := strings.Cut(s, "E")
		if !strings.Contains(mant, ".") {
			mant += ".0"
		}
		e, _ := strconv.Atoi(exp)
		return strconv.AppendInt(append(append(dst, mant...), 'E'), int64(e), 10)
	}
}

// TimeText returns the ISO 8601 text of a calendar value, as in GraphSON. ok is false for other values. Date and
// Timestamp are instants in UTC.
func TimeText(v any) (s string, ok bool) {
	switch x := v.(type) {
	case Date:
		return isoTime(x.Time()), true
	case Timestamp:
		return isoTime(Date(x).Time()), true
	case OffsetDateTime:
		return isoTime(x.Time), true
	case ZonedDateTime:
		return isoTime(x.Time), true
	case Instant:
		return isoTime(time.Unix(x.Seconds, int64(x.Nanos)).UTC()), true
	case Duration:
		return durationText(x), true
	case LocalDate:
		return dateText(x), true
	case LocalTime:
		return clockText(x), true
	case LocalDateTime:
		return dateText(x.Date) + "T" + clockText(x.Time), true
	case MonthDay:
		return fmt.Sprintf("--%02d-%02d", x.Month, x.Day), true
	case ZoneOffset:
		return offsetText(int(x)), true
	case OffsetTime:
		return clockText(x.Time) + offsetText(int(x.Offset)), true
	case Period:
		return periodText(x), true
	case Year:
		return strconv.Itoa(int(x)), true
	case YearMonth:
		return fmt.Sprintf("%04d-%02d", x.Year, x.Month), true
	case InetAddress:
		return net.IP(x).String(), true
	}
	return "", false
}

func isoTime(t time.Time) string {
	_, off := t.Zone()
	d := LocalDate{int32(t.Year()), int8(t.Month()), int8(t.Day())}
	ns := int64(t.Hour()*3600+t.Minute()*60+t.Second())*1e9 + int64(t.Nanosecond())
	return dateText(d) + "T" + clockText(LocalTime(ns)) + offsetText(off)
}

func dateText(d LocalDate) string {
	return string(isotime.AppendDate(nil, int(d.Year), int(d.Month), int(d.Day)))
}

// clockText omits zero seconds and a zero fraction, as java.time does.
func clockText(t LocalTime) string {
	sec, nano := int64(t)/1e9, int64(t)%1e9
	s := fmt.Sprintf("%02d:%02d", sec/3600, sec/60%60)
	switch {
	case nano != 0 && nano%1e6 == 0:
		return s + fmt.Sprintf(":%02d.%03d", sec%60, nano/1e6)
	case nano != 0 && nano%1e3 == 0:
		return s + fmt.Sprintf(":%02d.%06d", sec%60, nano/1e3)
	case nano != 0:
		return s + fmt.Sprintf(":%02d.%09d", sec%60, nano)
	case sec%60 != 0:
		return s + fmt.Sprintf(":%02d", sec%60)
	}
	return s
}

func offsetText(sec int) string {
	if sec == 0 {
		return "Z"
	}
	sign := '+'
	if sec < 0 {
		sign, sec = '-', -sec
	}
	s := fmt.Sprintf("%c%02d:%02d", sign, sec/3600, sec/60%60)
	if sec%60 != 0 {
		s += fmt.Sprintf(":%02d", sec%60)
	}
	return s
}

func periodText(p Period) string {
	s := "P"
	for _, part := range []struct {
		n    int32
		unit string
	}{{p.Years, "Y"}, {p.Months, "M"}, {p.Days, "D"}} {
		if part.n != 0 {
			s += strconv.Itoa(int(part.n)) + part.unit
		}
	}
	if s == "P" {
		return "P0D"
	}
	return s
}

// durationText writes hours, minutes and seconds: PT1H2M3.5S.
func durationText(d Duration) string {
	total := new(big.Int).Add(new(big.Int).Mul(big.NewInt(d.Seconds), big.NewInt(1e9)), big.NewInt(int64(d.Nanos)))
	if total.Sign() == 0 {
		return "PT0S"
	}
	neg := ""
	if total.Sign() < 0 {
		neg = "-"
		total.Neg(total)
	}
	sec, nano := new(big.Int).QuoRem(total, big.NewInt(1e9), new(big.Int))
	n := sec.Int64()
	s := "PT"
	if h := n / 3600; h != 0 {
		s += neg + strconv.FormatInt(h, 10) + "H"
	}
	if m := n / 60 % 60; m != 0 {
		s += neg + strconv.FormatInt(m, 10) + "M"
	}
	if r, ns := n%60, nano.Int64(); r != 0 || ns != 0 {
		s += neg + strconv.FormatInt(r, 10)
		if ns != 0 {
			s += strings.TrimRight(fmt.Sprintf(".%09d", ns), "0")
		}
		s += "S"
	}
	return s
}
