package json

import (
	"strconv"
	"unsafe"
)

// Number is a scanned number, with what Int and Float need, so its text is rarely read twice. It has four fields
// because the compiler keeps structs of up to four fields in registers.
type Number struct {
	mant   uint64 // digits of integer part and fraction as one integer; more than 19 digits wrap around
	exp    int32  // power of ten by which mant is multiplied
	digits int32  // number of digits in mant, leading zeros included
	marks  uint8
}

// The properties of a number.
const (
	negative uint8 = 1 << iota
	whole          // no fraction and no exponent
)

// ScanNumber scans the number at i and returns the position after it. ok is false if there is no number.
func ScanNumber(b []byte, i int) (n Number, end int, ok bool) {
	var marks uint8
	if i < len(b) && b[i] == '-' {
		marks = negative
		i++
	}
	var mant uint64
	first := i
	for i < len(b) && b[i]-'0' <= 9 {
		mant = mant*10 + uint64(b[i]-'0')
		i++
	}
	digits, exp := i-first, 0
	if digits == 0 || digits > 1 && b[first] == '0' {
		return Number{}, i, false
	}
	if i == len(b) || b[i] != '.' && b[i]|0x20 != 'e' {
		return Number{mant: mant, digits: int32(digits), marks: marks | whole}, i, true
	}
	if b[i] == '.' {
		i++
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			mant = mant*10 + uint64(b[i]-'0')
			i++
		}
		if i == from {
			return Number{}, i, false
		}
		exp, digits = from-i, digits+i-from
	}
	ok = true
	if i < len(b) && b[i]|0x20 == 'e' {
		var e int
		e, i, ok = exponent(b, i+1)
		exp += e
	}
	return Number{mant: mant, exp: int32(exp), digits: int32(digits), marks: marks}, i, ok
}

// exponent reads the part after the letter e. The result saturates: a large exponent stays large, however many digits
// it has.
func exponent(b []byte, i int) (e, end int, ok bool) {
	minus := i < len(b) && b[i] == '-'
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		i++
	}
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		e = min(e*10+int(b[i]-'0'), 1<<20)
		i++
	}
	if minus {
		e = -e
	}
	return e, i, i > from
}

// Int returns the number as an int64. ok is false if it isn't whole or doesn't fit, and for -0, which is a double.
func (n Number) Int() (int64, bool) {
	switch m := n.mant; {
	case n.marks&whole == 0 || n.digits > 19:
		return 0, false
	case n.marks&negative == 0:
		return int64(m), m < 1<<63
	default:
		return int64(-m), m <= 1<<63 && m != 0
	}
}

// Float returns the double nearest to the number, whose text is given. ok is false beyond the range of doubles. If
// digits and exponent are small enough, one multiplication or division of exact doubles gives the correctly rounded
// result; otherwise strconv parses the text.
func (n Number) Float(text []byte) (f float64, ok bool) {
	if n.digits > 19 || n.mant >= 1<<53 || n.exp < -22 || n.exp > 22 {
		f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
		return f, err == nil
	}
	if f = float64(n.mant); n.exp < 0 {
		f /= powers[-n.exp]
	} else {
		f *= powers[n.exp]
	}
	if n.marks&negative != 0 {
		f = -f
	}
	return f, true
}

// powers are the powers of ten that are exact doubles.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}
