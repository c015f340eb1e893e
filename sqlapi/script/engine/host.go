package engine

import "github.com/dop251/goja"

// host is the object through which the object model reaches the engine. Its properties are made when they are read.
// Programs don't see it.
type host struct {
	m      *machine
	values map[string]func() goja.Value
	made   map[string]goja.Value
}

// newHost returns the properties that all kinds of programs need.
func (m *machine) newHost() *host {
	h := &host{m: m, values: make(map[string]func() goja.Value, 16), made: make(map[string]goja.Value, 8)}
	h.function("model", func(c goja.FunctionCall) goja.Value { return m.load(c.Argument(0).String()) })
	h.function("stack", func(c goja.FunctionCall) goja.Value {
		return m.rt.ToValue(m.trace(c.Argument(0).String()))
	})
	return h
}

// function adds a property that is a function.
func (h *host) function(name string, f func(goja.FunctionCall) goja.Value) {
	h.values[name] = func() goja.Value { return h.m.rt.ToValue(f) }
}

var _ goja.DynamicObject = (*host)(nil)

// Get implements goja.DynamicObject.
func (h *host) Get(key string) goja.Value {
	if v := h.made[key]; v != nil {
		return v
	}
	value := h.values[key]
	if value == nil {
		return nil
	}
	v := value()
	h.made[key] = v
	return v
}

// Set implements goja.DynamicObject: the properties are fixed.
func (h *host) Set(string, goja.Value) bool { return false }

// Has implements goja.DynamicObject.
func (h *host) Has(key string) bool { return h.values[key] != nil }

// Delete implements goja.DynamicObject: the properties are fixed.
func (h *host) Delete(string) bool { return false }

// Keys implements goja.DynamicObject: nothing lists the properties.
func (h *host) Keys() []string { return nil }
