package bson

import (
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// maxDecimalText is beyond any decimal128 written out with all its zeros.
const maxDecimalText = 8000

// AppendText writes x in the text form of IEEE 754 as MongoDB prints it: plain digits while the exponent is not
// positive and the adjusted exponent is at least -6, else scientific with "E+" or "E-". Trailing zeros are kept: they
// are part of the value's form.
func (x *Decimal) AppendText(dst []byte) []byte {
	if x.IsNaN() {
		return append(dst, "NaN"...)
	}
	if x.d.Negative {
		dst = append(dst, '-')
	}
	if x.IsInf() {
		return append(dst, "Infinity"...)
	}
	var buf [DecimalDigits]byte
	digits, exp := x.d.Coeff.Append(buf[:0], 10), int(x.d.Exponent)
	adj := exp + len(digits) - 1
	if exp > 0 || adj < -6 {
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		dst = append(dst, 'E')
		if adj >= 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, int64(adj), 10)
	}
	switch point := len(digits) + exp; {
	case exp == 0:
		return append(dst, digits...)
	case point > 0:
		dst = append(append(dst, digits[:point]...), '.')
		return append(dst, digits[point:]...)
	default:
		dst = append(dst, "0."...)
		for ; point < 0; point++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
}

// Parse reads text: digits with an optional point, sign and exponent, or NaN, Inf, Infinity in any case. ok is false
// when s is something else or has more than 34 significant digits or an exponent out of range; nothing is rounded.
func (x *Decimal) Parse(s string) (ok bool) {
	d := &x.d
	d.Form, d.Negative, d.Exponent = apd.Finite, false, 0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		d.Negative, s = s[0] == '-', s[1:]
	}
	switch strings.ToLower(s) {
	case "nan":
		d.Form = apd.NaN
		return true
	case "inf", "infinity":
		d.Form = apd.Infinite
		return true
	}
	digits, exp, ok := decimalParts(s)
	if !ok {
		return false
	}
	d.Coeff.SetString(digits, 10)
	d.Exponent = int32(exp)
	return x.fit()
}

// decimalParts takes the text of a number without a sign apart.
func decimalParts(s string) (digits string, exp int, ok bool) {
	if len(s) > maxDecimalText {
		return "", 0, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.ParseInt(s[i+1:], 10, 32)
		if err != nil || e > 100000 || e < -100000 {
			return "", 0, false
		}
		s, exp = s[:i], int(e)
	}
	whole, frac, _ := strings.Cut(s, ".")
	digits = whole + frac
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return "", 0, false
		}
	}
	return digits, exp - len(frac), digits != ""
}
