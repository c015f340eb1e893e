package expr

import (
	"math"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

var arithmeticOps = map[string]operator{
	"$abs": nullUnary(func(v value.Value) (value.Value, error) {
		if !v.IsNumber() {
			return v, numericOnly("$abs", v)
		}
		r, ok := num.Abs(v)
		if !ok {
			return v, merr.New(28680, "can't take $abs of long long min")
		}
		return r, nil
	}),
	"$add":      variadic(add),
	"$ceil":     rounding("$ceil", num.Ceil),
	"$divide":   fixed(2, divide),
	"$exp":      decimal((*bson.Decimal).Exp, floating("$exp", math.Exp)),
	"$floor":    rounding("$floor", num.Floor),
	"$ln":       logarithm("$ln", 28766, math.Log, (*bson.Decimal).Ln),
	"$log":      fixed(2, logBase),
	"$log10":    logarithm("$log10", 28761, math.Log10, (*bson.Decimal).Log10),
	"$mod":      fixed(2, mod),
	"$multiply": variadic(multiply),
	"$pow":      fixed(2, pow),
	"$rand": ranged(0, 1, func(e *Env, _ []value.Value) (value.Value, error) {
		return value.DoubleOf(e.Random()), nil
	}),
	"$round":    ranged(1, 2, roundTo("$round", num.HalfEven)),
	"$sqrt":     sqrt(),
	"$subtract": fixed(2, subtract),
	"$trunc":    ranged(1, 2, roundTo("$trunc", num.Trunc)),

	"$acos":             bounded("$acos", math.Acos, -1, 1, "[-1,1]"),
	"$acosh":            bounded("$acosh", math.Acosh, 1, math.Inf(1), "[1,inf]"),
	"$asin":             bounded("$asin", math.Asin, -1, 1, "[-1,1]"),
	"$asinh":            floating("$asinh", math.Asinh),
	"$atan":             floating("$atan", math.Atan),
	"$atanh":            bounded("$atanh", math.Atanh, -1, 1, "[-1,1]"),
	"$cos":              bounded("$cos", math.Cos, -math.MaxFloat64, math.MaxFloat64, "(-inf,inf)"),
	"$cosh":             floating("$cosh", math.Cosh),
	"$sin":              bounded("$sin", math.Sin, -math.MaxFloat64, math.MaxFloat64, "(-inf,inf)"),
	"$sinh":             floating("$sinh", math.Sinh),
	"$tan":              bounded("$tan", math.Tan, -math.MaxFloat64, math.MaxFloat64, "(-inf,inf)"),
	"$tanh":             floating("$tanh", math.Tanh),
	"$degreesToRadians": floating("$degreesToRadians", func(f float64) float64 { return f * (math.Pi / 180) }),
	"$radiansToDegrees": floating("$radiansToDegrees", func(f float64) float64 { return f * (180 / math.Pi) }),
	"$atan2": fixed(2, func(_ *Env, a []value.Value) (value.Value, error) {
		code := int32(51044)
		if a[0].IsNumber() {
			code = 51045
		}
		return twoNumbers("$atan2", code, a, func(x, y value.Value) (value.Value, error) {
			r := value.DoubleOf(math.Atan2(num.ToFloat(x), num.ToFloat(y)))
			if x.Kind() == value.Decimal || y.Kind() == value.Decimal {
				return num.ToDecimal(r), nil
			}
			return r, nil
		})
	}),

	"$bitAnd": variadic(bitwise("$bitAnd", -1, func(x, y int64) int64 { return x & y })),
	"$bitOr":  variadic(bitwise("$bitOr", 0, func(x, y int64) int64 { return x | y })),
	"$bitXor": variadic(bitwise("$bitXor", 0, func(x, y int64) int64 { return x ^ y })),
	"$bitNot": nullUnary(func(v value.Value) (value.Value, error) {
		switch v.Kind() {
		case value.Int32:
			return value.Int32Of(^int32(v.Int())), nil
		case value.Int64:
			return value.Int64Of(^v.Int()), nil
		}
		return v, merr.New(merr.TypeMismatch, "$bitNot only supports int and long, not: %s.", TypeName(v))
	}),
}

func numericOnly(name string, v value.Value) error {
	return merr.New(28765, "%s only supports numeric types, not %s", name, TypeName(v))
}

func rounding(name string, mode int) operator {
	return nullUnary(func(v value.Value) (value.Value, error) {
		if !v.IsNumber() {
			return v, numericOnly(name, v)
		}
		return num.Integral(v, mode, 0), nil
	})
}

//go:noinline // see named
func floating(name string, fn func(float64) float64) operator {
	return nullUnary(func(v value.Value) (value.Value, error) {
		if !v.IsNumber() {
			return v, numericOnly(name, v)
		}
		r := value.DoubleOf(fn(num.ToFloat(v)))
		if v.Kind() == value.Decimal {
			return num.ToDecimal(r), nil
		}
		return r, nil
	})
}

// bounded is floating for a function of the numbers from lo to hi, which messages show as shown.
func bounded(name string, fn func(float64) float64, lo, hi float64, shown string) operator {
	f := floating(name, fn)
	return nullUnary(func(v value.Value) (value.Value, error) {
		if x := num.ToFloat(v); v.IsNumber() && (x < lo || x > hi) {
			return v, merr.New(50989, "cannot apply %s to %s, value must be in %s", name, doubleText(x),
				shown)
		}
		return f.fn(nil, []value.Value{v})
	})
}

// decimal is an operator that computes decimals with all their digits, and other numbers as f does.
func decimal(fn func(z, x *bson.Decimal), f operator) operator {
	return nullUnary(func(v value.Value) (value.Value, error) {
		if v.Kind() == value.Decimal {
			return num.Decimal(fn, v), nil
		}
		return f.fn(nil, []value.Value{v})
	})
}

func logarithm(name string, code int32, fn func(float64) float64, dec func(z, x *bson.Decimal)) operator {
	f := decimal(dec, floating(name, fn))
	return nullUnary(func(v value.Value) (value.Value, error) {
		if v.IsNumber() && num.Sign(v) <= 0 && !num.IsNaN(v) {
			return v, merr.New(code, "%s's argument must be a positive number, but is %v", name, num.ToFloat(v))
		}
		return f.fn(nil, []value.Value{v})
	})
}

func sqrt() operator {
	f := decimal((*bson.Decimal).Sqrt, floating("$sqrt", math.Sqrt))
	return nullUnary(func(v value.Value) (value.Value, error) {
		if v.IsNumber() && num.Sign(v) < 0 {
			return v, merr.New(28714, "$sqrt's argument must be greater than or equal to 0")
		}
		return f.fn(nil, []value.Value{v})
	})
}

//go:noinline // see named
func roundTo(name string, mode int) func(*Env, []value.Value) (value.Value, error) {
	return func(_ *Env, a []value.Value) (value.Value, error) {
		places := int64(0)
		if len(a) == 2 {
			if nullish(a[1]) {
				return value.NullValue(), nil
			}
			var ok bool
			if places, ok = num.ToInt64(a[1], false); !ok {
				return a[1], merr.New(51082, "precision argument to  %s must be a integral value", name)
			}
			if places < -20 || places > 100 {
				return a[1], merr.New(51083, "cannot apply %s with precision value %d value must be in [-20, 100]",
					name, places)
			}
		}
		if nullish(a[0]) {
			return value.NullValue(), nil
		}
		if !a[0].IsNumber() {
			return a[0], merr.New(51081, "%s only supports numeric types, not %s", name, TypeName(a[0]))
		}
		if a[0].Kind() == value.Int64 && places < 0 {
			d := num.Integral(num.ToDecimal(a[0]), mode, int(places))
			if _, ok := num.ToInt64(d, false); !ok {
				return d, merr.New(51080, "invalid conversion from Decimal128 result in %s resulting from arguments: "+
					"[%d, %d]", name, a[0].Int(), places)
			}
		}
		return num.Integral(a[0], mode, int(places)), nil
	}
}

// add adds numbers, one after the other. One of the arguments may be a date; the numbers behind it, and the sum of
// those before it, are then milliseconds.
func add(_ *Env, a []value.Value) (value.Value, error) {
	var date value.Value
	sum, long := value.Int32Of(0), false
	for _, v := range a {
		switch {
		case nullish(v):
			return value.NullValue(), nil
		case v.Kind() == value.Date && date.IsDefined():
			return v, merr.New(16612, "only one date allowed in an $add expression")
		case v.Kind() != value.Date && !v.IsNumber():
			return v, merr.New(merr.TypeMismatch, "$add only supports numeric or date types, not %s", TypeName(v))
		case v.Kind() == value.Date:
			date, v = v, sum
		case !date.IsDefined():
			sum, long = num.Widen(num.Add, sum, v), long || v.Kind() == value.Int64
			continue
		}
		ms, err := wholeMillis(v)
		if err != nil {
			return v, err
		}
		if date, err = addMillis(date, ms); err != nil {
			return v, err
		}
	}
	if date.IsDefined() {
		return date, nil
	}
	return narrow(sum, long), nil
}

// wholeMillis rounds a number of milliseconds: a double that is half of one away from 0, a decimal to an even number.
func wholeMillis(v value.Value) (int64, error) {
	if v.Kind() == value.Double {
		v = value.DoubleOf(math.Round(v.Float()))
	}
	ms, ok := num.ToInt64(num.Integral(v, num.HalfEven, 0), true)
	if !ok {
		return 0, merr.New(merr.Overflow, "date overflow")
	}
	return ms, nil
}

func addMillis(date value.Value, ms int64) (value.Value, error) {
	r := date.DateMS() + ms
	if (r > date.DateMS()) != (ms > 0) && ms != 0 {
		return date, merr.New(merr.Overflow, "date overflow")
	}
	return value.DateOf(r, date.Ticks()), nil
}

func subtract(_ *Env, a []value.Value) (value.Value, error) {
	x, y := a[0], a[1]
	switch {
	case nullish(x) || nullish(y):
		return value.NullValue(), nil
	case x.IsNumber() && y.IsNumber():
		return num.Widen(num.Sub, x, y), nil
	case x.Kind() == value.Date && y.Kind() == value.Date:
		return value.Int64Of(x.DateMS() - y.DateMS()), nil
	case x.Kind() == value.Date && y.IsNumber():
		ms, err := wholeMillis(y)
		if err != nil {
			return y, err
		}
		return addMillis(x, -ms)
	}
	return x, merr.New(merr.TypeMismatch, "can't $subtract %s from %s", TypeName(y), TypeName(x))
}

func multiply(_ *Env, a []value.Value) (value.Value, error) {
	r, long := value.Int32Of(1), false
	for _, v := range a {
		if nullish(v) {
			return value.NullValue(), nil
		}
		if !v.IsNumber() {
			return v, merr.New(merr.TypeMismatch, "$multiply only supports numeric types, not %s", TypeName(v))
		}
		r, long = num.Widen(num.Mul, r, v), long || v.Kind() == value.Int64
	}
	return narrow(r, long), nil
}

// twoNumbers calls fn with two numbers. Code is that of other types.
func twoNumbers(name string, code int32, a []value.Value, fn func(x, y value.Value) (value.Value, error)) (value.Value,
	error) {
	if nullish(a[0]) || nullish(a[1]) {
		return value.NullValue(), nil
	}
	if !a[0].IsNumber() || !a[1].IsNumber() {
		return a[0], merr.New(code, "%s only supports numeric types, not %s and %s", name, TypeName(a[0]),
			TypeName(a[1]))
	}
	return fn(a[0], a[1])
}

// twoNamed is twoNumbers with a message, and its code, for each of the two.
func twoNamed(name string, code int32, first, second string, a []value.Value,
	fn func(x, y value.Value) (value.Value, error)) (value.Value, error) {
	if nullish(a[0]) || nullish(a[1]) {
		return value.NullValue(), nil
	}
	for i, what := range []string{first, second} {
		if !a[i].IsNumber() {
			return a[i], merr.New(code+int32(i), "%s's %s must be numeric, not %s", name, what, TypeName(a[i]))
		}
	}
	return fn(a[0], a[1])
}

func divide(_ *Env, a []value.Value) (value.Value, error) {
	return twoNumbers("$divide", merr.TypeMismatch, a, func(x, y value.Value) (value.Value, error) {
		if isZero(y) {
			return y, merr.New(merr.BadValue, "can't $divide by zero")
		}
		return num.Div(x, y), nil
	})
}

// mod divides a whole number by a double that is whole as whole numbers, in 7.0.
func mod(e *Env, a []value.Value) (value.Value, error) {
	return twoNumbers("$mod", 16611, a, func(x, y value.Value) (value.Value, error) {
		if isZero(y) {
			return y, merr.New(16610, "can't $mod by zero")
		}
		if n, ok := num.ToInt64(y, false); ok && y.Kind() == value.Double && n == int64(int32(n)) && !e.Later {
			if x.Kind() == value.Int32 || x.Kind() == value.Int64 {
				y = value.Int32Of(int32(n))
			}
		}
		return num.Mod(x, y), nil
	})
}

func logBase(_ *Env, a []value.Value) (value.Value, error) {
	return twoNamed("$log", 28756, "argument", "base", a, func(x, y value.Value) (value.Value, error) {
		f, b := num.ToFloat(x), num.ToFloat(y)
		if num.Sign(x) <= 0 && !num.IsNaN(x) {
			return x, merr.New(28758, "$log's argument must be a positive number, but is %v", f)
		}
		if (num.Sign(y) <= 0 || value.CompareBSON(y, value.Int32Of(1)) == 0) && !num.IsNaN(y) {
			return y, merr.New(28759, "$log's base must be a positive number not equal to 1, but is %v", b)
		}
		if x.Kind() == value.Decimal || y.Kind() == value.Decimal {
			return num.Decimals((*bson.Decimal).Log, x, y), nil
		}
		return value.DoubleOf(math.Log(f) / math.Log(b)), nil
	})
}

func pow(_ *Env, a []value.Value) (value.Value, error) {
	return twoNamed("$pow", 28762, "base", "exponent", a, func(x, y value.Value) (value.Value, error) {
		bx, by := x.Kind(), y.Kind()
		if isZero(x) && num.Sign(y) < 0 {
			return x, merr.New(28764, "$pow cannot take a base of 0 and a negative exponent")
		}
		if bx == value.Decimal || by == value.Decimal {
			return num.Decimals((*bson.Decimal).Pow, x, y), nil
		}
		f := math.Pow(num.ToFloat(x), num.ToFloat(y))
		if bx == value.Double || by == value.Double {
			return value.DoubleOf(f), nil
		}
		n := y.Int()
		switch {
		case x.Int() == -1:
			n &= 1
		case x.Int() == 0 || x.Int() == 1:
			n = min(max(n, -n), 1)
		case n < 0 || n > 64:
			return value.DoubleOf(f), nil
		}
		r := value.Value(value.Int32Of(1))
		if bx == value.Int64 || by == value.Int64 {
			r = value.Int64Of(1)
		}
		for ; n > 0; n-- {
			var ok bool
			if r, ok = num.Do(num.Mul, r, x); !ok {
				return value.DoubleOf(f), nil
			}
		}
		return r, nil
	})
}

//go:noinline // see named
func bitwise(name string, start int64, fn func(x, y int64) int64) func(*Env, []value.Value) (value.Value, error) {
	return func(_ *Env, a []value.Value) (value.Value, error) {
		r, long := start, false
		for _, v := range a {
			switch v.Kind() {
			case value.Undefined, value.Null:
				return value.NullValue(), nil
			case value.Int64:
				long = true
			case value.Int32:
			default:
				return v, merr.New(merr.TypeMismatch, "%s only supports int and long operands.", name)
			}
			r = fn(r, v.Int())
		}
		if long {
			return value.Int64Of(r), nil
		}
		return value.Int32Of(int32(r)), nil
	}
}
