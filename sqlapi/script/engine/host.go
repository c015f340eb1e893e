package engine

import "github.com/dop251/goja"

// host is the object through which the object model reaches the engine. Its properties are made when they are read.
// Programs don't see it.
type host struct {
	m    *machine
	of   func(name string) goja.Value // makes the properties of one kind of program; nil: there are none
	made map[string]goja.Value
}

// value makes a property; nil if there is none of that name.
func (h *host) value(name string) goja.Value {
	switch name {
	case "model":
		return h.m.native(func(c goja.FunctionCall) goja.Value { return h.m.load(c.Argument(0).String()) })
	case "stack":
		return h.m.native(func(c goja.FunctionCall) goja.Value {
			return h.m.rt.ToValue(h.m.trace(c.Argument(0).String()))
		})
	}
	if h.of == nil {
		return nil
	}
	return h.of(name)
}

// native makes a function of JavaScript.
func (m *machine) native(f func(goja.FunctionCall) goja.Value) goja.Value { return m.rt.ToValue(f) }

var _ goja.DynamicObject = (*host)(nil)

// Get implements goja.DynamicObject.
func (h *host) Get(key string) goja.Value {
	if v := h.made[key]; v != nil {
		return v
	}
	v := h.value(key)
	if v != nil {
		if h.made == nil {
			h.made = map[string]goja.Value{}
		}
		h.made[key] = v
	}
	return v
}

// Set implements goja.DynamicObject: the properties are fixed.
func (h *host) Set(string, goja.Value) bool { return false }

// Has implements goja.DynamicObject.
func (h *host) Has(key string) bool { return h.Get(key) != nil }

// Delete implements goja.DynamicObject: the properties are fixed.
func (h *host) Delete(string) bool { return false }

// Keys implements goja.DynamicObject: nothing lists the properties.
func (h *host) Keys() []string { return nil }
