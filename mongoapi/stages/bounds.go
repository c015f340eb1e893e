package stages

import (
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/few"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// interval is a part of an index, written as MongoDB shows it: "[5, 5]", "(5, inf.0]".
type interval struct {
	lo, hi     string
	loIn, hiIn bool        // the ends belong to it
	at         value.Value // the lower end, for the order of intervals
}

// all is the interval of every entry.
var all = interval{lo: "MinKey", hi: "MaxKey", loIn: true, hiIn: true}

func (x interval) text(backward bool) string {
	if backward {
		x.lo, x.hi, x.loIn, x.hiIn = x.hi, x.lo, x.hiIn, x.loIn
	}
	open, end := "(", ")"
	if x.loIn {
		open = "["
	}
	if x.hiIn {
		end = "]"
	}
	return open + x.lo + ", " + x.hi + end
}

// boundsOf returns the intervals of each column of a leaf's index, in the direction of the walk.
//
// Example: {a: {$gt: 5}, b: "x"} on an index {b: 1, a: -1} has ["x", "x"] for b and [inf.0, 5) for a.
func boundsOf(l *access.Pred, backward bool) (columns [][]string) {
	if l.Comp == nil {
		return [][]string{textsOf(intervalsOf(l, false), backward)}
	}
	c := l.Comp
	for i := range c.Index.Columns {
		ivs := []interval{all}
		switch {
		case i < len(c.Front):
			ivs = intervalsOf(c.Front[i], c.Index.Coll != nil)
		case i == len(c.Front) && c.Range != nil:
			ivs = intervalsOf(c.Range, c.Index.Coll != nil)
		}
		columns = append(columns, textsOf(ivs, backward != c.Index.Columns[i].Desc))
	}
	return columns
}

func textsOf(ivs []interval, backward bool) (out []string) {
	for _, x := range ivs {
		out = append(out, x.text(backward))
	}
	if backward {
		slices.Reverse(out)
	}
	return slices.Compact(out)
}

// intervalsOf returns the intervals of a condition on one path, in ascending order. under: see boundText.
func intervalsOf(p *access.Pred, under bool) (ivs []interval) {
	switch {
	case p.Every() || p.Op == access.OpExists:
		return []interval{all}
	case len(p.Kids) > 0: // alternatives on one path
		for _, k := range p.Kids {
			ivs = append(ivs, intervalsOf(k, under)...)
		}
	case p.Op == access.OpIn:
		for _, v := range p.Vals {
			text := boundText(v, under)
			ivs = append(ivs, interval{text, text, true, true, v})
		}
	case p.Op == access.OpPrefix:
		re := "/^" + regexp.QuoteMeta(p.Str) + "/"
		return []interval{
			{lo: quotedBound(p.Str), hi: afterPrefix(p.Str), loIn: true},
			{re, re, true, true, value.Undef()},
		}
	case p.Op == access.OpRange:
		return []interval{rangeOf(p, under)}
	default:
		return []interval{all}
	}
	few.Sort(ivs, func(a, b interval) int { return value.CompareBSON(a.at, b.at) })
	if p.Op == access.OpIn {
		ivs = slices.CompactFunc(ivs, func(a, b interval) bool { return value.CompareBSON(a.at, b.at) == 0 })
	}
	return ivs
}

// rangeOf returns the interval of a range. An open end is that of the bound's type.
func rangeOf(p *access.Pred, under bool) interval {
	x := all
	if p.Lo != nil {
		x.lo, x.loIn, x.at = boundText(p.Lo.Value, under), p.Lo.Inclusive, p.Lo.Value
		if t, ok := typeEnds[p.Lo.Value.Kind()]; ok && !p.Any {
			x.hi, x.hiIn = t.hi, t.hiIn
		}
	}
	if p.Hi != nil {
		x.hi, x.hiIn = boundText(p.Hi.Value, under), p.Hi.Inclusive
		if t, ok := typeEnds[p.Hi.Value.Kind()]; ok && !p.Any && p.Lo == nil {
			x.lo, x.loIn = t.lo, true
		}
	}
	return x
}

var numberEnds = typeEnd{"-inf.0", "inf.0", true}

// typeEnds are the least and greatest values of types. The greatest string is followed by the least object, and
// the greatest array by the least binary.
var typeEnds = map[value.Kind]typeEnd{
	value.Int32:  numberEnds,
	value.Int64:  numberEnds,
	value.Double: numberEnds, value.Decimal: numberEnds,
	value.String:    {`""`, "{}", false},
	value.Bool:      {"false", "true", true},
	value.Array:     {"[]", "BinData(0, )", false},
	value.ObjectID:  {"ObjectId('000000000000000000000000')", "ObjectId('ffffffffffffffffffffffff')", true},
	value.Date:      {dateBound(math.MinInt64), dateBound(math.MaxInt64), true},
	value.Timestamp: {"Timestamp(0, 0)", "Timestamp(4294967295, 4294967295)", true},
}

type typeEnd struct {
	lo, hi string
	hiIn   bool
}

// boundText returns a value as MongoDB shows it in bounds. under says that strings are sort keys of a collation.
func boundText(v value.Value, under bool) string {
	switch v.Kind() {
	case value.Double:
		return doubleBound(v.Float())
	case value.String:
		if under {
			return fmt.Sprintf("CollationKey(0x%x)", v.Bytes())
		}
		return quotedBound(v.Str())
	case value.ObjectID:
		return "ObjectId('" + hex.EncodeToString(v.Bytes()) + "')"
	case value.Date:
		return dateBound(v.DateMS())
	case value.Timestamp:
		return fmt.Sprintf("Timestamp(%d, %d)", v.Raw64()>>32, uint32(v.Raw64()))
	case value.UUID:
		b := v.Bytes()
		return fmt.Sprintf("UUID(%q)", fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
	}
	return string(doc.AppendJSON(nil, v))
}

func dateBound(ms int64) string { return fmt.Sprintf("new Date(%d)", ms) }

// doubleBound shows a double with a point, so that it isn't taken for an integer.
func doubleBound(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf.0"
	case math.IsInf(f, -1):
		return "-inf.0"
	}
	s := strconv.FormatFloat(f, 'g', 16, 64)
	if strings.ContainsAny(s, ".e") {
		return s
	}
	return s + ".0"
}

// Longer texts are cut.
const longBound, cutBound = 160, 150

func quotedBound(s string) string {
	if len(s) >= longBound {
		return `"` + strings.ToValidUTF8(s[:cutBound], "") + `..."`
	}
	return `"` + s + `"`
}

// afterPrefix returns the least text after all that begin with s: the last character is replaced by the next one.
func afterPrefix(s string) string {
	for len(s) > 0 {
		r, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
		if r++; r == 0xD800 { // half characters, which no text has
			r = 0xE000
		}
		if r <= utf8.MaxRune {
			return quotedBound(s + string(r))
		}
	}
	return "{}"
}
