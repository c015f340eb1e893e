package indexes

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// Filters of partial indexes, as conditions of the core.
//
// Example: {a: {$gt: 5}, b: {$exists: true}} is "a is greater than 5 and b is there".

// maxFilterDepth is the depth of $and and $or in the filter of a partial index.
const maxFilterDepth = 20

// partialFilter translates the filter of a partial index.
func partialFilter(f value.Value, depth int) (*core.Condition, error) {
	if depth > maxFilterDepth {
		return nil, CannotCreate("the partialFilterExpression is too deep")
	}
	out := &core.Condition{}
	for it := f.Iter(); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == "$and" || name == "$or":
			parts, err := partialFilters(name, v, depth)
			if err != nil {
				return nil, err
			}
			if name == "$and" {
				out.All = append(out.All, parts...)
			} else {
				out.All = append(out.All, core.Condition{Any: parts})
			}
		case strings.HasPrefix(name, "$"):
			return nil, inPartial(name)
		case v.Kind() == value.Object && operators(v):
			for ops := v.Iter(); ops.Next(); {
				part, err := partialOperator(strings.Split(name, "."), string(ops.Key()), ops.Value())
				if err != nil {
					return nil, err
				}
				out.All = append(out.All, part)
			}
		default:
			part, err := partialOperator(strings.Split(name, "."), "$eq", v)
			if err != nil {
				return nil, err
			}
			out.All = append(out.All, part)
		}
	}
	return out, nil
}

func inPartial(what string) error {
	return CannotCreate("Expression not supported in partial index: %s", what)
}

// operators reports whether an object has operators and isn't a value.
func operators(v value.Value) bool {
	it := v.Iter()
	return it.Next() && strings.HasPrefix(string(it.Key()), "$")
}

func partialFilters(name string, v value.Value, depth int) (out []core.Condition, err error) {
	if v.Kind() != value.Array || v.Len() == 0 {
		return nil, merr.New(merr.BadValue, "%s argument must be a non-empty array", name)
	}
	for it := v.Iter(); it.Next(); {
		if it.Value().Kind() != value.Object {
			return nil, merr.New(merr.BadValue, "%s argument's entries must be objects", name)
		}
		part, err := partialFilter(it.Value(), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, *part)
	}
	return out, nil
}

// comparisons are the comparisons of a partial index's filter.
var comparisons = map[string]string{"$eq": core.OpEqual, "$lt": core.OpLess, "$lte": core.OpLessOrEqual,
	"$gt": core.OpGreater, "$gte": core.OpGreaterOrEqual}

func partialOperator(path []string, op string, v value.Value) (c core.Condition, err error) {
	switch op {
	case "$exists":
		if !expr.Truthy(v) {
			return c, inPartial("$not")
		}
		return core.Condition{Op: core.OpExists, Path: path}, nil
	case "$type":
		return partialTypes(path, v)
	case "$in":
		if v.Kind() != value.Array || v.Len() == 0 {
			return c, merr.New(merr.BadValue, "$in needs an array")
		}
		for it := v.Iter(); it.Next(); {
			part, err := partialOperator(path, "$eq", it.Value())
			if err != nil {
				return c, err
			}
			c.Any = append(c.Any, part)
		}
		return c, nil
	}
	is, ok := comparisons[op]
	if !ok || v.Kind() == value.Regex {
		return c, inPartial(op)
	}
	return core.Condition{Op: is, Path: path, Value: value.AppendTyped(nil, v)}, nil
}

// partialTypes translates $type: a name or number of a type, or several.
func partialTypes(path []string, v value.Value) (core.Condition, error) {
	list := []value.Value{v}
	if v.Kind() == value.Array {
		list = value.Elements(v)
	}
	c := core.Condition{Op: core.OpType, Path: path}
	for _, t := range list {
		n, number := num.ToInt64(t, true)
		switch {
		case t.Kind() == value.String && t.Str() == "number":
			c.Types = append(c.Types, bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128)
		case t.Kind() == value.String && typeNumbers[t.Str()] != 0:
			c.Types = append(c.Types, typeNumbers[t.Str()])
		case number && n > 0 && n < 256:
			c.Types = append(c.Types, byte(n))
		case number && n == -1:
			c.Types = append(c.Types, bson.TypeMinKey)
		default:
			return c, merr.New(merr.BadValue, "Unknown type name alias: %s", update.Show(t))
		}
	}
	return c, nil
}

// typeNumbers are the types by their names in $type.
var typeNumbers = map[string]byte{
	"double": bson.TypeDouble, "string": bson.TypeString, "object": bson.TypeDocument, "array": bson.TypeArray,
	"binData": bson.TypeBinary, "objectId": bson.TypeObjectID, "bool": bson.TypeBool, "date": bson.TypeDate,
	"null": bson.TypeNull, "regex": bson.TypeRegex, "javascript": bson.TypeCode, "symbol": bson.TypeSymbol,
	"int": bson.TypeInt32, "timestamp": bson.TypeTimestamp, "long": bson.TypeInt64, "decimal": bson.TypeDecimal128,
	"minKey": bson.TypeMinKey, "maxKey": bson.TypeMaxKey,
}
