package schema

import (
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// keyword is an entry of the registry. compile gets the argument and the whole schema.
type keyword struct {
	name    string
	compile func(c *compiler, name string, v, schema value.Value) (rule, error)
	always  bool // compile is called without an argument too
}

// keywords are in the order in which their rules are tested and told.
var keywords []keyword

// known are the names of all keywords, refused those of JSON Schema that MongoDB refuses.
var (
	known = map[string]bool{"title": true, "description": true, "exclusiveMaximum": true, "exclusiveMinimum": true,
		"additionalItems": true, "patternProperties": true, "additionalProperties": true}
	refused = map[string]bool{"$ref": true, "$schema": true, "default": true, "definitions": true, "format": true,
		"id": true}
)

func init() {
	keywords = []keyword{
		{"pattern", pattern, false},
		{"maxLength", length(value.String, textLength, atMost, "specified string length was not satisfied"), false},
		{"minLength", length(value.String, textLength, atLeast, "specified string length was not satisfied"), false},
		{"multipleOf", multipleOf, false},
		{"maximum", bound("exclusiveMaximum", 1), true},
		{"minimum", bound("exclusiveMinimum", -1), true},
		{"minItems", length(value.Array, value.Value.Len, atLeast, "array did not match specified length"), false},
		{"maxItems", length(value.Array, value.Value.Len, atMost, "array did not match specified length"), false},
		{"uniqueItems", uniqueItems, false},
		{"items", itemsRule, false},
		{"additionalItems", additionalItems, false},
		{"properties", properties, false},
		{"additionalProperties", allowedProperties, true},
		{"required", required, false},
		{"minProperties", length(value.Object, value.Value.Len, atLeast,
			"specified number of properties was not satisfied"), false},
		{"maxProperties", length(value.Object, value.Value.Len, atMost,
			"specified number of properties was not satisfied"), false},
		{"dependencies", dependencies, false},
		{"allOf", several, false},
		{"anyOf", several, false},
		{"oneOf", several, false},
		{"not", not, false},
		{"enum", enum, false},
		{"type", types(jsonTypes), false},
		{"bsonType", types(nil), false},
	}
	for _, k := range keywords {
		known[k.name] = true
	}
}

func wrongType(name, want string) error {
	return merr.New(merr.TypeMismatch, "$jsonSchema keyword '%s' must be %s", name, want)
}

func pattern(c *compiler, name string, v, _ value.Value) (rule, error) {
	if v.Kind() != value.String {
		return nil, wrongType(name, "a string")
	}
	re, _, err := expr.Regexp(v.Str(), "")
	if err != nil {
		return nil, err
	}
	return &leaf{name: name, spec: object(name, v), reason: "regular expression did not match",
		test: func(v value.Value) bool { return v.Kind() != value.String || c.run.Match(re, v.Bytes()) }}, nil
}

func textLength(v value.Value) int { return utf8.RuneCount(v.Bytes()) }

func atLeast(n, want int64) bool { return n >= want }

func atMost(n, want int64) bool { return n <= want }

// length makes the keywords that limit the length of strings, arrays and objects.
//
//go:noinline // each caller would get its own copy of the closure
func length(kind value.Kind, of func(value.Value) int, ok func(n, want int64) bool, reason string) func(
	*compiler, string, value.Value, value.Value) (rule, error) {
	return func(_ *compiler, name string, v, _ value.Value) (rule, error) {
		n, whole := num.ToInt64(v, false)
		switch {
		case !v.IsNumber():
			return nil, merr.New(merr.FailedToParse, "Expected a number in: %s: %s", name, merr.Show(v))
		case !whole:
			return nil, merr.New(merr.FailedToParse, "Expected an integer: %s: %s", name, merr.Show(v))
		case n < 0:
			return nil, merr.New(merr.FailedToParse, "Expected a non-negative number in: %s: %s", name, merr.Show(v))
		}
		l := &leaf{name: name, spec: object(name, v), reason: reason,
			test: func(v value.Value) bool { return v.Kind() != kind || ok(int64(of(v)), n) }}
		switch kind {
		case value.Array:
			l.more = func(dst []byte, v value.Value) []byte {
				dst = value.AppendElement(dst, "consideredValue", v)
				return bson.AppendInt32(dst, "numberOfItems", int32(v.Len()))
			}
		case value.Object:
			l.more = func(dst []byte, v value.Value) []byte {
				return bson.AppendInt32(dst, "numberOfProperties", int32(v.Len()))
			}
		}
		return l, nil
	}
}

func multipleOf(_ *compiler, name string, v, _ value.Value) (rule, error) {
	if !v.IsNumber() {
		return nil, wrongType(name, "a number")
	}
	if num.IsZero(v) || value.CompareNumbers(v, value.Int32Of(0)) < 0 {
		return nil, merr.New(merr.FailedToParse, "$jsonSchema keyword '%s' must have a positive value", name)
	}
	of := v
	if v.Kind() == value.Double || v.Kind() == value.Decimal {
		of = num.ToDecimal(v)
	}
	return &leaf{name: name, spec: object(name, v),
		reason: "considered value is not a multiple of the specified value", test: func(v value.Value) bool {
			if !v.IsNumber() {
				return true
			}
			if v.Kind() == value.Double {
				v = num.ToDecimal(v)
			}
			return num.IsZero(num.Mod(v, of))
		}}, nil
}

// bound makes maximum with sign 1, and minimum with -1.
//
//go:noinline // each caller would get its own copy of the closure
func bound(exclusive string, sign int) func(*compiler, string, value.Value, value.Value) (rule, error) {
	return func(_ *compiler, name string, v, schema value.Value) (rule, error) {
		x := schema.Get(exclusive)
		switch {
		case !v.IsDefined() && x.IsDefined():
			return nil, merr.New(merr.FailedToParse, "$jsonSchema keyword '%s' must be a present if %s is present",
				name, exclusive)
		case !v.IsDefined():
			return nil, nil
		case !v.IsNumber():
			return nil, wrongType(name, "a number")
		case x.IsDefined() && x.Kind() != value.Bool:
			return nil, wrongType(exclusive, "a boolean")
		}
		spec := object(name, v)
		if x.IsDefined() {
			at, b := bson.Begin(nil)
			b = value.AppendElement(b, name, v)
			spec = value.ObjectOf(bson.End(value.AppendElement(b, exclusive, x), at))
		}
		return &leaf{name: name, spec: spec, reason: "comparison failed", test: func(n value.Value) bool {
			if !n.IsNumber() {
				return true
			}
			c := sign * value.CompareBSON(n, v)
			return c < 0 || c == 0 && !x.Bool()
		}}, nil
	}
}

// jsonTypes are the types of the keyword type.
var jsonTypes = map[string]byte{"array": bson.TypeArray, "boolean": bson.TypeBool, "null": bson.TypeNull,
	"object": bson.TypeDocument, "string": bson.TypeString}

// types makes type with JSON's names, and bsonType with those of BSON.
//
//go:noinline // each caller would get its own copy of the closure
func types(names map[string]byte) func(*compiler, string, value.Value, value.Value) (rule, error) {
	return func(_ *compiler, name string, v, _ value.Value) (rule, error) {
		list := []value.Value{v}
		if v.Kind() == value.Array {
			list = value.Elements(v)
		} else if v.Kind() != value.String {
			return nil, wrongType(name, "either a string or an array of strings")
		}
		var want [256]bool
		seen := map[string]bool{}
		for _, t := range list {
			text := t.Str()
			switch {
			case t.Kind() != value.String:
				return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword '%s' array elements must be strings", name)
			case text == "integer":
				return nil, merr.New(merr.FailedToParse, "$jsonSchema type 'integer' is not currently supported.")
			case seen[text]:
				return nil, merr.New(merr.FailedToParse, "$jsonSchema keyword '%s' has duplicate value: %s", name, text)
			}
			seen[text] = true
			if text == "number" {
				for _, code := range []byte{bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128} {
					want[code] = true
				}
				continue
			}
			code, ok := names[text]
			if names == nil {
				code, ok = expr.TypeByName(text)
			}
			if !ok {
				return nil, merr.New(merr.BadValue, "Unknown type name alias: %s", text)
			}
			want[code] = true
		}
		if len(list) == 0 {
			return nil, merr.New(merr.FailedToParse, "$jsonSchema keyword '%s' must name at least one type", name)
		}
		return &leaf{name: name, spec: object(name, v), reason: "type did not match",
			test: func(v value.Value) bool { return want[expr.TypeCode(v)] },
			more: func(dst []byte, v value.Value) []byte {
				dst = value.AppendElement(dst, "consideredValue", v)
				return bson.AppendString(dst, "consideredType", expr.TypeName(v))
			}}, nil
	}
}

// enum compares values without regard to the order of fields.
func enum(_ *compiler, name string, v, _ value.Value) (rule, error) {
	if v.Kind() != value.Array {
		return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword 'enum' must be an array, but found an element of "+
			"type %s", expr.TypeName(v))
	}
	vs := value.Elements(v)
	if len(vs) == 0 {
		return nil, merr.New(merr.FailedToParse, "$jsonSchema keyword 'enum' cannot be an empty array")
	}
	if at, _ := duplicate(vs); at >= 0 {
		return nil, merr.New(merr.FailedToParse, "$jsonSchema keyword 'enum' array cannot contain duplicate values.")
	}
	return &leaf{name: name, spec: object(name, v), reason: "value was not found in enum",
		test: func(v value.Value) bool {
			for _, e := range vs {
				if equal(e, v) {
					return true
				}
			}
			return false
		}}, nil
}

// equal is equality without regard to the order of fields.
func equal(a, b value.Value) bool {
	return expr.TypeCode(a) == expr.TypeCode(b) && value.EqualCosmos(a, b) || a.IsNumber() && b.IsNumber() &&
		value.CompareBSON(a, b) == 0
}

// duplicate returns the position of the first value that equals an earlier one, -1 if all are different.
func duplicate(vs []value.Value) (int, value.Value) {
	at := map[uint64][]value.Value{}
	for i, v := range vs {
		h := value.HashCosmos(v)
		for _, o := range at[h] {
			if equal(o, v) {
				return i, v
			}
		}
		at[h] = append(at[h], v)
	}
	return -1, value.Undef()
}
