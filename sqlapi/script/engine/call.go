package engine

import (
	"math"
	"strconv"

	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// callFunction evaluates a user-defined function for each list of arguments.
func callFunction(w *worker, setting wire.Setting, call wire.Call) ([][]byte, wire.Reads, *wire.Error) {
	p, fault := w.programs.get(call.Name, call.Source)
	if fault != nil {
		return nil, nil, fault
	}
	m := w.newMachine(setting, &p.source)
	values := make([][]byte, len(call.Args))
	fault = m.guard(func() *wire.Error {
		texts := m.newTexts()
		m.globals(m.newHost())
		v, fault := m.entry(p)
		if fault != nil {
			return fault
		}
		function, _ := goja.AssertFunction(v)
		m.main = true
		var args []goja.Value
		for i, list := range call.Args {
			if args, fault = texts.arguments(args[:0], list); fault != nil {
				return fault
			}
			v, err := function(goja.Undefined(), args...)
			if err != nil {
				return m.failure(err)
			}
			if v, fault = m.settled(v); fault != nil {
				return fault
			}
			if values[i], err = texts.json(v); err != nil {
				return m.failure(err)
			}
		}
		return nil
	})
	return values, p.reads, fault
}

// texts converts values from and to JSON. It does so itself for scalars, which are most arguments and values of
// functions, and has the engine do it for others.
type texts struct {
	m                *machine
	parse, stringify goja.Callable
}

// newTexts takes the engine's functions before a program can replace them.
func (m *machine) newTexts() *texts {
	object := m.rt.Get("JSON").(*goja.Object)
	parse, _ := goja.AssertFunction(object.Get("parse"))
	stringify, _ := goja.AssertFunction(object.Get("stringify"))
	return &texts{m: m, parse: parse, stringify: stringify}
}

// arguments appends the members of a JSON array to args.
func (t *texts) arguments(args []goja.Value, list []byte) ([]goja.Value, *wire.Error) {
	err := json.EachElement(list, func(raw []byte) error {
		v, err := t.value(raw)
		args = append(args, v)
		return err
	})
	if err != nil {
		return nil, t.m.failure(err)
	}
	return args, nil
}

// value returns the value that JSON text has.
func (t *texts) value(raw []byte) (goja.Value, error) {
	switch c := raw[0]; {
	case c == '"':
		if s, ok := json.String(raw); ok {
			return t.m.rt.ToValue(s), nil
		}
	case c == '-' || c >= '0' && c <= '9':
		if n, err := strconv.ParseFloat(string(raw), 64); err == nil {
			return t.m.rt.ToValue(n), nil
		}
	case c == '{':
		return t.object(raw)
	case c == '[':
		return t.array(raw)
	case c == 't':
		return t.m.rt.ToValue(true), nil
	case c == 'f':
		return t.m.rt.ToValue(false), nil
	case c == 'n':
		return goja.Null(), nil
	case string(raw) == "undefined":
		return goja.Undefined(), nil
	}
	return t.parse(goja.Undefined(), t.m.rt.ToValue(string(raw)))
}

// array returns the value of an array's text.
func (t *texts) array(raw []byte) (goja.Value, error) {
	var items []any
	err := json.EachElement(raw, func(raw []byte) error {
		v, err := t.value(raw)
		items = append(items, v)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.m.rt.NewArray(items...), nil
}

// object returns the value of an object's text. It takes a third of the engine's own time.
func (t *texts) object(raw []byte) (goja.Value, error) {
	o := t.m.rt.NewObject()
	plain := true
	err := json.EachMember(raw, func(name string, raw []byte) error {
		if name == "__proto__" { // not an assignment
			plain = false
			return nil
		}
		v, err := t.value(raw)
		if err != nil {
			return err
		}
		return o.Set(name, v)
	})
	if err != nil || !plain {
		return t.parse(goja.Undefined(), t.m.rt.ToValue(string(raw)))
	}
	return o, nil
}

// json returns v as JSON, nil for undefined and for what JSON can't express.
func (t *texts) json(v goja.Value) ([]byte, error) {
	if _, ok := v.(*goja.Object); !ok {
		switch x := v.Export().(type) {
		case string:
			return json.AppendString(nil, x), nil
		case int64:
			return strconv.AppendInt(nil, x, 10), nil
		case float64:
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return []byte("null"), nil
			}
			return appendNumber(nil, x), nil
		case bool:
			return strconv.AppendBool(nil, x), nil
		}
	}
	v, err := t.stringify(goja.Undefined(), v)
	if err != nil || goja.IsUndefined(v) {
		return nil, err
	}
	return []byte(v.String()), nil
}

// appendNumber appends x as JavaScript writes numbers.
func appendNumber(dst []byte, x float64) []byte {
	if size := math.Abs(x); size >= 1e21 || size < 1e-6 && size != 0 {
		return strconv.AppendFloat(dst, x, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, x+0, 'f', -1, 64) // -0 + 0 is 0
}
