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
