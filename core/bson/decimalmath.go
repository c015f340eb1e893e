package bson

import "github.com/cockroachdb/apd/v3"

// The results of arithmetic may be an operand.

// Add makes z the sum x + y.
func (z *Decimal) Add(x, y *Decimal) { z.done(decimals.Add(&z.d, &x.d, &y.d)) }

// Sub makes z the difference x - y.
func (z *Decimal) Sub(x, y *Decimal) { z.done(decimals.Sub(&z.d, &x.d, &y.d)) }

// Mul makes z the product x * y.
func (z *Decimal) Mul(x, y *Decimal) { z.done(decimals.Mul(&z.d, &x.d, &y.d)) }

// Neg makes z the number -x.
func (z *Decimal) Neg(x *Decimal) { z.d.Neg(&x.d) }

// Quo makes z the quotient x / y. An exact one has no more zeros at its end than the exponents of x and y call for. A
// number that isn't 0 over 0 is an infinity, 0 over 0 is NaN.
func (z *Decimal) Quo(x, y *Decimal) {
	ideal := x.d.Exponent - y.d.Exponent
	toInf := x.d.Form == apd.Finite && y.IsInf()
	cond, err := decimals.Quo(&z.d, &x.d, &y.d)
	switch {
	case toInf:
		z.d.Exponent = 0
	case !cond.Inexact() && z.d.Form == apd.Finite:
		var q, r apd.BigInt
		for z.d.Exponent < ideal && z.d.Coeff.Sign() != 0 {
			if q.QuoRem(&z.d.Coeff, ten, &r); r.Sign() != 0 {
				break
			}
			z.d.Coeff.Set(&q)
			z.d.Exponent++
		}
	}
	z.done(cond, err)
}

// Rem makes z the rest of x / y, with the sign of x; exact, however far apart they are. It is NaN when y is 0 or x an
// infinity.
func (z *Decimal) Rem(x, y *Decimal) { z.done(wide.Rem(&z.d, &x.d, &y.d)) }

// done brings a result into the range of decimal128. The contexts trap nothing, so an error is an exponent that no
// decimal128 leads to.
func (z *Decimal) done(_ apd.Condition, err error) {
	if err != nil || !z.fit() {
		z.d.Form = apd.NaN
	}
}

// Floor makes z the greatest whole number that isn't above x.
func (z *Decimal) Floor(x *Decimal) { z.integral(x, decimals.Floor) }

// Ceil makes z the least whole number that isn't below x.
func (z *Decimal) Ceil(x *Decimal) { z.integral(x, decimals.Ceil) }

func (z *Decimal) integral(x *Decimal, f func(d, x *apd.Decimal) (apd.Condition, error)) {
	if x.d.Form != apd.Finite || x.d.Exponent >= 0 {
		z.d.Set(&x.d)
		return
	}
	var r apd.Decimal
	cond, err := f(&r, &x.d)
	z.d.Set(&r)
	z.done(cond, err)
}

// Trunc makes z the number x with places digits behind the point (negative: zeros before it), the others cut.
func (z *Decimal) Trunc(x *Decimal, places int) { z.places(x, places, apd.RoundDown) }

// Round is Trunc, rounded half to even.
func (z *Decimal) Round(x *Decimal, places int) { z.places(x, places, apd.RoundHalfEven) }

func (z *Decimal) places(x *Decimal, places int, r apd.Rounder) {
	if x.d.Form != apd.Finite || int(x.d.Exponent) >= -places {
		z.d.Set(&x.d)
		return
	}
	c := decimals
	c.Rounding = r
	z.done(c.Quantize(&z.d, &x.d, int32(-places)))
}

// Sqrt makes z the square root of x; of a number below 0 it is NaN. An exact one has as many zeros at its end as half
// the exponent of x calls for.
func (z *Decimal) Sqrt(x *Decimal) {
	var r, square apd.Decimal
	_, err := decimals.Sqrt(&r, &x.d)
	if ideal := x.d.Exponent >> 1; err == nil && r.Form == apd.Finite {
		r.Reduce(&r)
		if _, e := wide.Mul(&square, &r, &r); e == nil && square.Cmp(&x.d) == 0 && r.Exponent >= ideal {
			_, err = decimals.Quantize(&r, &r, ideal)
		}
	}
	z.d.Set(&r)
	z.done(0, err)
}

// Exp makes z the power e^x.
func (z *Decimal) Exp(x *Decimal) {
	if x.d.Form == apd.Finite && x.d.Coeff.Sign() != 0 && x.Magnitude() > 4 {
		z.outside(x.d.Negative, false)
		return
	}
	z.nearest(x, (*apd.Context).Exp)
}

