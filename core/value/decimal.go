package value

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Decimal128 in the binary integer encoding (IEEE 754-2008, as BSON stores it): value = (-1)^neg * coef * 10^exp.
const (
	decimalDigits  = 34
	decimalMinExp  = -6176
	decimalMaxExp  = 6111
	decimalExpBias = 6176
)

var (
	bigTen        = big.NewInt(10)
	decimalMax, _ = new(big.Int).SetString(strings.Repeat("9", decimalDigits), 10)
)

// dec is a decoded decimal128. coef is never negative; inf and nan exclude the rest.
type dec struct {
	neg, inf, nan bool
	exp           int
	coef          *big.Int
}

// decimalOf decodes the 16 little-endian bytes of a Decimal. Coefficients above 34 digits (not canonical) count as zero.
func decimalOf(b []byte) dec {
	if len(b) != 16 {
		return dec{nan: true}
	}
	lo, hi := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	d := dec{neg: hi>>63 != 0, coef: new(big.Int)}
	switch {
	case hi>>58&0x1F == 0x1F:
		d.nan = true
		return d
	case hi>>58&0x1F == 0x1E:
		d.inf = true
		return d
	case hi>>61&3 == 3: // the form for coefficients from 2^113 on, all above 34 digits
		d.exp = int(hi>>47&0x3FFF) - decimalExpBias
		return d
	}
	d.exp = int(hi>>49&0x3FFF) - decimalExpBias
	d.coef.SetUint64(hi & (1<<49 - 1))
	d.coef.Lsh(d.coef, 64).Or(d.coef, new(big.Int).SetUint64(lo))
	if d.coef.Cmp(decimalMax) > 0 {
		d.coef.SetUint64(0)
	}
	return d
}

// append encodes d, which must be in range (see fit).
func (d dec) append(dst []byte) []byte {
	var lo, hi uint64
	switch {
	case d.nan:
		hi = 0x7C << 56
	case d.inf:
		hi = 0x78 << 56
	default:
		lo = new(big.Int).And(d.coef, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
		hi = new(big.Int).Rsh(d.coef, 64).Uint64() | uint64(d.exp+decimalExpBias)<<49
	}
	if d.neg {
		hi |= 1 << 63
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, lo), hi)
}

// fit brings coef and exp into the range of decimal128 when that changes nothing, and reports whether it could.
func (d *dec) fit() bool {
	if d.inf || d.nan {
		return true
	}
	q, r := new(big.Int), new(big.Int)
	for d.coef.Cmp(decimalMax) > 0 || d.exp < decimalMinExp {
		if d.coef.Sign() == 0 {
			d.exp = decimalMinExp
			return true
		}
		if q.QuoRem(d.coef, bigTen, r); r.Sign() != 0 {
			return false
		}
		d.coef.Set(q)
		d.exp++
	}
	if d.coef.Sign() == 0 && d.exp > decimalMaxExp {
		d.exp = decimalMaxExp
	}
	for d.exp > decimalMaxExp {
		if d.coef.Mul(d.coef, bigTen); d.coef.Cmp(decimalMax) > 0 {
			return false
		}
		d.exp--
	}
	return true
}

// normal strips trailing zeros, so that equal values have equal parts.
func (d *dec) normal() {
	if d.inf || d.nan {
		return
	}
	if d.coef.Sign() == 0 {
		d.exp = 0
		return
	}
	q, r := new(big.Int), new(big.Int)
	for {
		if q.QuoRem(d.coef, bigTen, r); r.Sign() != 0 {
			return
		}
		d.coef.Set(q)
		d.exp++
	}
}

// rat returns the exact value of a finite d.
func (d dec) rat() *big.Rat {
	p := new(big.Int).Exp(bigTen, big.NewInt(int64(max(d.exp, -d.exp))), nil)
	r := new(big.Rat).SetInt(d.coef)
	if d.exp >= 0 {
		r.Mul(r, new(big.Rat).SetInt(p))
	} else {
		r.Quo(r, new(big.Rat).SetInt(p))
	}
	if d.neg {
		r.Neg(r)
	}
	return r
}

// float returns the double nearest to d.
func (d dec) float() float64 {
	f, _ := strconv.ParseFloat(string(d.appendText(nil)), 64) // out of range gives an infinity, which is meant
	return f
}

