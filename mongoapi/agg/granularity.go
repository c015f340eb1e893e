package agg

import (
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// granularity rounds the bounds of buckets to preferred numbers: those of a series times a power of ten, or powers of
// two.
//
// Example: in the series R5, 10 16 25 40 63, the numbers above and below 30 are 40 and 25, those of 0.03 are 0.04 and
// 0.025.
type granularity struct {
	series []float64 // nil: powers of two
}

// The Renard series are those of ISO 3, the E series those of IEC 60063.
var granularities = map[string]granularity{
	"POWERSOF2": {},
	"1-2-5":     {series: []float64{10, 20, 50}},
	"R5":        {series: []float64{10, 16, 25, 40, 63}},
	"R10":       {series: []float64{100, 125, 160, 200, 250, 315, 400, 500, 630, 800}},
	"R20": {series: []float64{100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710,
		800, 900}},
	"R40": {series: []float64{100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265,
		280, 300, 315, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950}},
	"R80": {series: []float64{103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218, 230, 243, 258, 272,
		290, 307, 325, 345, 365, 387, 412, 437, 462, 487, 515, 545, 575, 615, 650, 690, 730, 775, 825, 875, 925, 975}},
	"E6":   {series: []float64{10, 15, 22, 33, 47, 68}},
	"E12":  {series: []float64{10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82}},
	"E24":  {series: eSeries24},
	"E48":  {series: eSeries(48)},
	"E96":  {series: eSeries(96)},
	"E192": {series: eSeries(192)},
}

var eSeries24 = []float64{10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82,
	91}

// eSeries returns the series with n numbers from 100 to 1000: 100 times the powers of the n-th root of ten, rounded.
// IEC 60063 has 920 where this gives 919; MongoDB has 920 in E192 too.
func eSeries(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		if out[i] = math.Round(100 * math.Pow(10, float64(i)/float64(n))); out[i] == 919 {
			out[i] = 920
		}
	}
	return out
}

func (a *autoBuckets) setGranularity(v value.Value) error {
	if v.Kind() != value.String {
		return merr.New(40261, "The $bucketAuto 'granularity' field must be a string, but found type: %s.",
			expr.TypeName(v))
	}
	g, ok := granularities[v.Str()]
	if !ok {
		return merr.New(40257, "Unknown rounding granularity '%s'", v.Str())
	}
	a.round = &g
	return nil
}

// check refuses a key that can't be rounded.
func (g *granularity) check(key value.Value) error {
	if !key.IsNumber() {
		return merr.New(40258, "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a "+
			"value with type: %s", expr.TypeName(key))
	}
	switch f := num.ToFloat(key); {
	case math.IsNaN(f):
		return merr.New(40259, "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN")
	case f < 0:
		return merr.New(40260, "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a "+
			"negative number")
	}
	return nil
}

// up returns the least preferred number above v, which is a number and not negative; 0 for 0.
func (g *granularity) up(v value.Value) value.Value { return g.of(v, g.above) }

// down returns the greatest preferred number below v; 0 for 0.
func (g *granularity) down(v value.Value) value.Value { return g.of(v, g.below) }

func (g *granularity) of(v value.Value, round func(float64) float64) value.Value {
	f := num.ToFloat(v)
	if f == 0 || math.IsInf(f, 0) {
		return v
	}
	f = round(f)
	if v.Kind() == value.Decimal {
		return num.ToDecimal(value.DoubleOf(f))
	}
	return value.DoubleOf(f)
}

func (g *granularity) above(f float64) float64 {
	if g.series == nil {
		_, exp := math.Frexp(f) // 2^(exp-1) <= f < 2^exp
		return math.Ldexp(1, exp)
	}
	times := 1.0
	for f >= g.series[len(g.series)-1]*times {
		times *= 10
	}
	for f < g.series[0]*times {
		least := g.series[0] * times
		if times /= 10; f >= g.series[len(g.series)-1]*times {
			return least
		}
	}
	i, _ := slices.BinarySearchFunc(g.series, f, func(s, f float64) int {
		if s*times <= f {
			return -1
		}
		return 1
	})
	return g.series[i] * times
}

func (g *granularity) below(f float64) float64 {
	if g.series == nil {
		frac, exp := math.Frexp(f)
		if frac == 0.5 {
			exp--
		}
		return math.Ldexp(1, exp-1)
	}
	times := 1.0
	for f <= g.series[0]*times {
		times /= 10
	}
	for f > g.series[len(g.series)-1]*times {
		greatest := g.series[len(g.series)-1] * times
		if times *= 10; f <= g.series[0]*times {
			return greatest
		}
	}
	i, _ := slices.BinarySearchFunc(g.series, f, func(s, f float64) int {
		if s*times < f {
			return -1
		}
		return 1
	})
	return g.series[i-1] * times
}
