package agg

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
)

// The filter of $vectorSearch has few operators, on paths that the index has for filters, and operands of few types.

// vectorFilterOps are the operators on a path.
var vectorFilterOps = []string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$not"}

// maxVectorFilterDepth is how deep a filter may be nested.
const maxVectorFilterDepth = 100

// checkVectorFilter checks a filter on an index with these paths.
func checkVectorFilter(f value.Value, paths []string, depth int) error {
	if depth > maxVectorFilterDepth {
		return mongotFault("\"filter\" is nested too deep")
	}
	for it := f.Iter(); f.IsDefined() && it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == "$and" || name == "$or" || name == "$nor":
			if v.Kind() != value.Array {
				return mongotFault("\"filter.%s\" must be an array", name)
			}
			for _, e := range value.Elements(v) {
				if e.Kind() != value.Object {
					return mongotFault("\"filter.%s\" must be a document", name)
				}
				if err := checkVectorFilter(e, paths, depth+1); err != nil {
					return err
				}
			}
			continue
		case strings.HasPrefix(name, "$"):
			return mongotFault("\"filter\" unrecognized field \"%s\"", name)
		}
		if err := checkVectorOperand(name, v, depth); err != nil {
			return err
		}
		if !slices.Contains(paths, name) {
			return mongotFault("Path '%s' needs to be indexed as filter", name)
		}
	}
	return nil
}

// checkVectorOperand checks the condition on a path: a value, or operators.
func checkVectorOperand(path string, v value.Value, depth int) error {
	if v.Kind() != value.Object {
		return checkOperandType(v)
	}
	for it := v.Iter(); it.Next(); {
		op, x := string(it.Key()), it.Value()
		if !slices.Contains(vectorFilterOps, op) {
			return mongotFault("\"filter.%s\" unrecognized field \"%s\"", path, op)
		}
		list := []value.Value{x}
		switch {
		case op == "$exists":
			continue
		case op == "$not":
			if depth > maxVectorFilterDepth || x.Kind() != value.Object {
				return mongotFault("\"filter.%s.$not\" must be a document", path)
			}
			if err := checkVectorOperand(path, x, depth+1); err != nil {
				return err
			}
			continue
		case op == "$in" || op == "$nin":
			if x.Kind() != value.Array {
				return mongotFault("\"filter.%s.%s\" must be an array", path, op)
			}
			list = value.Elements(x)
		}
		for _, e := range list {
			if err := checkOperandType(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOperandType(v value.Value) error {
	switch v.Kind() {
	case value.Bool, value.Int32, value.Int64, value.Double, value.String, value.Date, value.ObjectID, value.UUID,
		value.Null:
		return nil
	}
	return mongotFault("Operand type is not supported for $vectorSearch: %s", expr.TypeName(v))
}
