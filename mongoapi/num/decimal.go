package num

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/value"
)

// dec is a decimal number: coef * 10^exp, or one of the special ones.
type dec struct {
	coef *big.Int
	exp  int
	nan  bool
	inf  int // sign of an infinity, 0 when finite
}

var (
	ten      = big.NewInt(10)
	maxCoef  = new(big.Int).Exp(ten, big.NewInt(34), nil)
	maxDigit = 34
)

func decimalOf(v value.Value) bson.Decimal128 {
	b := v.Bytes()
	if len(b) != 16 {
		return bson.NewDecimal128(0, 0)
	}
	return bson.NewDecimal128(binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b))
}

func decimalValue(d bson.Decimal128) value.Value {
	h, l := d.GetBytes()
	b := make([]byte, 16)
	binary.LittleEndian.PutUint64(b, l)
	binary.LittleEndian.PutUint64(b[8:], h)
	return value.DecimalOf(b)
}

// toDec converts any number.
func toDec(v value.Value) dec {
	switch v.Kind() {
	case value.Int32, value.Int64:
		return dec{coef: big.NewInt(v.Int())}
	case value.Double:
		f := v.Float()
		switch {
		case math.IsNaN(f):
			return dec{nan: true}
		case math.IsInf(f, 0):
			return dec{inf: int(math.Copysign(1, f))}
		}
		d, err := bson.ParseDecimal128(strconv.FormatFloat(f, 'g', 15, 64))
		if err != nil {
			return dec{nan: true}
		}
		return fromDecimal128(d)
	}
	return fromDecimal128(decimalOf(v))
}

func fromDecimal128(d bson.Decimal128) dec {
	if d.IsNaN() {
		return dec{nan: true}
	}
	if s := d.IsInf(); s != 0 {
		return dec{inf: s}
	}
	c, e, err := d.BigInt()
	if err != nil {
		return dec{nan: true}
	}
	return dec{coef: c, exp: e}
}

// value rounds to 34 digits, half to even, and makes a Decimal.
func (d dec) value() value.Value {
	if d.nan {
		return decimalValue(must(bson.ParseDecimal128("NaN")))
	}
	if d.inf != 0 {
		if d.inf < 0 {
			return decimalValue(must(bson.ParseDecimal128("-Infinity")))
		}
		return decimalValue(must(bson.ParseDecimal128("Infinity")))
	}
	c, e := d.coef, d.exp
	for c.CmpAbs(maxCoef) >= 0 || e < bson.MinDecimal128Exp {
		drop := digits(c) - maxDigit
		if drop < 1 {
			drop = 1
		}
		if e+drop < bson.MinDecimal128Exp {
			drop = min(bson.MinDecimal128Exp-e, 64)
		}
		c, e = roundTo(c, drop), e+drop
		if c.Sign() == 0 {
			e = max(e, bson.MinDecimal128Exp)
			break
		}
	}
	out, ok := bson.ParseDecimal128FromBigInt(c, e)
	if !ok {
		return dec{inf: max(-1, min(1, c.Sign()))}.value()
	}
	return decimalValue(out)
}

func must(d bson.Decimal128, err error) bson.Decimal128 {
	if err != nil {
		panic(err)
	}
	return d
}

func digits(c *big.Int) int { return len(strings.TrimPrefix(c.String(), "-")) }

func pow10(n int) *big.Int { return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil) }

// roundTo drops n decimal digits of c, half to even.
func roundTo(c *big.Int, n int) *big.Int {
	p := pow10(n)
	q, r := new(big.Int).QuoRem(c, p, new(big.Int))
	r.Abs(r).Lsh(r, 1)
	if cmp := r.Cmp(p); cmp > 0 || cmp == 0 && q.Bit(0) == 1 {
		if c.Sign() < 0 {
			return q.Sub(q, big.NewInt(1))
		}
		return q.Add(q, big.NewInt(1))
	}
	return q
}

