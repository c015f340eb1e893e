package expr

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// $percentile and $median, as accumulators and as expressions. The method "approximate" permits any answer near the
// percentile; here it is the exact one: of n sorted numbers the one with index ceil(p * n) - 1. Values that aren't
// numbers don't count.
//
// Example: the percentiles 0.5 and 0.9 of 1, 2, 3, 4 are the numbers with index 1 and 3: 2 and 4.

// Quantile is a compiled $percentile or $median.
type Quantile struct {
	Input value.Value // the expression for the numbers
	ps    []float64
	one   bool // $median: one number instead of an array
}

// CompileQuantile compiles the argument of $percentile or $median. notObject is the code of the error for an argument
// of another type: the expression and the accumulator have different ones.
func CompileQuantile(op string, arg value.Value, s *Scope, notObject int32) (*Quantile, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(notObject, "specification must be an object; found %s: %s", op, merr.Show(arg))
	}
	q := &Quantile{one: op == "$median", ps: []float64{0.5}}
	var method, p value.Value
	for it := arg.Iter(); it.Next(); {
		switch key := string(it.Key()); {
		case key == "input":
			q.Input = it.Value()
		case key == "method":
			method = it.Value()
		case key == "p" && !q.one:
			p = it.Value()
		default:
			return nil, merr.New(merr.UnknownField, "BSON field '%s.%s' is an unknown field.", op, key)
		}
	}
	for _, f := range []struct {
		name string
		v    value.Value
	}{{"input", q.Input}, {"p", p}, {"method", method}} {
		if !f.v.IsDefined() && (f.name != "p" || !q.one) {
			return nil, merr.New(merr.MissingField, "BSON field '%s.%s' is missing but a required field", op, f.name)
		}
	}
	if method.Kind() != value.String {
		return nil, merr.New(merr.TypeMismatch, "BSON field '%s.method' is the wrong type '%s', expected type 'string'",
			op, TypeName(method))
	}
	if method.Str() != "approximate" {
		return nil, merr.New(merr.BadValue, "Currently only 'approximate' can be used as percentile 'method'.")
	}
	if q.one {
		return q, nil
	}
	var err error
	q.ps, err = fractions(p, s)
	return q, err
}

// fractions returns the argument p of $percentile.
func fractions(p value.Value, s *Scope) ([]float64, error) {
	x, err := Compile(p, s)
	if err != nil {
		return nil, err
	}
	v, err := x(&Env{})
	if err != nil {
		return nil, err
	}
	const text = "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s"
	if v.Kind() != value.Array || v.Len() == 0 {
		return nil, merr.New(7750301, text, merr.Show(v))
	}
	var ps []float64
	for it := v.Iter(); it.Next(); {
		if !it.Value().IsNumber() {
			return nil, merr.New(7750302, text, merr.Show(it.Value()))
		}
		f := num.ToFloat(it.Value())
		if !(f >= 0 && f <= 1) {
			return nil, merr.New(7750303, text, merr.Show(it.Value()))
		}
		ps = append(ps, f)
	}
	return ps, nil
}

// New returns an accumulator of the numbers.
func (q *Quantile) New() Accumulator { return &quantileAcc{q: q} }

// quantileAcc holds the numbers. The first of them, up to sorted, are in order.
type quantileAcc struct {
	q      *Quantile
	vs     []float64
	sorted int
}

// Add implements Accumulator.
func (a *quantileAcc) Add(v value.Value) error {
	if !v.IsNumber() {
		return nil
	}
	a.vs = append(a.vs, num.ToFloat(v))
	if 8*len(a.vs) > accLimit {
		return tooMuch("$percentile")
	}
	return nil
}

// Result implements Accumulator.
func (a *quantileAcc) Result() value.Value {
	if a.sorted < len(a.vs) {
		slices.Sort(a.vs) // the beginning is sorted, so it is fast after a few new numbers
		a.sorted = len(a.vs)
	}
	out := make([]value.Value, len(a.q.ps))
	for i, p := range a.q.ps {
		out[i] = value.NullValue()
		if n := len(a.vs); n > 0 {
			at := int(math.Ceil(p*float64(n))) - 1
			out[i] = value.DoubleOf(a.vs[min(max(at, 0), n-1)])
		}
	}
	if a.q.one {
		return out[0]
	}
	return value.MakeArray(out)
}

// Size implements Accumulator.
func (a *quantileAcc) Size() int { return 64 + 8*cap(a.vs) }

// State implements Accumulator. It returns the numbers as the bytes of doubles.
func (a *quantileAcc) State() value.Value {
	b := make([]byte, 0, 8*len(a.vs))
	for _, f := range a.vs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
	}
	return value.BinaryOf(0, b)
}

// Join implements Accumulator.
func (a *quantileAcc) Join(state value.Value) error {
	b := state.Bytes()
	if state.Kind() != value.Binary || len(b)%8 != 0 {
		return errState()
	}
	for ; len(b) > 0; b = b[8:] {
		a.vs = append(a.vs, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	a.sorted = 0
	if 8*len(a.vs) > accLimit {
		return tooMuch("$percentile")
	}
	return nil
}

// quantileOp compiles the expressions. The input is one number or an array.
func quantileOp(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	q, err := CompileQuantile(name, arg, s, 7436200)
	if err != nil {
		return nil, err
	}
	input, err := compile(q.Input, s, depth)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (value.Value, error) {
		v, err := input(e)
		if err != nil {
			return v, err
		}
		acc := q.New()
		if v.Kind() != value.Array {
			err := acc.Add(v)
			return acc.Result(), err
		}
		for it := v.Iter(); it.Next(); {
			if err = acc.Add(it.Value()); err == nil {
				err = e.Run.Step()
			}
			if err != nil {
				return v, err
			}
		}
		return acc.Result(), nil
	}, nil
}
