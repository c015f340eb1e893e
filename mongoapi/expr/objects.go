package expr

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

var objectOps = map[string]operator{
	"$bsonSize": nullUnary(func(v value.Value) (value.Value, error) {
		if v.Kind() != value.Object {
			return v, merr.New(31393, "$bsonSize requires a document input, found: %s", TypeName(v))
		}
		return value.Int32Of(int32(len(v.Bytes()))), nil
	}),
	"$binarySize": nullUnary(func(v value.Value) (value.Value, error) {
		switch v.Kind() {
		case value.String, value.Binary, value.UUID:
			return value.Int32Of(int32(len(v.Bytes()))), nil
		}
		return v, merr.New(51276, "$binarySize requires a string or BinData argument, found: %s", TypeName(v))
	}),
	"$getField":      {special: getField},
	"$mergeObjects":  variadic(mergeObjects),
	"$objectToArray": nullUnary(objectToArray),
	"$setField":      {special: setField},
	"$unsetField":    {special: setField},
}

func mergeObjects(_ *Env, a []value.Value) (value.Value, error) {
	if len(a) == 1 && a[0].Kind() == value.Array {
		a = value.Elements(a[0])
	}
	m := NewMerger()
	for _, v := range a {
		if nullish(v) {
			continue
		}
		if v.Kind() != value.Object {
			return v, merr.New(40400, "$mergeObjects requires object inputs, but input %s is of type %s", "value",
				TypeName(v))
		}
		m.Add(v)
	}
	return m.Value(), nil
}

// Merger merges objects. A later field replaces an earlier one of the same name, and keeps its position.
type Merger struct {
	at   map[string]int
	keys [][]byte
	vals []value.Value
}

// NewMerger returns an empty Merger.
func NewMerger() *Merger { return &Merger{at: map[string]int{}} }

// Add adds the fields of v. The bytes of v must not change until Value is called.
func (m *Merger) Add(v value.Value) {
	for it := v.Iter(); it.Next(); {
		if i, ok := m.at[string(it.Key())]; ok {
			m.vals[i] = it.Value()
			continue
		}
		m.at[string(it.Key())] = len(m.keys)
		m.keys, m.vals = append(m.keys, it.Key()), append(m.vals, it.Value())
	}
}

// Value returns the merged object.
func (m *Merger) Value() value.Value {
	at, b := bson.Begin(nil)
	for i, k := range m.keys {
		b = value.AppendElement(b, k, m.vals[i])
	}
	return value.ObjectOf(bson.End(b, at))
}

func objectToArray(v value.Value) (value.Value, error) {
	if v.Kind() != value.Object {
		return v, merr.New(40390, "$objectToArray requires an object input, found: %s", TypeName(v))
	}
	at, b := bson.Begin(nil)
	i := 0
	for it := v.Iter(); it.Next(); i++ {
		ea, e := bson.Begin(nil)
		e = bson.AppendString(e, "k", string(it.Key()))
		e = value.AppendElement(e, "v", it.Value())
		b = value.AppendIndexed(b, i, value.ObjectOf(bson.End(e, ea)))
	}
	return value.ArrayOf(bson.End(b, at)), nil
}

func getField(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	fieldArg, inputArg := arg, value.StringOf("$$CURRENT")
	if isNamed(arg) {
		fs, err := namedArgs(name, arg, []string{"field", "input"}, nil)
		if err != nil {
			return nil, err
		}
		fieldArg, inputArg = fs["field"], fs["input"]
	}
	field, err := compile(fieldArg, s, depth)
	if err != nil {
		return nil, err
	}
	input, err := compile(inputArg, s, depth)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (value.Value, error) {
		f, err := field(e)
		if err != nil {
			return f, err
		}
		if f.Kind() != value.String {
			return f, merr.New(3041704, "$getField requires 'field' to evaluate to type String, but got %s",
				TypeName(f))
		}
		in, err := input(e)
		if err != nil || in.Kind() == value.Null {
			return in, err
		}
		return in.Get(string(f.Bytes())), nil
	}, nil
}

// setField compiles $setField. $unsetField is compiled as $setField with the value $$REMOVE.
func setField(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	required := []string{"field", "input", "value"}
	if name == "$unsetField" {
		required = required[:2]
	}
	fs, err := namedArgs(name, arg, required, nil)
	if err != nil {
		return nil, err
	}
	xs := map[string]Expr{"value": constant(value.Undef())}
	for k, v := range fs {
		if xs[k], err = compile(v, s, depth); err != nil {
			return nil, err
		}
	}
	return func(e *Env) (value.Value, error) {
		f, err := xs["field"](e)
		if err != nil {
			return f, err
		}
		if f.Kind() != value.String {
			return f, merr.New(4161107, "%s requires 'field' to evaluate to type String, but got %s", name, TypeName(f))
		}
		if err := nameError(9534700, f.Str()); err != nil {
			return f, err
		}
		in, err := xs["input"](e)
		if err != nil || nullish(in) {
			return value.NullValue(), err
		}
		if in.Kind() != value.Object {
			return in, merr.New(4161105, "%s requires 'input' to evaluate to type Object", name)
		}
		v, err := xs["value"](e)
		if err != nil {
			return v, err
		}
		return SetTop(in, f.Str(), v), nil
	}, nil
}

// SetTop returns obj with one top-level field set. An existing field keeps its position, a new one is appended. The
// value Undefined removes the field.
func SetTop(obj value.Value, name string, v value.Value) value.Value {
	at, b := bson.Begin(make([]byte, 0, len(obj.Bytes())+len(name)+16+len(v.Bytes())))
	found := false
	for it := obj.Iter(); it.Next(); {
		if string(it.Key()) != name {
			b = append(b, it.Element()...)
			continue
		}
		if !found {
			b = value.AppendElement(b, name, v)
		}
		found = true
	}
	if !found {
		b = value.AppendElement(b, name, v)
	}
	return value.ObjectOf(bson.End(b, at))
}