// align brings two finite decimals to one exponent. Exponents far apart are cut, which changes only digits beyond the 34th.
func align(a, b dec) (x, y *big.Int, exp int) {
	x, y, exp = a.coef, b.coef, min(a.exp, b.exp)
	const far = 100
	if d := a.exp - exp; d > far {
		if x.Sign() == 0 {
			return big.NewInt(0), y, exp
		}
		return x, big.NewInt(0), a.exp
	} else if d > 0 {
		x = new(big.Int).Mul(x, pow10(d))
	}
	if d := b.exp - exp; d > far {
		if y.Sign() == 0 {
			return x, big.NewInt(0), exp
		}
		return big.NewInt(0), y, b.exp
	} else if d > 0 {
		y = new(big.Int).Mul(y, pow10(d))
	}
	return x, y, exp
}

func decAdd(a, b dec) dec {
	switch {
	case a.nan || b.nan || a.inf*b.inf < 0:
		return dec{nan: true}
	case a.inf != 0:
		return a
	case b.inf != 0:
		return b
	}
	x, y, e := align(a, b)
	return dec{coef: new(big.Int).Add(x, y), exp: e}
}

func (d dec) neg() dec {
	d.inf = -d.inf
	if d.coef != nil {
		d.coef = new(big.Int).Neg(d.coef)
	}
	return d
}

func (d dec) sign() int {
	if d.inf != 0 {
		return d.inf
	}
	if d.coef == nil {
		return 0
	}
	return d.coef.Sign()
}

func decMul(a, b dec) dec {
	if a.nan || b.nan {
		return dec{nan: true}
	}
	if a.inf != 0 || b.inf != 0 {
		if s := a.sign() * b.sign(); s != 0 {
			return dec{inf: s}
		}
		return dec{nan: true}
	}
	return dec{coef: new(big.Int).Mul(a.coef, b.coef), exp: a.exp + b.exp}
}

func decDiv(a, b dec) dec {
	switch {
	case a.nan || b.nan || a.inf != 0 && b.inf != 0:
		return dec{nan: true}
	case a.inf != 0:
		return dec{inf: a.inf * map[bool]int{true: -1, false: 1}[b.sign() < 0]}
	case b.inf != 0:
		return dec{coef: big.NewInt(0)}
	case b.coef.Sign() == 0:
		if a.coef.Sign() == 0 {
			return dec{nan: true}
		}
		return dec{inf: a.coef.Sign()}
	}
	shift := max(0, maxDigit+2+digits(b.coef)-digits(a.coef))
	q, r := new(big.Int).QuoRem(new(big.Int).Mul(a.coef, pow10(shift)), b.coef, new(big.Int))
	e := a.exp - b.exp - shift
	if r.Sign() != 0 {
		return dec{coef: q, exp: e}
	}
	for ideal := a.exp - b.exp; e < ideal; e++ { // exact: no more zeros than needed
		t, m := new(big.Int).QuoRem(q, ten, new(big.Int))
		if m.Sign() != 0 {
			break
		}
		q = t
	}
	return dec{coef: q, exp: e}
}

func decMod(a, b dec) dec {
	if a.nan || b.nan || a.inf != 0 || b.inf == 0 && b.coef.Sign() == 0 {
		return dec{nan: true}
	}
	if b.inf != 0 {
		return a
	}
	x, y, e := align(a, b)
	if y.Sign() == 0 {
		return a
	}
	return dec{coef: new(big.Int).Rem(x, y), exp: e}
}

// integral drops the fraction: mode -1 floor, 0 truncate, 1 ceil, 2 half to even; places digits stay behind the point.
func (d dec) integral(mode, places int) dec {
	if d.nan || d.inf != 0 || d.exp >= -places {
		return d
	}
	drop := min(-places-d.exp, 80)
	if mode == 2 {
		return dec{coef: roundTo(d.coef, drop), exp: d.exp + drop}
	}
	q, r := new(big.Int).QuoRem(d.coef, pow10(drop), new(big.Int))
	switch {
	case mode < 0 && r.Sign() < 0:
		q.Sub(q, big.NewInt(1))
	case mode == 1 && r.Sign() > 0:
		q.Add(q, big.NewInt(1))
	}
	return dec{coef: q, exp: d.exp + drop}
}

// ParseDecimal reads a decimal from text.
func ParseDecimal(s string) (value.Value, bool) {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		return value.Value{}, false
	}
	return decimalValue(d), true
}

// DecimalText returns the text of a Decimal.
func DecimalText(v value.Value) string { return decimalOf(v).String() }
