package expr

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// The states of accumulators can be stored, and joined with those of later documents: so groups that don't fit into
// memory are written to files. For every accumulator, to add the documents d1 .. dn gives the same as to add d1 .. dk
// to one, dk+1 .. dn to another, and to join the first one with the second one's state. Sums of doubles may differ in
// their last digits.

// errState is the error of a state that no accumulator of this kind has written.
func errState() error {
	return merr.New(merr.InternalError, "the stored state of an accumulator is damaged")
}

// fields returns the n elements of a state.
func fields(state value.Value, n int) ([]value.Value, error) {
	vs := value.Elements(state)
	if len(vs) != n {
		return nil, errState()
	}
	return vs, nil
}

// State implements Accumulator: how many numbers, and their sum.
func (s *sumAcc) State() value.Value {
	return value.MakeArray([]value.Value{value.Int64Of(s.n), s.sum})
}

// Join implements Accumulator.
func (s *sumAcc) Join(state value.Value) error {
	vs, err := fields(state, 2)
	if err != nil || vs[0].Int() == 0 {
		return err
	}
	n := s.n + vs[0].Int()
	if s.n == 0 {
		s.sum = vs[1].Clone()
	} else {
		s.sum = num.Widen(num.Add, s.sum, vs[1])
	}
	s.n = n
	return nil
}

// State implements Accumulator: the extreme, or null.
func (x *extremeAcc) State() value.Value { return x.Result() }

// Join implements Accumulator.
func (x *extremeAcc) Join(state value.Value) error { return x.Add(state) }

// State implements Accumulator: whether there was any document, and the value of the first or last one.
func (f *endAcc) State() value.Value {
	return value.MakeArray([]value.Value{value.BoolOf(f.any), f.v})
}

// Join implements Accumulator.
func (f *endAcc) Join(state value.Value) error {
	vs, err := fields(state, 2)
	if err != nil || !vs[0].Bool() {
		return err
	}
	return f.Add(vs[1])
}

// State implements Accumulator.
func (p *pushAcc) State() value.Value { return p.Result() }

// Join implements Accumulator.
func (p *pushAcc) Join(state value.Value) error { return addAll(p, state) }

// State implements Accumulator.
func (a *addToSetAcc) State() value.Value { return a.Result() }

// Join implements Accumulator.
func (a *addToSetAcc) Join(state value.Value) error { return addAll(a, state) }

// State implements Accumulator.
func (a *mergeAcc) State() value.Value { return a.Result() }

// Join implements Accumulator.
func (a *mergeAcc) Join(state value.Value) error { return a.Add(state) }

// State implements Accumulator.
func (d *devAcc) State() value.Value {
	return value.MakeArray([]value.Value{value.Int64Of(d.n), value.DoubleOf(d.mean), value.DoubleOf(d.m2)})
}

// Join implements Accumulator: the variance of two sets by Chan, Golub and LeVeque.
func (d *devAcc) Join(state value.Value) error {
	vs, err := fields(state, 3)
	if err != nil || vs[0].Int() == 0 {
		return err
	}
	n, mean, m2 := vs[0].Int(), vs[1].Float(), vs[2].Float()
	all := float64(d.n + n)
	delta := mean - d.mean
	d.mean += delta * float64(n) / all
	d.m2 += m2 + delta*delta*float64(d.n)*float64(n)/all
	d.n += n
	return nil
}

// State implements Accumulator: the values that may still be part of the result.
func (a *nAcc) State() value.Value { return a.Result() }

// Join implements Accumulator.
func (a *nAcc) Join(state value.Value) error { return addAll(a, state) }

// addAll adds the elements of an array.
func addAll(a Accumulator, list value.Value) error {
	if list.Kind() != value.Array {
		return errState()
	}
	for it := list.Iter(); it.Next(); {
		if err := a.Add(it.Value()); err != nil {
			return err
		}
	}
	return nil
}
