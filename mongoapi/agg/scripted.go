package agg

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// scripted is a compiled $accumulator: functions of JavaScript. A group gathers the arguments of accumulate and calls
// it for many documents at once.
//
// Example: init returns {n: 0}, accumulate adds 1 to n, finalize returns n. For 1,200 documents of a group the worker
// gets the arguments of 1,000, then those of 200.
type scripted struct {
	init, accumulate, merge, finalize expr.Script
	finalizes                         bool
	env                               *expr.Env // of the last document
}

// gathered is the number of documents whose arguments a group gathers, and most their bytes.
const (
	gathered     = 1000
	mostGathered = 256 << 10
)

func compileScripted(a accumulation, arg value.Value, s *expr.Scope) (accumulation, error) {
	c := &scripted{}
	args, err := c.read(arg)
	if err != nil {
		return a, err
	}
	initArgs := args["initArgs"]
	if !initArgs.IsDefined() {
		initArgs = value.MakeArray(nil)
	}
	initX, err := expr.Compile(initArgs, s)
	if err != nil {
		return a, err
	}
	accX, err := expr.Compile(args["accumulateArgs"], s)
	if err != nil {
		return a, err
	}
	a.x = func(e *expr.Env) (value.Value, error) {
		c.env = e
		with, err := initX(e)
		if err != nil {
			return with, err
		}
		v, err := accX(e)
		if err != nil {
			return v, err
		}
		if with.Kind() != value.Array || v.Kind() != value.Array {
			return v, merr.New(4544712, "$accumulator's initArgs and accumulateArgs must evaluate to arrays")
		}
		return value.MakeArray([]value.Value{with, v}), nil
	}
	a.mk = func() expr.Accumulator { return &scriptedAcc{c: c} }
	return a, nil
}

// read reads the argument of $accumulator and returns its fields.
func (c *scripted) read(arg value.Value) (map[string]value.Value, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(4544703, "$accumulator expects an object as an argument; found: %s", expr.TypeName(arg))
	}
	args := map[string]value.Value{}
	for it := arg.Iter(); it.Next(); {
		name, v, ok := string(it.Key()), it.Value(), true
		switch name {
		case "init":
			c.init, ok = expr.NewScript(v)
		case "accumulate":
			c.accumulate, ok = expr.NewScript(v)
		case "merge":
			c.merge, ok = expr.NewScript(v)
		case "finalize":
			c.finalize, ok = expr.NewScript(v)
			c.finalizes = true
		case "initArgs", "accumulateArgs":
		case "lang":
			if v.Kind() != value.String {
				return nil, merr.New(4544702, "$accumulator lang must be a string, but found: %s", expr.TypeName(v))
			}
			if v.Str() != "js" {
				return nil, merr.New(4544701, "$accumulator only supports lang: 'js'")
			}
		default:
			return nil, merr.New(4544706, "$accumulator got an unexpected field: %s", name)
		}
		if !ok {
			return nil, merr.New(4544701, "$accumulator %s must be a string or code, but found: %s", name,
				expr.TypeName(v))
		}
		args[name] = v
	}
	for _, name := range []string{"init", "accumulate", "accumulateArgs", "merge", "lang"} {
		if !args[name].IsDefined() {
			return nil, merr.New(4544707, "$accumulator missing required argument '%s'", name)
		}
	}
	return args, nil
}

// scriptedAcc is the accumulator of one group.
type scriptedAcc struct {
	c     *scripted
	begun bool
	state value.Value
	args  []value.Value
	size  int
	err   error // of Result, which can't return one
}

// Add implements expr.Accumulator.
func (a *scriptedAcc) Add(v value.Value) error {
	pair := value.Elements(v)
	if !a.begun {
		call := append([]value.Value{value.NullValue()}, value.Elements(pair[0])...)
		out, err := a.c.env.Run.Values(a.c.init, []value.Value{value.MakeArray(call)})
		if err != nil {
			return err
		}
		a.begun, a.state = true, out[0]
	}
	a.args = append(a.args, pair[1].Clone())
	if a.size += len(pair[1].Bytes()) + 64; len(a.args) >= gathered || a.size > mostGathered {
		return a.flush()
	}
	return nil
}

// flush calls accumulate for what was gathered.
func (a *scriptedAcc) flush() error {
	if len(a.args) == 0 {
		return nil
	}
	state, err := a.c.env.Run.Fold(a.c.accumulate, a.state, a.args)
	a.state, a.args, a.size = state, nil, 0
	return err
}

// result returns the result of an accumulator. That of a scripted one may fail.
func result(a expr.Accumulator) (value.Value, error) {
	if s, ok := a.(*scriptedAcc); ok {
		if err := s.finish(); err != nil {
			return value.Undef(), err
		}
	}
	return a.Result(), nil
}

// finish ends the accumulation. Result returns the value.
func (a *scriptedAcc) finish() error {
	if err := a.flush(); err != nil || !a.c.finalizes {
		return err
	}
	call := value.MakeArray([]value.Value{value.NullValue(), a.state})
	out, err := a.c.env.Run.Values(a.c.finalize, []value.Value{call})
	if err == nil {
		a.state = out[0]
	}
	return err
}

// Result implements expr.Accumulator.
func (a *scriptedAcc) Result() value.Value {
	if !a.state.IsDefined() {
		return value.NullValue()
	}
	return a.state
}

// Size implements expr.Accumulator.
func (a *scriptedAcc) Size() int { return 128 + a.size + len(a.state.Bytes()) }

// State implements expr.Accumulator.
func (a *scriptedAcc) State() value.Value {
	a.err = a.flush()
	return value.MakeArray([]value.Value{value.BoolOf(a.err == nil), a.state})
}

// Join implements expr.Accumulator. It calls merge.
func (a *scriptedAcc) Join(state value.Value) error {
	vs := value.Elements(state)
	if len(vs) != 2 || !vs[0].Bool() {
		return merr.New(merr.ScriptFailure, "the state of an $accumulator can't be merged")
	}
	if !a.begun {
		a.begun, a.state = true, vs[1].Clone()
		return nil
	}
	if err := a.flush(); err != nil {
		return err
	}
	out, err := a.c.env.Run.Values(a.c.merge, []value.Value{value.MakeArray([]value.Value{value.NullValue(), a.state,
		vs[1]})})
	if err == nil {
		a.state = out[0]
	}
	return err
}
