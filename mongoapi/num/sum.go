package num

import (
	"math"
	"strconv"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// Sum adds numbers as MongoDB's $sum, $avg and $add do: whole numbers exactly, doubles with the error of each step
// carried along, and decimals by themselves. So the order of the numbers hardly matters. The zero Sum is 0.
//
//	0.1 + 0.2 + 0.3          -> 0.6, where doubles added one by one give 0.6000000000000001
//	decimal 1 + double 0.1   -> decimal 1.100000000000000005551115123125783: all that the double has
type Sum struct {
	ints    int64
	wide    pair // the doubles, and the whole numbers that ints couldn't hold
	dec     *bson.Decimal
	doubles bool
}

// Add adds a number. Other kinds are nothing.
func (s *Sum) Add(v value.Value) {
	switch v.Kind() {
	case value.Int32, value.Int64:
		s.AddInt(v.Int())
	case value.Double:
		s.doubles = true
		s.wide.add(v.Float())
	case value.Decimal:
		var d bson.Decimal
		toDecimal(&d, v)
		if s.dec == nil {
			s.dec = &bson.Decimal{}
		}
		s.dec.Add(s.dec, &d)
	}
}

// AddInt adds a whole number.
func (s *Sum) AddInt(x int64) {
	r := s.ints + x
	if (r > s.ints) != (x > 0) && x != 0 {
		s.wide.addInt(s.ints)
		r = x
	}
	s.ints = r
}

// Value returns the sum: a decimal or a double if there was one, else a long, or a double where that is too small.
func (s *Sum) Value() value.Value {
	all := s.wide
	if s.dec == nil && !s.doubles && all == (pair{}) {
		return value.Int64Of(s.ints)
	}
	all.addInt(s.ints)
	if s.dec != nil {
		var z, hi, lo bson.Decimal
		if f := all.float(); f != all.hi {
			exact(&hi, f)
		} else {
			exact(&hi, all.hi)
			exact(&lo, all.lo)
		}
		z.Add(&hi, &lo)
		z.Add(s.dec, &z)
		return value.NewDecimal(&z)
	}
	if n, ok := all.int(); ok && !s.doubles {
		return value.Int64Of(n)
	}
	return value.DoubleOf(all.float())
}

// State returns the sum as a value that Join adds to another sum without a loss.
func (s *Sum) State() value.Value {
	dec := value.NullValue()
	if s.dec != nil {
		dec = value.NewDecimal(s.dec)
	}
	return value.MakeArray([]value.Value{value.Int64Of(s.ints), value.DoubleOf(s.wide.hi), value.DoubleOf(s.wide.lo),
		value.DoubleOf(s.wide.plain), value.BoolOf(s.doubles), dec})
}

// Join adds the state of another sum. ok is false if it isn't one.
func (s *Sum) Join(state value.Value) (ok bool) {
	vs := value.Elements(state)
	if len(vs) != 6 {
		return false
	}
	s.AddInt(vs[0].Int())
	plain := s.wide.plain + vs[3].Float()
	s.wide.add(vs[1].Float())
	s.wide.add(vs[2].Float())
	s.wide.plain = plain
	s.doubles = s.doubles || vs[4].Bool()
	s.Add(vs[5])
	return true
}

// pair is a sum of doubles with twice their precision: hi is the sum as a double, and lo what that leaves out.
type pair struct {
	hi, lo float64
	plain  float64 // the sum without that, which is what counts after an infinity or NaN
}

func (p *pair) add(x float64) {
	p.plain += x
	sum := p.hi + x // and what rounding takes from it, by Knuth's two-sum
	part := sum - p.hi
	lost := (p.hi - (sum - part)) + (x - part)
	lo := p.lo + lost
	p.hi = sum + lo
	p.lo = lo - (p.hi - sum)
}

// addInt adds a whole number, in two parts that doubles hold exactly.
func (p *pair) addInt(x int64) {
	low := x & (1<<32 - 1)
	p.add(float64(x - low))
	p.add(float64(low))
}

func (p *pair) float() float64 {
	if math.IsNaN(p.hi) || math.IsInf(p.hi, 0) {
		return p.plain
	}
	return p.hi
}

// int returns the sum of whole numbers, if an int64 can hold it.
func (p *pair) int() (n int64, ok bool) {
	const most = 1 << 63
	switch {
	case p.hi == most && p.lo < 0: // in doubles the greatest int64 is 2^63
		return math.MaxInt64 + int64(p.lo) + 1, true
	case !(p.hi >= -most && p.hi < most):
		return 0, false
	}
	return int64(p.hi) + int64(p.lo), true
}

// exact makes d all digits of a double that a decimal has room for.
func exact(d *bson.Decimal, f float64) {
	if f == math.Trunc(f) && math.Abs(f) < 1e34 {
		d.Parse(strconv.FormatFloat(f, 'f', 0, 64))
		return
	}
	d.Parse(strconv.FormatFloat(f, 'e', bson.DecimalDigits-1, 64))
	d.Reduce()
}