// int64 returns a whole d that fits.
func (d dec) int64() (int64, bool) {
	if d.inf || d.nan || d.exp > 18 {
		return 0, !d.inf && !d.nan && d.coef.Sign() == 0
	}
	n := dec{neg: d.neg, exp: d.exp, coef: new(big.Int).Set(d.coef)}
	n.normal()
	if n.exp < 0 || n.exp > 18 {
		return 0, false
	}
	c := n.coef.Mul(n.coef, new(big.Int).Exp(bigTen, big.NewInt(int64(n.exp)), nil))
	if d.neg {
		c.Neg(c)
	}
	return c.Int64(), c.IsInt64()
}

// appendText writes d in the text form of IEEE 754 as MongoDB prints it: plain digits while the exponent is not positive and
// the adjusted exponent is at least -6, else scientific with "E+" or "E-". Trailing zeros are kept: they are part of the value's
// form.
func (d dec) appendText(dst []byte) []byte {
	if d.nan {
		return append(dst, "NaN"...)
	}
	if d.neg {
		dst = append(dst, '-')
	}
	if d.inf {
		return append(dst, "Infinity"...)
	}
	digits := d.coef.Append(nil, 10)
	adj := d.exp + len(digits) - 1
	if d.exp > 0 || adj < -6 {
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
	switch point := len(digits) + d.exp; {
	case d.exp == 0:
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

// ParseDecimal reads a decimal128 from text: digits with an optional point, sign and exponent, or NaN, Inf, Infinity in any
// case. ok is false when s is something else or has more than 34 significant digits or an exponent out of range; nothing is
// rounded.
func ParseDecimal(s string) (v Value, ok bool) {
	d, ok := parseDec(s)
	if !ok || !d.fit() {
		return Value{}, false
	}
	return DecimalOf(d.append(make([]byte, 0, 16))), true
}

func parseDec(s string) (dec, bool) {
	d := dec{coef: new(big.Int)}
	if s != "" && (s[0] == '-' || s[0] == '+') {
		d.neg, s = s[0] == '-', s[1:]
	}
	switch strings.ToLower(s) {
	case "nan":
		d.nan = true
		return d, true
	case "inf", "infinity":
		d.inf = true
		return d, true
	}
	if len(s) > 8000 { // beyond any decimal128 written out with all its zeros
		return d, false
	}
	mant, expText, hasExp := s, "", false
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mant, expText, hasExp = s[:i], s[i+1:], true
	}
	whole, frac, _ := strings.Cut(mant, ".")
	digits := whole + frac
	if digits == "" {
		return d, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return d, false
		}
	}
	if hasExp {
		e, err := strconv.ParseInt(expText, 10, 32)
		if err != nil || e > 100000 || e < -100000 {
			return d, false
		}
		d.exp = int(e)
	}
	d.exp -= len(frac)
	d.coef.SetString(digits, 10)
	return d, true
}

// DecimalText returns the text of a Decimal, "" for other kinds.
func DecimalText(v Value) string {
	if v.kind != Decimal {
		return ""
	}
	return string(decimalOf(v.b).appendText(nil))
}

func decOfInt(i int64) dec {
	c := big.NewInt(i)
	return dec{neg: i < 0, coef: c.Abs(c)}
}

// sign returns -1, 0 or 1; infinities have one, NaN counts as 0.
func (d dec) sign() int {
	if d.nan || !d.inf && d.coef.Sign() == 0 {
		return 0
	}
	if d.neg {
		return -1
	}
	return 1
}

// magnitude returns the decimal exponent of the first digit of a finite d that isn't 0.
func (d dec) magnitude() int { return len(d.coef.Text(10)) + d.exp - 1 }

func compareDecs(a, b dec) int {
	switch {
	case a.nan || b.nan:
		return boolInt(b.nan) - boolInt(a.nan)
	case a.sign() != b.sign():
		return cmpInt(int64(a.sign()), int64(b.sign()))
	case a.sign() == 0:
		return 0
	case a.inf || b.inf:
		return a.sign() * (boolInt(a.inf) - boolInt(b.inf))
	}
	if c := cmpInt(int64(a.magnitude()), int64(b.magnitude())); c != 0 {
		return a.sign() * c
	}
	// Equal magnitudes: the exponents differ by at most 33, so this stays small.
	x, y := new(big.Int).Set(a.coef), new(big.Int).Set(b.coef)
	if n := a.exp - b.exp; n > 0 {
		x.Mul(x, new(big.Int).Exp(bigTen, big.NewInt(int64(n)), nil))
	} else {
		y.Mul(y, new(big.Int).Exp(bigTen, big.NewInt(int64(-n)), nil))
	}
	return a.sign() * x.Cmp(y)
}

func compareDecFloat(d dec, f float64) int {
	fs := 0
	if f > 0 {
		fs = 1
	} else if f < 0 {
		fs = -1
	}
	switch {
	case d.nan || math.IsNaN(f):
		return boolInt(math.IsNaN(f)) - boolInt(d.nan)
	case d.sign() != fs:
		return cmpInt(int64(d.sign()), int64(fs))
	case fs == 0:
		return 0
	case d.inf || math.IsInf(f, 0):
		return fs * (boolInt(d.inf) - boolInt(math.IsInf(f, 0)))
	case d.magnitude() > 309: // above every double
		return fs
	case d.magnitude() < -325: // between 0 and the smallest double
		return -fs
	}
	return d.rat().Cmp(new(big.Rat).SetFloat64(f))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// keyOfDecimal is for finite decimals that no double equals.
func keyOfDecimal(d dec) NumberKey {
	f := d.float()
	if compareDecFloat(d, f) < 0 {
		f = math.Nextafter(f, math.Inf(-1))
	}
	if math.IsInf(f, -1) {
		return NumberKey{Floor: f, Lossy: true}
	}
	if d.magnitude() < -400 { // far below the smallest double: the fraction is as good as 0 or 1
		if d.neg {
			return NumberKey{Floor: f, Frac: math.MaxUint64, Lossy: true}
		}
		return NumberKey{Floor: f, Lossy: true}
	}
	ulp := math.Nextafter(f, math.Inf(1)) - f
	if math.IsInf(ulp, 1) { // above the greatest double
		return NumberKey{Floor: f, Frac: math.MaxUint64, Lossy: true}
	}
	q := d.rat()
	q.Sub(q, new(big.Rat).SetFloat64(f)).Quo(q, new(big.Rat).SetFloat64(ulp))
	q.Mul(q, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 64)))
	n := new(big.Int).Quo(q.Num(), q.Denom())
	return NumberKey{Floor: f, Frac: n.Uint64(), Lossy: !q.IsInt()}
}

