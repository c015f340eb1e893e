package agg

import (
	"math"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// $derivative and $integral treat the documents of a window as points (x, y): x is the sort key and y the input. With a
// unit the x are dates, and the result is for that unit.
//
// Example: sortBy {t: 1}, documents {t: 0, y: 0}, {t: 2, y: 6}, {t: 4, y: 8}. Over the whole partition the derivative
// is (8 - 0) / (4 - 0) = 2, and the integral (0 + 6) / 2 * 2 + (6 + 8) / 2 * 2 = 20.
type curve struct {
	op   string
	x    expr.Expr
	unit float64 // milliseconds; 0: the sort keys are numbers
	b    windowBounds
}

// unitMS are the units whose length doesn't vary.
var unitMS = map[string]float64{"week": 7 * 86400e3, "day": 86400e3, "hour": 3600e3, "minute": 60e3, "second": 1e3,
	"millisecond": 1}

// curveOf compiles the common parts of $derivative and $integral.
func (w *windowSpec) curveOf(c *compiler, op string, arg, window value.Value) (k curve, err error) {
	k.op = op
	if arg.Kind() != value.Object {
		return k, merr.New(merr.FailedToParse, "%s expects an object, but got a %s: %s", op, expr.TypeName(arg),
			merr.Show(arg))
	}
	for it := arg.Iter(); it.Next(); {
		switch v := it.Value(); string(it.Key()) {
		case "input":
			if k.x, err = expr.Compile(v, c.o.Scope); err != nil {
				return k, err
			}
		case "unit":
			if v.Kind() != value.String {
				return k, merr.New(merr.FailedToParse, "'unit' must be a string, but got %s", expr.TypeName(v))
			}
			unit, err := expr.Unit("unit", v)
			if err != nil {
				return k, err
			}
			if k.unit = unitMS[unit]; k.unit == 0 {
				return k, merr.New(5490710, "unit must be 'week' or smaller")
			}
		default:
			return k, merr.New(merr.FailedToParse, "%s got unexpected argument: %s", op, it.Key())
		}
	}
	if k.x == nil {
		return k, merr.New(merr.FailedToParse, "%s requires an 'input' expression", op)
	}
	if err := w.oneSort(op); err != nil {
		return k, err
	}
	if op == "$derivative" && !window.IsDefined() {
		return k, merr.New(merr.FailedToParse, "$derivative requires explicit window bounds")
	}
	k.b, err = w.bounds(window)
	return k, err
}

// oneSort checks that the stage sorts by one field.
func (w *windowSpec) oneSort(op string) error {
	switch len(w.sortBy) {
	case 0:
		return merr.New(merr.FailedToParse, "%s requires a sortBy", op)
	case 1:
		return nil
	}
	return merr.New(merr.FailedToParse, "%s requires a non-compound sortBy", op)
}

// axis returns the sort key of document i as a number.
func (k *curve) axis(p *partition, i int, dateCode, unitCode, numberCode int32) (float64, error) {
	v := p.keys[i][0]
	switch {
	case k.unit != 0 && v.Kind() != value.Date:
		return 0, merr.New(dateCode, "%s with 'unit' expects the sortBy field to be a Date", k.op)
	case k.unit == 0 && v.Kind() == value.Date:
		return 0, merr.New(unitCode, "%s where the sortBy is a Date requires an 'unit'", k.op)
	case k.unit == 0 && !v.IsNumber():
		return 0, merr.New(numberCode, "%s (with no 'unit') expects the sortBy field to be numeric", k.op)
	}
	return axisValue(v), nil
}

func derivative(w *windowSpec, c *compiler, op string, arg, window value.Value) (windowFunc, error) {
	k, err := w.curveOf(c, op, arg, window)
	if err != nil {
		return nil, err
	}
	return func(p *partition) ([]value.Value, error) {
		vs, err := p.values(k.x)
		if err != nil {
			return nil, err
		}
		out := make([]value.Value, len(vs))
		for i := range out {
			lo, hi, err := k.b.of(p, i)
			if err != nil {
				return nil, err
			}
			if out[i] = value.NullValue(); lo < hi {
				if out[i], err = k.slope(p, vs, lo, hi-1); err != nil {
					return nil, err
				}
			}
		}
		return out, nil
	}, nil
}

// slope returns the derivative between two documents, null when their sort keys are equal.
func (k *curve) slope(p *partition, vs []value.Value, left, right int) (value.Value, error) {
	x0, err := k.axis(p, left, 5624900, 5624901, 5624902)
	if err != nil {
		return value.Undef(), err
	}
	x1, err := k.axis(p, right, 5624900, 5624901, 5624902)
	if err != nil {
		return value.Undef(), err
	}
	a, b := vs[left], vs[right]
	switch {
	case nullish(a) || nullish(b):
		return a, merr.New(5624903, "$derivative input must not be null or missing")
	case a.Kind() == value.Date && b.Kind() == value.Date:
		a, b = value.Int64Of(a.DateMS()), value.Int64Of(b.DateMS())
	case !a.IsNumber() || !b.IsNumber():
		return a, merr.New(merr.TypeMismatch, "can't $subtract %s from %s", expr.TypeName(a), expr.TypeName(b))
	}
	run := x1 - x0
	if run == 0 {
		return value.NullValue(), nil
	}
	if k.unit != 0 {
		run /= k.unit
	}
	return num.Div(num.Widen(num.Sub, b, a), value.DoubleOf(run)), nil
}

func integral(w *windowSpec, c *compiler, op string, arg, window value.Value) (windowFunc, error) {
	k, err := w.curveOf(c, op, arg, window)
	if err != nil {
		return nil, err
	}
	return func(p *partition) ([]value.Value, error) {
		vs, err := p.values(k.x)
		if err != nil {
			return nil, err
		}
		rows := make([]value.Value, len(vs))
		for i, v := range vs {
			x, err := k.axis(p, i, 5423901, 5423902, 5423902)
			if err != nil {
				return nil, err
			}
			if !v.IsNumber() {
				return nil, merr.New(5423900, "The input value of %s must be numeric", op)
			}
			rows[i] = value.MakeArray([]value.Value{value.DoubleOf(x), v})
		}
		unit := max(k.unit, 1)
		return p.fold(rows, func() expr.Accumulator { return &areaAcc{unit: unit} }, k.b)
	}, nil
}

// areaAcc adds up the areas below the lines between points [x, y]. Only windows use it, so its state is never stored.
type areaAcc struct {
	unit    float64
	sum     float64
	x, y    float64
	any     bool
	decimal bool
}

// Add implements expr.Accumulator.
func (a *areaAcc) Add(v value.Value) error {
	xy := value.Elements(v)
	x, y := xy[0].Float(), num.ToFloat(xy[1])
	a.decimal = a.decimal || xy[1].Kind() == value.Decimal
	if a.any {
		a.sum += (x - a.x) * (a.y + y) / 2
	}
	a.x, a.y, a.any = x, y, true
	return nil
}

// Result implements expr.Accumulator.
func (a *areaAcc) Result() value.Value {
	if !a.any {
		return value.NullValue()
	}
	return doubleOrDecimal(a.sum/a.unit, a.decimal)
}

// Size implements expr.Accumulator.
func (a *areaAcc) Size() int { return 64 }

// State implements expr.Accumulator.
func (a *areaAcc) State() value.Value { return value.NullValue() }

// Join implements expr.Accumulator.
func (a *areaAcc) Join(value.Value) error { return nil }

func doubleOrDecimal(f float64, decimal bool) value.Value {
	if decimal {
		return num.ToDecimal(value.DoubleOf(f))
	}
	return value.DoubleOf(f)
}

// expMovingAvg compiles $expMovingAvg. Each result is alpha times the value and 1 - alpha times the result before. For
// N documents alpha is 2 / (N + 1). A value that isn't a number changes nothing.
func expMovingAvg(w *windowSpec, c *compiler, op string, arg value.Value) (windowFunc, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(merr.FailedToParse, "%s must have exactly one argument that is an object", op)
	}
	input, n, alpha := arg.Get("input"), arg.Get("N"), arg.Get("alpha")
	if !input.IsDefined() || arg.Len() != 2 {
		return nil, merr.New(merr.FailedToParse, "%s sub object must have exactly two fields: An 'input' field, and "+
			"either an 'N' field or an 'alpha' field", op)
	}
	if len(w.sortBy) == 0 {
		return nil, merr.New(merr.FailedToParse, "%s requires an explicit 'sortBy'", op)
	}
	var share float64
	switch {
	case n.IsDefined():
		count, whole := num.ToInt64(n, false)
		if !n.IsNumber() || !whole {
			return nil, merr.New(merr.FailedToParse, "'N' field must be an integer, but found type %s. To use a "+
				"non-integer, use the 'alpha' argument instead", expr.TypeName(n))
		}
		if count <= 0 {
			return nil, merr.New(merr.FailedToParse, "'N' must be greater than zero. Got %d", count)
		}
		share = 2 / (float64(count) + 1)
	case alpha.IsDefined():
		if !alpha.IsNumber() {
			return nil, merr.New(merr.FailedToParse, "'alpha' must be a number")
		}
		if share = num.ToFloat(alpha); !(share > 0 && share < 1) {
			return nil, merr.New(merr.FailedToParse, "'alpha' must be between 0 and 1 (exclusive), found alpha: %s",
				merr.Show(alpha))
		}
	default:
		return nil, merr.New(merr.FailedToParse, "%s requires either an 'N' field or an 'alpha' field", op)
	}
	x, err := expr.Compile(input, c.o.Scope)
	if err != nil {
		return nil, err
	}
	return func(p *partition) ([]value.Value, error) {
		vs, err := p.values(x)
		if err != nil {
			return nil, err
		}
		mean, decimal, last := math.NaN(), false, value.NullValue()
		begun := false
		for i, v := range vs {
			if v.IsNumber() {
				f := num.ToFloat(v)
				if begun {
					f = f*share + mean*(1-share)
				}
				mean, begun, decimal = f, true, decimal || v.Kind() == value.Decimal
				last = doubleOrDecimal(mean, decimal)
			}
			vs[i] = last
		}
		return vs, nil
	}, nil
}

