package sql

import (
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// get returns a property of v; undefined when v is no object.
func get(v value.Value, name string) value.Value {
	if v.Kind() == value.Object {
		return v.Get(name)
	}
	if !v.IsDefined() || v.Kind() <= value.Double || v.Kind() == value.String || v.Kind() == value.Array {
		return value.Value{}
	}
	return funcs.View(v).Get(name)
}

// walk follows steps from v. It returns the value there as the language shows it (funcs.View).
func walk(v value.Value, steps []shape.Step) value.Value {
	for i := range steps {
		if steps[i].Array {
			v = v.At(steps[i].Index)
		} else {
			v = get(v, steps[i].Name)
		}
		if !v.IsDefined() {
			return v
		}
	}
	return funcs.View(v)
}

// rootPath compiles a path on the item itself. Names are translated to stored names, the id is shown as text, and
// system properties are read from the item's metadata.
func rootPath(steps []shape.Step) evalFn {
	first := steps[0]
	if first.Array { // the item itself is never an array
		return func(*frame) value.Value { return value.Value{} }
	}
	if shape.IsSystem(first.Name) {
		name, rest := first.Name, steps[1:]
		return func(f *frame) value.Value {
			return walk(f.system(name), rest)
		}
	}
	stored, ok := doc.NoSQL.Stored(first.Name)
	if !ok { // no item has such a name, but a row of a list can
		return func(f *frame) value.Value {
			if f.root.row == nil {
				return value.Value{}
			}
			return walk(f.system(first.Name), steps[1:])
		}
	}
	rest := steps[1:]
	if stored == "_id" {
		return func(f *frame) value.Value {
			return walk(identity(value.ObjectOf(f.root.doc).Get(stored)), rest)
		}
	}
	if len(rest) == 0 {
		return func(f *frame) value.Value {
			return funcs.View(value.ObjectOf(f.root.doc).Get(stored))
		}
	}
	return func(f *frame) value.Value { return walk(value.ObjectOf(f.root.doc).Get(stored), rest) }
}
