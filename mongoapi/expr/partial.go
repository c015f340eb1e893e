package expr

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// The state of an accumulator can be stored and later joined with that of earlier documents. Groups that don't fit into
// memory are written to files in this form.
//
// Invariant: adding the documents d1 .. dn to one accumulator gives the same result as adding d1 .. dk to a first, dk+1
// .. dn to a second, and joining the first with the state of the second. Sums of doubles may differ in their last
// digits.
//
// Example: $push over 1, 2, 3. The first has [1, 2], the state of the second is [3], and Join gives [1, 2, 3].

// errState returns the error for a stored state that this kind of accumulator can't have written.
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

// State implements Accumulator. It returns the number of values, their sum, and whether one was a long.
func (s *sumAcc) State() value.Value {
	return value.MakeArray([]value.Value{value.Int64Of(s.n), s.sum.State(), value.BoolOf(s.long)})
}

// Join implements Accumulator.
func (s *sumAcc) Join(state value.Value) error {
	vs, err := fields(state, 3)
	if err != nil {
		return err
	}
	if !s.sum.Join(vs[1]) {
		return errState()
	}
	s.n += vs[0].Int()
	s.long = s.long || vs[2].Bool()
	return nil
}

// State implements Accumulator. It returns the extreme value, or null.
func (x *extremeAcc) State() value.Value { return x.Result() }

// Join implements Accumulator.
func (x *extremeAcc) Join(state value.Value) error { return x.Add(state) }

// State implements Accumulator. It returns whether there was a document, and the value of the first or last one.
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

// Join implements Accumulator. It combines two variances with the formula of Chan, Golub and LeVeque.
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

// State implements Accumulator. It returns the values that can still be part of the result.
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