// covariance compiles $covariancePop and $covarianceSamp of two expressions.
func covariance(w *windowSpec, c *compiler, op string, arg, window value.Value) (windowFunc, error) {
	x, err := expr.Compile(arg, c.o.Scope)
	if err != nil {
		return nil, err
	}
	b, err := w.bounds(window)
	if err != nil {
		return nil, err
	}
	return func(p *partition) ([]value.Value, error) {
		vs, err := p.values(x)
		if err != nil {
			return nil, err
		}
		return p.fold(vs, func() expr.Accumulator { return &covarianceAcc{sample: op == "$covarianceSamp"} }, b)
	}, nil
}

// covarianceAcc computes a covariance in one pass. Values other than two numbers don't count. Only windows use it.
type covarianceAcc struct {
	sample  bool
	decimal bool
	n       int
	x, y    float64 // means
	c       float64 // the sum of the products of the distances from the means
}

// Add implements expr.Accumulator.
func (a *covarianceAcc) Add(v value.Value) error {
	if v.Kind() != value.Array || v.Len() != 2 {
		return nil
	}
	xy := value.Elements(v)
	if !xy[0].IsNumber() || !xy[1].IsNumber() {
		return nil
	}
	a.decimal = a.decimal || xy[0].Kind() == value.Decimal || xy[1].Kind() == value.Decimal
	x, y := num.ToFloat(xy[0]), num.ToFloat(xy[1])
	a.n++
	dx := x - a.x
	a.x += dx / float64(a.n)
	a.y += (y - a.y) / float64(a.n)
	a.c += dx * (y - a.y)
	return nil
}

// Result implements expr.Accumulator.
func (a *covarianceAcc) Result() value.Value {
	n := a.n
	if a.sample {
		n--
	}
	if n <= 0 {
		return value.NullValue()
	}
	return doubleOrDecimal(a.c/float64(n), a.decimal)
}

// Size implements expr.Accumulator.
func (a *covarianceAcc) Size() int { return 64 }

// State implements expr.Accumulator.
func (a *covarianceAcc) State() value.Value { return value.NullValue() }

// Join implements expr.Accumulator.
func (a *covarianceAcc) Join(value.Value) error { return nil }
