package funcs

import (
	"math"

	"github.com/orrerydb/orrery/core/value"
)

// init registers the mathematical functions. Numbers are IEEE doubles. A result that isn't a finite number is
// undefined.
func init() {
	f1 := func(name string, fn func(float64) float64) *Func {
		return &Func{Name: name, Types: "n", Eval: func(_ *Context, a []value.Value) value.Value {
			return Num(fn(a[0].Float()))
		}}
	}
	register(
		f1("ABS", math.Abs), f1("ACOS", math.Acos), f1("ASIN", math.Asin), f1("ATAN", math.Atan),
		f1("CEILING", math.Ceil),
		f1("COS", math.Cos), f1("COT", func(x float64) float64 { return 1 / math.Tan(x) }),
		f1("DEGREES", func(x float64) float64 { return x * 180 / math.Pi }), f1("EXP", math.Exp),
		f1("FLOOR", math.Floor),
		f1("LOG10", log10), f1("RADIANS", func(x float64) float64 { return x * math.Pi / 180 }),
		f1("SIGN", sign), f1("SIN", math.Sin), f1("SQRT", math.Sqrt),
		f1("SQUARE", func(x float64) float64 { return x * x }),
		f1("TAN", math.Tan), f1("TRUNC", math.Trunc),
		&Func{Name: "ATN2", Types: "nn", Eval: func(_ *Context, a []value.Value) value.Value {
			return Num(math.Atan2(a[0].Float(), a[1].Float()))
		}},
		&Func{Name: "LOG", Types: "n?n", Eval: func(_ *Context, a []value.Value) value.Value {
			if len(a) == 2 {
				return Num(math.Log(a[0].Float()) / math.Log(a[1].Float()))
			}
			return Num(math.Log(a[0].Float()))
		}},
		&Func{Name: "PI", Types: "", Eval: func(*Context, []value.Value) value.Value {
			return value.DoubleOf(math.Pi)
		}},
		&Func{Name: "POWER", Types: "nn", Eval: func(_ *Context, a []value.Value) value.Value {
			return Num(math.Pow(a[0].Float(), a[1].Float()))
		}},
		&Func{Name: "RAND", Types: "", Volatile: true, Eval: func(c *Context, _ []value.Value) value.Value {
			return value.DoubleOf(c.Random())
		}},
		&Func{Name: "ROUND", Types: "n?n", Eval: round},
		&Func{Name: "NumberBin", Types: "n?n", Eval: func(_ *Context, a []value.Value) value.Value {
			bin := 1.0
			if len(a) == 2 {
				bin = a[1].Float()
			}
			if bin == 0 {
				return value.Value{}
			}
			return Num(math.Floor(a[0].Float()/bin) * bin)
		}},
	)
	intFuncs()
}

// log10 returns the decimal logarithm. It is exact when x is the double nearest to a power of ten.
func log10(x float64) float64 {
	l := math.Log10(x)
	if n := math.Round(l); math.Abs(l-n) < 1e-9 && math.Pow10(int(n)) == x {
		return n
	}
	return l
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// round rounds to an optional number of decimals. Halves are rounded away from zero.
func round(_ *Context, a []value.Value) value.Value {
	x := a[0].Float()
	if len(a) == 1 {
		return Num(math.Round(x))
	}
	digits := a[1].Float()
	if digits != math.Trunc(digits) || math.Abs(digits) > 300 {
		return value.Value{}
	}
	scale := math.Pow(10, digits)
	if scaled := math.Round(x * scale); !math.IsInf(scaled, 0) {
		return Num(scaled / scale)
	}
	return Num(x)
}

// intFuncs registers the 64-bit integer functions. An argument that isn't a whole number of 64 bits gives undefined.
func intFuncs() {
	i2 := func(fn func(x, y int64) (int64, bool)) func(*Context, []value.Value) value.Value {
		return func(_ *Context, a []value.Value) value.Value {
			x, ok1 := toInt64(a[0])
			y, ok2 := toInt64(a[1])
			if !ok1 || !ok2 {
				return value.Value{}
			}
			if r, ok := fn(x, y); ok {
				return value.IntOf(r)
			}
			return value.Value{}
		}
	}
	for _, e := range []struct {
		names []string
		fn    func(x, y int64) (int64, bool)
	}{
		{[]string{"IntAdd"}, func(x, y int64) (int64, bool) { return x + y, true }},
		{[]string{"IntSub"}, func(x, y int64) (int64, bool) { return x - y, true }},
		{[]string{"IntMul"}, func(x, y int64) (int64, bool) { return x * y, true }},
		{[]string{"IntDiv"}, func(x, y int64) (int64, bool) {
			if y == 0 {
				return 0, false
			}
			return x / y, true
		}},
		{[]string{"IntMod"}, func(x, y int64) (int64, bool) {
			if y == 0 {
				return 0, false
			}
			return x % y, true
		}},
		{[]string{"IntBitAnd", "IntBitwiseAnd"}, func(x, y int64) (int64, bool) { return x & y, true }},
		{[]string{"IntBitOr", "IntBitwiseOr"}, func(x, y int64) (int64, bool) { return x | y, true }},
		{[]string{"IntBitXor", "IntBitwiseXor"}, func(x, y int64) (int64, bool) { return x ^ y, true }},
		{[]string{"IntBitLeftShift", "IntBitwiseLeftShift"}, func(x, y int64) (int64, bool) {
			return x << uint64(y&63), true
		}},
		{[]string{"IntBitRightShift", "IntBitwiseRightShift"}, func(x, y int64) (int64, bool) {
			return x >> uint64(y&63), true
		}},
	} {
		for _, n := range e.names {
			register(&Func{Name: n, Types: "nn", Eval: i2(e.fn)})
		}
	}
	for _, n := range []string{"IntBitNot", "IntBitwiseNot"} {
		register(&Func{Name: n, Types: "n", Eval: func(_ *Context, a []value.Value) value.Value {
			if x, ok := toInt64(a[0]); ok {
				return value.IntOf(^x)
			}
			return value.Value{}
		}})
	}
}

// toInt64 returns v as a whole number of 64 bits.
func toInt64(v value.Value) (int64, bool) {
	switch v.Kind() {
	case value.Int32, value.Int64:
		return v.Int(), true
	case value.Double:
		f := v.Float()
		if f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63 {
			return int64(f), true
		}
	}
	return 0, false
}

// ToInt returns v as an int when it is a whole number that fits.
func ToInt(v value.Value) (int, bool) {
	n, ok := toInt64(v)
	return int(n), ok
}