// outside makes z what stands for a number that is too small, or too great.
func (z *Decimal) outside(small, neg bool) {
	z.d.SetFinite(0, 0)
	if small {
		z.d.Exponent = minDecimalExp
	} else {
		z.d.Form = apd.Infinite
	}
	z.d.Negative = neg
}

// Ln makes z the natural logarithm of x; of a number below 0 it is NaN, of 0 an infinity.
func (z *Decimal) Ln(x *Decimal) { z.nearest(x, (*apd.Context).Ln) }

// Log10 makes z the logarithm of x to base 10.
func (z *Decimal) Log10(x *Decimal) { z.nearest(x, (*apd.Context).Log10) }

// extraDigits are what steps of a result have more than the result.
const extraDigits = 6

// finer is the arithmetic for such steps.
var finer = apd.Context{Precision: DecimalDigits + extraDigits, MaxExponent: apd.MaxExponent,
	MinExponent: apd.MinExponent, Rounding: apd.RoundHalfEven}

// Log makes z the logarithm of x to a base, both above 0.
func (z *Decimal) Log(x, base *Decimal) {
	var l, b apd.Decimal
	_, err := finer.Ln(&l, &x.d)
	if err == nil {
		_, err = finer.Ln(&b, &base.d)
	}
	if err == nil {
		_, err = finer.Quo(&l, &l, &b)
	}
	z.round(&l, err)
}

// Pow makes z the power x^y, which is NaN if x is below 0 and y isn't whole.
func (z *Decimal) Pow(x, y *Decimal) {
	var abs, size apd.Decimal
	abs.Abs(&x.d)
	whole := isWhole(&y.d)
	odd := whole && isOdd(&y.d)
	switch {
	case y.Sign() == 0 && !y.IsNaN() || abs.Cmp(one) == 0 && (!x.d.Negative || whole):
		z.d.Set(one)
		z.d.Negative = x.d.Negative && odd
		return
	case x.IsNaN() || y.IsNaN() || x.Sign() < 0 && !x.IsInf() && !whole:
		z.d.Form = apd.NaN
		return
	case x.Sign() == 0 || x.IsInf() || y.IsInf():
		grows := (x.Sign() != 0 && abs.Cmp(one) > 0) == (y.Sign() > 0)
		z.d.SetFinite(0, 0)
		if grows {
			z.d.Form = apd.Infinite
		}
		z.d.Negative = x.d.Negative && odd
		return
	}
	// The size of the result says whether it is in the range, before it is computed.
	_, err := finer.Ln(&size, &abs)
	if err == nil {
		_, err = finer.Mul(&size, &size, &y.d)
	}
	if f, e := size.Float64(); err != nil || e != nil || f > maxLn || f < minLn {
		z.outside(size.Negative, x.d.Negative && odd)
		return
	}
	c := finer // a step that is repeated y times loses as many digits as y has
	c.Precision += uint32(max(y.Magnitude(), 0))
	var p apd.Decimal
	_, err = c.Pow(&p, &x.d, &y.d)
	z.round(&p, err)
}

// The natural logarithms of what is surely above and below all decimals.
const (
	maxLn = 14_200
	minLn = -14_300
)

var one = apd.New(1, 0)

// isWhole reports whether d is a whole number.
func isWhole(d *apd.Decimal) bool {
	if d.Form != apd.Finite || d.Exponent >= 0 {
		return d.Form == apd.Finite
	}
	var whole, rest apd.Decimal
	d.Modf(&whole, &rest)
	return rest.IsZero()
}

// isOdd reports whether a whole number is odd.
func isOdd(d *apd.Decimal) bool {
	if d.Exponent > 0 {
		return false
	}
	var whole, rest apd.Decimal
	d.Modf(&whole, &rest)
	return whole.Exponent == 0 && whole.Coeff.Bit(0) == 1
}

// nearest makes z the value of a function at x.
func (z *Decimal) nearest(x *Decimal, fn func(c *apd.Context, d, x *apd.Decimal) (apd.Condition, error)) {
	var r apd.Decimal
	_, err := fn(&finer, &r, &x.d)
	z.round(&r, err)
}

// round makes z the number r, with no zeros at its end that say nothing.
func (z *Decimal) round(r *apd.Decimal, err error) {
	if err != nil {
		z.d.Form = apd.NaN
		return
	}
	z.done(decimals.Round(&z.d, r))
	z.trim()
}

// trim removes the zeros at the end of a number that only say that it is exact.
func (z *Decimal) trim() {
	if z.d.IsZero() {
		z.d.Exponent = min(z.d.Exponent, 0)
	}
	var short apd.Decimal
	if z.d.Form != apd.Finite || z.d.Exponent >= 0 || z.d.IsZero() {
		return
	} else if _, n := short.Reduce(&z.d); n < extraDigits {
		return
	}
	if short.Exponent > 0 {
		_, _ = decimals.Quantize(&short, &short, 0)
	}
	z.d.Set(&short)
}
