package agg

import (
	"math"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// windowFunctions is the registry of the functions that only $setWindowFields has. They see the whole partition.
var windowFunctions map[string]makeWindow

// makeWindow compiles the window function op with its argument.
type makeWindow func(w *windowSpec, c *compiler, op string, arg value.Value) (windowFunc, error)

// windowed is the registry of the window functions that aren't accumulators and have a window.
var windowed map[string]func(w *windowSpec, c *compiler, op string, arg, window value.Value) (windowFunc, error)

func init() {
	windowFunctions = map[string]makeWindow{
		"$denseRank":      rank(func(_, before int, next bool) int { return before + b2i(next) }),
		"$documentNumber": rank(func(i, _ int, _ bool) int { return i + 1 }),
		"$rank": rank(func(i, before int, next bool) int {
			if next {
				return i + 1
			}
			return before
		}),
		"$shift":      shiftBy,
		"$locf":       locf,
		"$linearFill": linearFill,

		"$expMovingAvg": expMovingAvg,
	}
	windowed = map[string]func(w *windowSpec, c *compiler, op string, arg, window value.Value) (windowFunc, error){
		"$covariancePop":  covariance,
		"$covarianceSamp": covariance,
		"$derivative":     derivative,
		"$integral":       integral,
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rank returns a function that numbers the documents. It gets the position of the document, the number of the one
// before, and whether its sort key is another than that one's.
func rank(number func(i, before int, next bool) int) makeWindow {
	return func(w *windowSpec, _ *compiler, op string, arg value.Value) (windowFunc, error) {
		if arg.Kind() != value.Object || arg.Len() != 0 {
			return nil, merr.New(5371603, "%s must be specified with '{}' as the value", op)
		}
		if len(w.sortBy) == 0 || len(w.sortBy) > 1 && op != "$documentNumber" {
			return nil, merr.New(5371602, "%s must be specified with a top level sortBy expression with exactly one "+
				"element", op)
		}
		return func(p *partition) ([]value.Value, error) {
			out := make([]value.Value, len(p.docs))
			n := 0
			for i := range out {
				n = number(i, n, i == 0 || p.o.Compare(p.keys[i-1], p.keys[i]) != 0)
				out[i] = value.IntOf(int64(n))
			}
			return out, nil
		}, nil
	}
}

// shiftBy compiles $shift, the value of the document at a distance.
func shiftBy(w *windowSpec, c *compiler, op string, arg value.Value) (windowFunc, error) {
	if len(w.sortBy) == 0 {
		return nil, merr.New(merr.FailedToParse, "'%s' requires a sortBy", op)
	}
	for it := arg.Iter(); it.Next(); {
		switch string(it.Key()) {
		case "output", "by", "default":
		default:
			return nil, merr.New(merr.FailedToParse, "Unknown argument in $shift: %s", it.Key())
		}
	}
	by, whole := num.ToInt64(arg.Get("by"), false)
	if arg.Kind() != value.Object || !arg.Get("output").IsDefined() || !whole ||
		by > math.MaxInt32 || by < math.MinInt32 {
		return nil, merr.New(merr.FailedToParse, "$shift requires 'output', and 'by' as an integer")
	}
	x, err := expr.Compile(arg.Get("output"), c.o.Scope)
	if err != nil {
		return nil, err
	}
	def := value.NullValue()
	if d := arg.Get("default"); d.IsDefined() {
		dx, err := expr.Compile(d, nil)
		if err != nil {
			return nil, err
		}
		if def, err = dx(&expr.Env{}); err != nil {
			return nil, err
		}
	}
	return func(p *partition) ([]value.Value, error) {
		vs, err := p.values(x)
		if err != nil {
			return nil, err
		}
		out := make([]value.Value, len(vs))
		for i := range vs {
			out[i] = def
			if j := i + int(by); j >= 0 && j < len(vs) {
				if out[i] = vs[j]; !out[i].IsDefined() {
					out[i] = value.NullValue()
				}
			}
		}
		return out, nil
	}, nil
}

func nullish(v value.Value) bool { return v.Kind() == value.Null || v.Kind() == value.Undefined }

// locf compiles $locf: null and missing values become the last value before them.
func locf(_ *windowSpec, c *compiler, _ string, arg value.Value) (windowFunc, error) {
	x, err := expr.Compile(arg, c.o.Scope)
	if err != nil {
		return nil, err
	}
	return func(p *partition) ([]value.Value, error) {
		vs, err := p.values(x)
		last := value.NullValue()
		for i, v := range vs {
			if !nullish(v) {
				last = v
			}
			vs[i] = last
		}
		return vs, err
	}, nil
}

// linearFill compiles $linearFill: null and missing values between two numbers are on the line between them, where the
// sort field is the other axis.
func linearFill(w *windowSpec, c *compiler, _ string, arg value.Value) (windowFunc, error) {
	if len(w.sortBy) != 1 {
		return nil, merr.New(605001, "$linearFill must be specified with a top level sortBy expression with exactly "+
			"one element")
	}
	x, err := expr.Compile(arg, c.o.Scope)
	if err != nil {
		return nil, err
	}
	return func(p *partition) ([]value.Value, error) {
		vs, err := p.values(x)
		if err != nil {
			return nil, err
		}
		return vs, p.interpolate(vs)
	}, nil
}

// interpolate fills the gaps of vs.
func (p *partition) interpolate(vs []value.Value) error {
	at := -1 // the last number
	for i, v := range vs {
		if err := p.axis(i); err != nil {
			return err
		}
		if nullish(v) {
			vs[i] = value.NullValue()
			continue
		}
		if !v.IsNumber() {
			return merr.New(merr.TypeMismatch, "Value to be filled must be numeric or nullish, but found type: %s",
				expr.TypeName(v))
		}
		if at >= 0 && at < i-1 {
			x0, x1 := axisValue(p.keys[at][0]), axisValue(p.keys[i][0])
			y0, y1 := num.ToFloat(vs[at]), num.ToFloat(v)
			for j := at + 1; j < i; j++ {
				vs[j] = value.DoubleOf(y0 + (y1-y0)*((axisValue(p.keys[j][0])-x0)/(x1-x0)))
			}
		}
		at = i
	}
	return nil
}

// axis checks the sort key of document i: a number or a date, and another than the one before.
func (p *partition) axis(i int) error {
	k := p.keys[i][0]
	if !k.IsNumber() && k.Kind() != value.Date {
		return merr.New(605002, "Each sort value in $linearFill must be a number or a date, but found type: %s",
			expr.TypeName(k))
	}
	if i > 0 && value.CompareBSON(k, p.keys[i-1][0]) == 0 {
		return merr.New(6050106, "There can be no repeated values in the sort field")
	}
	return nil
}

// axisValue returns a number or the milliseconds of a date.
func axisValue(v value.Value) float64 {
	if v.Kind() == value.Date {
		return float64(v.DateMS())
	}
	return num.ToFloat(v)
}
