// Package args checks the arguments of MongoDB's commands: their kinds, the errors for wrong ones, and the concerns.
//
// Example: the arguments {"q": Object, "multi": StrictBool} refuse {q: {}, multi: 1} with the error 14, and
// {q: {}, other: 1} with 40415.
package args

import (
	"bytes"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Kind is the set of types that a command's argument may have. The kinds are those of the server's own command
// definitions, which differ in strictness: a strict boolean refuses 1, a safe boolean accepts any number.
type Kind uint8

const (
	Any          Kind = iota // the code that uses it checks it
	StrictBool               // a boolean
	SafeBool                 // a boolean or a number
	OptionalBool             // as safeBool, with another error text; null is an error
	Number                   // any number
	String
	Object
	Array
	Documents // an array of objects, or a document sequence
	Hint      // the name or the key of an index
)

// Set has the arguments of a command by name.
type Set map[string]Kind

// With returns the union of a and others.
func (a Set) With(others ...Set) Set {
	out := Set{}
	for _, m := range append(others, a) {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// Check checks one argument of a command. where is "command" or "command.array". Null counts as absent, unless the kind
// says otherwise.
func (k Kind) Check(where string, name []byte, v value.Value) error {
	if v.Kind() == value.Null && k != OptionalBool {
		return nil
	}
	bool1 := v.Kind() == value.Bool
	switch k {
	case StrictBool:
		return Want(bool1, where, name, v, "type 'bool'")
	case SafeBool:
		return Want(bool1 || v.IsNumber(), where, name, v, "types '[bool, long, int, decimal, double]'")
	case OptionalBool:
		if !bool1 && !v.IsNumber() {
			return merr.New(merr.TypeMismatch, "Field '%s' should be a boolean value, but found: %s", name,
				expr.TypeName(v))
		}
	case Number:
		return Want(v.IsNumber(), where, name, v, "types '[long, int, decimal, double]'")
	case String:
		return Want(v.Kind() == value.String, where, name, v, "type 'string'")
	case Object:
		return Want(v.Kind() == value.Object, where, name, v, "type 'object'")
	case Array:
		return Want(v.Kind() == value.Array, where, name, v, "type 'array'")
	case Documents:
		return CheckDocuments(where, name, v)
	case Hint:
		if v.Kind() != value.String && v.Kind() != value.Object {
			return merr.New(merr.FailedToParse, "Hint must be a string or an object")
		}
	}
	return nil
}

// Want returns nil if ok, and otherwise the error for an argument of a wrong type: 14, with the types that it may have.
func Want(ok bool, where string, name []byte, v value.Value, types string) error {
	if ok {
		return nil
	}
	return merr.New(merr.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected %s", where, name,
		expr.TypeName(v), types)
}

// CheckDocuments checks an argument of the kind Documents.
func CheckDocuments(where string, name []byte, v value.Value) error {
	if v.Kind() != value.Array {
		return Want(false, where, name, v, "type 'array'")
	}
	i := 0
	for it := v.Iter(); it.Next(); i++ {
		if d := it.Value(); d.Kind() != value.Object {
			return merr.New(merr.TypeMismatch, "BSON field '%s.%s.%d' is the wrong type '%s', expected type 'object'",
				where, name, i, expr.TypeName(d))
		}
	}
	return nil
}

// Unknown is the error for an argument that a command doesn't have: 40415.
func Unknown(where string, name []byte) error {
	return merr.New(merr.UnknownField, "BSON field '%s.%s' is an unknown field.", where, name)
}

// Duplicate is the error for an argument that is given twice.
func Duplicate(where string, name []byte) error {
	return merr.New(merr.DuplicateField, "BSON field '%s.%s' is a duplicate field", where, name)
}

// Few is the largest number of arguments that nearly all commands have.
const Few = 16

// Contains reports whether an argument was seen before.
func Contains(seen [][]byte, name []byte) bool {
	for _, s := range seen {
		if bytes.Equal(s, name) {
			return true
		}
	}
	return false
}

// Check checks the arguments of an object, such as a statement of an update. Unknown arguments are refused.
func (a Set) Check(where string, obj value.Value) error {
	var few [Few][]byte
	seen := few[:0]
	for it := obj.Iter(); it.Next(); {
		k, ok := a[string(it.Key())]
		if !ok {
			return Unknown(where, it.Key())
		}
		if Contains(seen, it.Key()) {
			return Duplicate(where, it.Key())
		}
		seen = append(seen, it.Key())
		if err := k.Check(where, it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return nil
}

// Given returns an argument of an object. Null counts as absent.
//
//go:noinline // called from many places, see decision 41
func Given(obj value.Value, name string) value.Value {
	v := obj.Get(name)
	if v.Kind() == value.Null {
		return value.Undef()
	}
	return v
}

// Flag returns a boolean argument that was already checked, or otherwise if it is absent.
func Flag(obj value.Value, name string, otherwise bool) bool {
	if v := Given(obj, name); v.IsDefined() {
		return expr.Truthy(v)
	}
	return otherwise
}

// NotInEnum is the error for a text that isn't one of those which a field may have.
func NotInEnum(text, field string) error {
	return merr.New(merr.BadValue, "Enumeration value '%s' for field '%s' is not a valid value.", text, field)
}
