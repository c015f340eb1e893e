package bson

import (
	"encoding/binary"
	"math/big"
	"strconv"

	"github.com/cockroachdb/apd/v3"
)

// The range of decimal128: 34 digits, and these exponents.
const (
	DecimalDigits  = 34
	minDecimalExp  = -6176
	maxDecimalExp  = 6111
	decimalExpBias = 6176
)

// Decimal is a decimal128 (IEEE 754-2008 in the binary integer encoding) taken apart: (-1)^sign * coefficient *
// 10^exponent, an infinity or NaN. The zero Decimal is 0. It must not be copied. Results of arithmetic are rounded to
// 34 digits, half to even, and are an infinity when they are too great.
type Decimal struct{ d apd.Decimal }

// decimals is the arithmetic of decimal128; wide is one that rounds nothing that decimal128 holds.
var (
	decimals = apd.Context{Precision: DecimalDigits, MaxExponent: 6144, MinExponent: -6143, Rounding: apd.RoundHalfEven}
	wide     = apd.Context{Precision: 20_000, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent,
		Rounding: apd.RoundHalfEven}
	ten     = apd.NewBigInt(10)
	maxCoef = func() *apd.BigInt {
		c := pow10(DecimalDigits)
		return c.Sub(c, apd.NewBigInt(1))
	}()
)

func pow10(n int) *apd.BigInt { return new(apd.BigInt).Exp(ten, apd.NewBigInt(int64(n)), nil) }

// Read makes x the decimal of 16 BSON bytes; other lengths give NaN. Coefficients above 34 digits (not canonical) count
// as zero.
func (x *Decimal) Read(b []byte) {
	d := &x.d
	d.Form, d.Negative, d.Exponent = apd.Finite, false, 0
	d.Coeff.SetUint64(0)
	if len(b) != 16 {
		d.Form = apd.NaN
		return
	}
	lo, hi := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	d.Negative = hi>>63 != 0
	switch {
	case hi>>58&0x1F == 0x1F:
		d.Form = apd.NaN
		return
	case hi>>58&0x1F == 0x1E:
		d.Form = apd.Infinite
		return
	case hi>>61&3 == 3: // the form for coefficients from 2^113 on, all above 34 digits
		d.Exponent = int32(hi>>47&0x3FFF) - decimalExpBias
		return
	}
	d.Exponent = int32(hi>>49&0x3FFF) - decimalExpBias
	var low apd.BigInt
	d.Coeff.SetUint64(hi & (1<<49 - 1))
	d.Coeff.Lsh(&d.Coeff, 64).Or(&d.Coeff, low.SetUint64(lo))
	if d.Coeff.Cmp(maxCoef) > 0 {
		d.Coeff.SetUint64(0)
	}
}

// Append appends the 16 BSON bytes of x.
func (x *Decimal) Append(dst []byte) []byte {
	var lo, hi uint64
	switch x.d.Form {
	case apd.NaN, apd.NaNSignaling:
		hi = 0x7C << 56
	case apd.Infinite:
		hi = 0x78 << 56
	default:
		var b [16]byte
		x.d.Coeff.FillBytes(b[:])
		hi, lo = binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
		hi |= uint64(x.d.Exponent+decimalExpBias) << 49
	}
	if x.d.Negative {
		hi |= 1 << 63
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, lo), hi)
}

// SetInt makes x an integer.
func (x *Decimal) SetInt(i int64) { x.d.SetInt64(i) }

// Set makes x the number (-1)^neg * coef * 10^exp, coef not negative; ok is false when decimal128 doesn't hold just it.
func (x *Decimal) Set(neg bool, coef *big.Int, exp int) (ok bool) {
	x.d.Form, x.d.Negative, x.d.Exponent = apd.Finite, neg, int32(exp)
	x.d.Coeff.SetMathBigInt(coef)
	return x.fit()
}