// DecimalKeySize is the length of what AppendDecimalKey appends.
const DecimalKeySize = 17

// AppendDecimalKey appends a finite Decimal other than 0 as bytes that sort, among decimals of one sign, in the order of their
// values, and are equal for equal ones: the exponent of the first digit and 34 digits, inverted when negative.
func AppendDecimalKey(dst []byte, v Value) []byte {
	d := decimalOf(v.b)
	mag := d.magnitude()
	c := new(big.Int).Set(d.coef)
	for n := decimalDigits - len(c.Text(10)); n > 0; n-- {
		c.Mul(c, bigTen)
	}
	at := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, uint16(mag+0x4000))
	dst = append(dst, c.FillBytes(make([]byte, DecimalKeySize-2))...)
	if d.neg {
		for i := at; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

// DecimalOfKey returns the Decimal of a key that AppendDecimalKey made; neg is its sign. ok is false for bytes that it can't have made.
func DecimalOfKey(key []byte, neg bool) (v Value, ok bool) {
	if len(key) != DecimalKeySize {
		return Value{}, false
	}
	var b [DecimalKeySize]byte
	copy(b[:], key)
	if neg {
		for i := range b {
			b[i] = ^b[i]
		}
	}
	d := dec{neg: neg, coef: new(big.Int).SetBytes(b[2:])}
	d.exp = int(binary.BigEndian.Uint16(b[:])) - 0x4000 - (decimalDigits - 1)
	d.normal()
	if d.coef.Sign() == 0 || !d.fit() {
		return Value{}, false
	}
	return DecimalOf(d.append(make([]byte, 0, 16))), true
}
