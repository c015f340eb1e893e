package schema

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

func uniqueItems(_ *compiler, name string, v, _ value.Value) (rule, error) {
	if v.Kind() != value.Bool {
		return nil, wrongType(name, "a boolean")
	}
	if !v.Bool() {
		return nil, nil
	}
	return &leaf{name: name, spec: object(name, v), reason: "found a duplicate item",
		test: func(v value.Value) bool {
			if v.Kind() != value.Array {
				return true
			}
			at, _ := duplicate(value.Elements(v))
			return at < 0
		}, more: func(dst []byte, v value.Value) []byte {
			_, twice := duplicate(value.Elements(v))
			return value.AppendElement(value.AppendElement(dst, "consideredValue", v), "duplicatedValue", twice)
		}}, nil
}

// each is a schema for all elements of an array from a position on.
type each struct {
	name, reason string
	from         int
	s            *Schema
}

// bad returns the first element that breaks the schema, and its position, -1 if there is none.
func (e *each) bad(v value.Value) (int, value.Value) {
	if v.Kind() != value.Array {
		return -1, v
	}
	i := 0
	for it := v.Iter(); it.Next(); i++ {
		if i >= e.from && !e.s.holds(it.Value()) {
			return i, it.Value()
		}
	}
	return -1, v
}

func (e *each) holds(v value.Value) bool {
	i, _ := e.bad(v)
	return i < 0
}

func (e *each) explain(dst []byte, v value.Value) []byte {
	i, x := e.bad(v)
	dst = append(bson.AppendString(dst, "operatorName", e.name), e.s.notes...)
	dst = bson.AppendString(dst, "reason", e.reason)
	dst = bson.AppendInt64(dst, "itemIndex", int64(i))
	return e.s.broken(dst, "details", x)
}

// tuple has a schema for each of the first elements of an array.
type tuple []*Schema

func (t tuple) holds(v value.Value) bool {
	for i, x := range t.elements(v) {
		if !t[i].holds(x) {
			return false
		}
	}
	return true
}

func (t tuple) elements(v value.Value) []value.Value {
	if v.Kind() != value.Array {
		return nil
	}
	vs := value.Elements(v)
	return vs[:min(len(vs), len(t))]
}

func (t tuple) explain(dst []byte, v value.Value) []byte {
	dst = bson.AppendString(dst, "operatorName", "items")
	at, dst := bson.BeginArray(dst, "details")
	n := 0
	for i, x := range t.elements(v) {
		if t[i].holds(x) {
			continue
		}
		oa, ob := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, n))
		ob = bson.AppendInt64(ob, "itemIndex", int64(i))
		dst = bson.End(t[i].broken(append(ob, t[i].notes...), "details", x), oa)
		n++
	}
	return bson.End(dst, at)
}

func itemsRule(c *compiler, name string, v, _ value.Value) (rule, error) {
	switch v.Kind() {
	case value.Object:
		s, err := c.schema(v)
		return &each{name: name, reason: "At least one item did not match the sub-schema", s: s}, err
	case value.Array:
	default:
		return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword 'items' must be an array or an object, not %s",
			expr.TypeName(v))
	}
	var t tuple
	for it := v.Iter(); it.Next(); {
		if it.Value().Kind() != value.Object {
			return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword 'items' requires that each element of the "+
				"array is an object, but found a %s", expr.TypeName(it.Value()))
		}
		s, err := c.schema(it.Value())
		if err != nil {
			return nil, err
		}
		t = append(t, s)
	}
	return t, nil
}

// additionalItems is about the elements behind those of items, if that is an array; else it has no effect.
func additionalItems(c *compiler, name string, v, schema value.Value) (rule, error) {
	items := schema.Get("items")
	from := items.Len()
	switch v.Kind() {
	case value.Object:
		s, err := c.schema(v)
		if items.Kind() != value.Array || err != nil {
			return nil, err
		}
		return &each{name: name, reason: "At least one additional item did not match the sub-schema", from: from,
			s: s}, nil
	case value.Bool:
		if v.Bool() || items.Kind() != value.Array {
			return nil, nil
		}
		return &leaf{name: name, spec: object(name, v), reason: "found additional items",
			test: func(v value.Value) bool { return v.Kind() != value.Array || v.Len() <= from },
			more: func(dst []byte, v value.Value) []byte {
				return value.AppendElement(dst, "additionalItems", value.MakeArray(value.Elements(v)[from:]))
			}}, nil
	}
	return nil, merr.New(merr.TypeMismatch, "$jsonSchema keyword 'additionalItems' must be either an object or a "+
		"boolean, but got a %s", expr.TypeName(v))
}
