package filter

import (
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/schema"
)

type compiler struct {
	opts   Options
	inside int   // how many operators other than $and are around
	near   *Near // that was compiled
	txt    *Text // that was compiled
	within int   // how many $nor, $not and $elemMatch are around

	elements int // how many $elemMatch are around
}

func tooDeep(depth int) error {
	if depth > maxDepth {
		return merr.New(merr.BadValue, "exceeded depth limit of %d when converting the query", maxDepth)
	}
	return nil
}

// document compiles `{path: condition, $and: [..], ..}`.
func (c *compiler) document(q value.Value, depth int) (node, error) {
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	all := andNode{}
	for it := q.Iter(); it.Next(); {
		key := string(it.Key())
		if !strings.HasPrefix(key, "$") || depth > 0 && expr.DBRefName(key) {
			if undefined(&it) {
				return nil, errUndefined
			}
			n, err := c.field(key, it.Value(), depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
			continue
		}
		n, err := c.top(key, it.Value(), depth+1)
		if err != nil {
			return nil, err
		}
		if n != nil {
			all = append(all, n)
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

// top compiles an operator at the place of a path.
func (c *compiler) top(key string, v value.Value, depth int) (node, error) {
	switch key {
	case "$and", "$or", "$nor":
		return c.list(key, v, depth)
	case "$comment":
		return nil, nil
	case "$expr":
		if c.elements > 0 {
			return nil, merr.New(merr.BadValue, "$expr can only be applied to the top-level document")
		}
		x, err := expr.Compile(v, c.opts.Scope)
		if err != nil {
			return nil, err
		}
		n := exprNode{x: x}
		if s, ok := compileSarg(v, c.opts.Scope); ok {
			n.sarg = &s
		}
		return n, nil
	case "$jsonSchema":
		s, err := schema.Compile(v, c.opts.Run)
		return schemaNode{s}, err
	case "$alwaysTrue":
		return constNode(true), nil
	case "$alwaysFalse":
		return constNode(false), nil
	case "$sampleRate":
		return c.sampleRate(v)
	case "$text":
		return c.text(v)
	case "$where":
		return c.where(v)
	}
	if Unsupported[key] {
		return nil, merr.NotSupported(key)
	}
	return nil, merr.New(merr.BadValue, "unknown top level operator: %s. If you have a field name that starts with "+
		"a '$' symbol, consider using $getField or $setField.", key)
}

func (c *compiler) sampleRate(v value.Value) (node, error) {
	if !v.IsNumber() || v.Float() < 0 || v.Float() > 1 {
		return nil, merr.New(merr.BadValue, "numeric argument to $sampleRate must be in [0, 1]")
	}
	rate := v.Float()
	return exprNode{x: func(e *expr.Env) (value.Value, error) { return value.BoolOf(e.Random() < rate), nil }}, nil
}

func (c *compiler) list(key string, v value.Value, depth int) (node, error) {
	if v.Kind() != value.Array {
		return nil, merr.New(merr.BadValue, "%s must be an array", key)
	}
	if key != "$and" {
		c.inside++
		defer func() { c.inside-- }()
	}
	if key == "$nor" {
		c.within++
		defer func() { c.within-- }()
	}
	var kids []node
	for it := v.Iter(); it.Next(); {
		if it.Value().Kind() != value.Object {
			return nil, merr.New(merr.BadValue, "$or/$and/$nor entries need to be full objects")
		}
		n, err := c.document(it.Value(), depth+1)
		if err != nil {
			return nil, err
		}
		kids = append(kids, n)
	}
	if len(kids) == 0 {
		return nil, merr.New(merr.BadValue, "%s argument must be a non-empty array", key)
	}
	switch key {
	case "$and":
		return andNode(kids), nil
	case "$or":
		if len(kids) == 1 {
			return kids[0], nil
		}
		return orNode(kids), nil
	}
	return notNode{orNode(kids)}, nil
}

// errUndefined is the error for a comparison with BSON's deprecated undefined, which otherwise reads as null.
var errUndefined = merr.New(merr.BadValue, "cannot compare to undefined")

// compares are the operators that compare with one value.
var compares = map[string]bool{"$eq": true, "$gt": true, "$gte": true, "$lt": true, "$lte": true, "$ne": true}

// undefined reports whether an iterator is at a value undefined.
func undefined(it *value.Iter) bool { return it.Element()[0] == bson.TypeUndefined }

// field compiles `path: condition`.
func (c *compiler) field(path string, v value.Value, depth int) (node, error) {
	if isOperatorObject(v) {
		return c.operators(path, v, depth)
	}
	if v.Kind() == value.Regex {
		return c.regex(path, v, value.Undef())
	}
	return c.newEq(path, v), nil
}

// isOperatorObject reports whether v is `{$op: ..}`. A DBRef (`$ref`, `$id`, `$db`) is a value.
func isOperatorObject(v value.Value) bool {
	if v.Kind() != value.Object {
		return false
	}
	it := v.Iter()
	if !it.Next() || len(it.Key()) == 0 || it.Key()[0] != '$' {
		return false
	}
	return !expr.DBRefName(string(it.Key()))
}

// operators compiles `{$gt: 1, $lt: 5}` on a path.
func (c *compiler) operators(path string, v value.Value, depth int) (node, error) {
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	var all andNode
	for it := v.Iter(); it.Next(); {
		key := string(it.Key())
		op, ok := ops[key]
		if compares[key] && undefined(&it) {
			return nil, errUndefined
		}
		if !ok {
			if Unsupported[key] {
				return nil, merr.NotSupported(key)
			}
			return nil, merr.New(merr.BadValue, "unknown operator: %s", key)
		}
		if op == nil { // an option of another operator ($options)
			continue
		}
		n, err := op(c, path, it.Value(), v, depth+1)
		if err != nil {
			return nil, err
		}
		if n != nil {
			all = append(all, n)
		}
	}
	if !v.Get("$regex").IsDefined() && v.Get("$options").IsDefined() {
		return nil, merr.New(merr.BadValue, "$options needs a $regex")
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

func newLeaf(path string, leaf bool, test func(v value.Value) bool) *pathNode {
	return &pathNode{path: path, segs: splitPath(path), leaf: leaf, test: test}
}

func (c *compiler) newEq(path string, v value.Value) *pathNode {
	n := newLeaf(path, true, c.eqTest(v))
	n.eq = v
	n.sarg = sarg{kind: sargEq, v: v, coll: c.coll(v)}
	return n
}
