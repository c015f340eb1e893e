package engine

import (
	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// callFunction evaluates a user-defined function for each list of arguments.
func callFunction(w *worker, setting wire.Setting, call wire.Call) ([][]byte, wire.Reads, *wire.Error) {
	p, fault := w.programs.get(call.Name, call.Source, !call.Loose)
	if fault != nil {
		return nil, nil, fault
	}
	m := w.newMachine(setting, &p.source)
	values := make([][]byte, len(call.Args))
	fault = m.guard(func() *wire.Error {
		texts := m.newTexts()
		if p.lazy {
			texts.shapes = w.shapes
		}
		m.globals(m.rt.NewDynamicObject(&host{m: m}))
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
