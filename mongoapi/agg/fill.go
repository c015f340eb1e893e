package agg

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// fillStage compiles $fill to $setWindowFields for the fields with a method, then $addFields for those with a value.
//
// Example: {sortBy: {t: 1}, output: {a: {method: "locf"}, b: {value: 0}}} is {$setWindowFields: {sortBy: {t: 1},
// output: {a: {$locf: "$a"}}}}, {$addFields: {b: {$ifNull: ["$b", 0]}}}.
func fillStage(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(6050201, "The $fill stage specification must be an object, found %s", expr.TypeName(arg))
	}
	at, spec := bson.Begin(nil)
	for it := arg.Iter(); it.Next(); {
		switch name := string(it.Key()); name {
		case "partitionBy", "sortBy":
			spec = value.AppendElement(spec, name, it.Value())
		case "partitionByFields":
			if arg.Get("partitionBy").IsDefined() {
				return nil, merr.New(6050204, "Maximum one of 'partitionBy' and 'partitionByFields can be specified "+
					"in '$fill'")
			}
			by, err := partitionByFields(it.Value())
			if err != nil {
				return nil, err
			}
			spec = value.AppendElement(spec, "partitionBy", by)
		case "output":
			if it.Value().Kind() != value.Object {
				return nil, merr.New(merr.TypeMismatch, "BSON field '$fill.output' is the wrong type '%s', expected "+
					"type 'object'", expr.TypeName(it.Value()))
			}
		default:
			return nil, merr.New(merr.UnknownField, "BSON field '$fill.%s' is an unknown field.", name)
		}
	}
	if !arg.Get("output").IsDefined() {
		return nil, merr.New(merr.MissingField, "BSON field '$fill.output' is missing but a required field")
	}
	methods, values, err := fillOutputs(arg.Get("output"))
	if err != nil {
		return nil, err
	}
	add, err := addFields("$fill")(values, c.o.Scope)
	if err != nil {
		return nil, err
	}
	spec = value.AppendElement(spec, "output", methods)
	window, err := setWindowFields(c, value.ObjectOf(bson.End(spec, at)))
	if err != nil {
		return nil, err
	}
	return func(x *Exec, src Iter) (Iter, error) {
		var err error
		if methods.Len() > 0 || arg.Get("sortBy").IsDefined() {
			if src, err = window(x, src); err != nil {
				return nil, err
			}
		}
		return &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) { return add(x.Env, d) }}, nil
	}, nil
}

// partitionByFields returns the expression {0: "$a", 1: "$b"} for the fields a and b.
func partitionByFields(fields value.Value) (value.Value, error) {
	if fields.Kind() != value.Array {
		return fields, merr.New(merr.TypeMismatch, "BSON field '$fill.partitionByFields' is the wrong type '%s', "+
			"expected type 'array'", expr.TypeName(fields))
	}
	at, b := bson.Begin(nil)
	for i, f := range value.Elements(fields) {
		if f.Kind() != value.String {
			return f, merr.New(merr.TypeMismatch, "BSON field '$fill.partitionByFields.%d' is the wrong type '%s', "+
				"expected type 'string'", i, expr.TypeName(f))
		}
		if strings.HasPrefix(f.Str(), "$") {
			return f, merr.New(merr.FailedToParse, "'$fill' partitionByFields cannot begin with '$': %s", f.Str())
		}
		b = value.AppendElement(b, strconv.Itoa(i), value.StringOf("$"+f.Str()))
	}
	return value.ObjectOf(bson.End(b, at)), nil
}

// fillOutputs returns the output of $setWindowFields and the argument of $addFields for the output of $fill.
func fillOutputs(output value.Value) (methods, values value.Value, err error) {
	ma, m := bson.Begin(nil)
	va, v := bson.Begin(nil)
	for it := output.Iter(); it.Next(); {
		f, path := it.Value(), value.StringOf("$"+string(it.Key()))
		method, given := f.Get("method"), f.Get("value")
		if f.Kind() != value.Object || f.Len() != 1 || method.IsDefined() == given.IsDefined() {
			return methods, values, merr.New(6050202, "Each fill output specification must be an object with exactly "+
				"one of 'method' or 'value' fields")
		}
		if given.IsDefined() {
			ifNull := field("$ifNull", value.MakeArray([]value.Value{path, given}))
			v = value.AppendElement(v, it.Key(), ifNull)
			continue
		}
		op := map[string]string{"locf": "$locf", "linear": "$linearFill"}[method.Str()]
		if op == "" {
			return methods, values, merr.New(6050202, "Method must be either locf or linear")
		}
		m = value.AppendElement(m, it.Key(), field(op, path))
	}
	return value.ObjectOf(bson.End(m, ma)), value.ObjectOf(bson.End(v, va)), nil
}