// fit brings coefficient and exponent into the range of decimal128 when that changes nothing, and reports whether it
// could.
func (x *Decimal) fit() bool {
	d := &x.d
	if d.Form != apd.Finite {
		return true
	}
	if d.Coeff.Sign() == 0 {
		d.Exponent = min(max(d.Exponent, minDecimalExp), maxDecimalExp)
		return true
	}
	n := int(d.NumDigits())
	if drop := max(n-DecimalDigits, minDecimalExp-int(d.Exponent)); drop > 0 {
		var rest apd.BigInt
		if drop >= n {
			return false
		}
		if d.Coeff.QuoRem(&d.Coeff, pow10(drop), &rest); rest.Sign() != 0 {
			return false
		}
		d.Exponent += int32(drop)
		n -= drop
	}
	if pad := int(d.Exponent) - maxDecimalExp; pad > 0 {
		if n+pad > DecimalDigits {
			return false
		}
		d.Coeff.Mul(&d.Coeff, pow10(pad))
		d.Exponent = maxDecimalExp
	}
	return true
}

// Reduce strips trailing zeros of the coefficient, so that equal numbers have equal parts. What decimal128 doesn't hold
// so, because its exponent is too great, keeps as many as it needs.
func (x *Decimal) Reduce() {
	x.d.Reduce(&x.d)
	x.fit()
}

// IsNaN reports whether x is NaN.
func (x *Decimal) IsNaN() bool { return x.d.Form == apd.NaN || x.d.Form == apd.NaNSignaling }

// IsInf reports whether x is an infinity.
func (x *Decimal) IsInf() bool { return x.d.Form == apd.Infinite }

// Sign returns -1, 0 or 1; infinities have one, NaN counts as 0.
func (x *Decimal) Sign() int {
	if x.IsNaN() {
		return 0
	}
	return x.d.Sign()
}

// Magnitude returns the decimal exponent of the first digit of a finite x that isn't 0.
func (x *Decimal) Magnitude() int { return int(x.d.NumDigits()) + int(x.d.Exponent) - 1 }

// Coefficient returns the coefficient of a finite x, which is never negative, as a number of the caller's.
func (x *Decimal) Coefficient() *big.Int { return new(big.Int).Set(x.d.Coeff.MathBigInt()) }

// Rat returns the exact value of a finite x.
func (x *Decimal) Rat() *big.Rat {
	exp := int(x.d.Exponent)
	p := new(big.Rat).SetInt(pow10(max(exp, -exp)).MathBigInt())
	r := new(big.Rat).SetInt(x.Coefficient())
	if exp >= 0 {
		r.Mul(r, p)
	} else {
		r.Quo(r, p)
	}
	if x.d.Negative {
		r.Neg(r)
	}
	return r
}

// Float returns the double nearest to x.
func (x *Decimal) Float() float64 {
	var buf [48]byte
	f, _ := strconv.ParseFloat(string(x.AppendText(buf[:0])), 64) // out of range gives an infinity, which is meant
	return f
}

// Int64 returns a whole x that fits.
func (x *Decimal) Int64() (int64, bool) {
	switch {
	case x.d.Form != apd.Finite:
		return 0, false
	case x.d.Coeff.Sign() == 0:
		return 0, true
	case x.Magnitude() > 18 || x.Magnitude() < 0:
		return 0, false
	}
	var r apd.Decimal
	if r.Reduce(&x.d); r.Exponent < 0 {
		return 0, false
	}
	r.Coeff.Mul(&r.Coeff, pow10(int(r.Exponent)))
	if r.Negative {
		r.Coeff.Neg(&r.Coeff)
	}
	return r.Coeff.Int64(), r.Coeff.IsInt64()
}

// Cmp compares two numbers by their values. NaN equals NaN and is below all others; -0 equals 0.
func (x *Decimal) Cmp(y *Decimal) int {
	switch {
	case x.IsNaN() && y.IsNaN():
		return 0
	case x.IsNaN():
		return -1
	case y.IsNaN():
		return 1
	}
	return x.d.Cmp(&y.d)
}
