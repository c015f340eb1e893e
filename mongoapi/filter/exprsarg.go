package filter

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
)

// exprSarg is the part of a $expr that an index can answer: comparisons of the value at a path with a value that
// doesn't depend on the document, and conjunctions and disjunctions of these.
//
// Example: {$expr: {$eq: ["$item", "$$id"]}} in the pipeline of a $lookup. When the variable has a value, the matches
// are among the documents that {item: <value>} finds. Without it each document of the outer collection would read the
// whole foreign one.
//
// $expr compares otherwise than a query: all types are in one order, in which a missing value is the least, and an
// array is one value. So the documents with {$gt: ["$n", 5]} are those with a greater number, a string, an array and so
// on. A missing value has no entry, so an upper bound alone can't be answered.
type exprSarg struct {
	kind sargKind   // of a comparison; sargNone: all of kids, or with or any of them
	kids []exprSarg // each answers a part of one condition
	or   bool

	segs []string
	x    expr.Expr
}

// compileSarg returns the part of an expression that an index can answer; ok is false if there is none.
func compileSarg(v value.Value, s *expr.Scope) (c exprSarg, ok bool) {
	it := v.Iter()
	if v.Kind() != value.Object || v.Len() != 1 || !it.Next() || it.Value().Kind() != value.Array {
		return c, false
	}
	op, args := string(it.Key()), value.Elements(it.Value())
	if op == "$and" || op == "$or" {
		c.or = op == "$or"
		for _, a := range args {
			k, ok := compileSarg(a, s)
			switch {
			case ok && !k.or && !c.or && k.kind == sargNone:
				c.kids = append(c.kids, k.kids...)
			case ok:
				c.kids = append(c.kids, k)
			case c.or:
				return c, false
			}
		}
		return c, len(c.kids) > 0
	}
	kind := exprOps[op]
	if kind == sargNone || len(args) != 2 {
		return c, false
	}
	path, other := fieldPath(args[0]), args[1]
	if path == nil && kind != sargIn {
		path, other, kind = fieldPath(args[1]), args[0], mirrored[kind]
	}
	if path == nil || namesIndex(path) || !fixed(other) {
		return c, false
	}
	x, err := expr.Compile(other, s)
	return exprSarg{kind: kind, segs: path, x: x}, err == nil
}

var exprOps = map[string]sargKind{"$eq": sargEq, "$in": sargIn, "$gt": sargGt, "$gte": sargGte, "$lt": sargLt,
	"$lte": sargLte}

// mirrored are the comparisons with exchanged sides.
var mirrored = [...]sargKind{sargEq: sargEq, sargGt: sargLt, sargGte: sargLte, sargLt: sargGt, sargLte: sargGte}

// fieldPath returns the path of an expression such as "$a.b", nil for others.
func fieldPath(v value.Value) []string {
	if v.Kind() != value.String {
		return nil
	}
	p, ok := strings.CutPrefix(v.Str(), "$")
	if !ok || strings.HasPrefix(p, "$") {
		return nil
	}
	return strings.Split(p, ".")
}

// fixed reports whether an expression has the same value for all documents. Variables of a user have, whose names don't
// begin with a capital.
func fixed(v value.Value) bool {
	switch v.Kind() {
	case value.String:
		s, variable := strings.CutPrefix(v.Str(), "$$")
		if !variable {
			return !strings.HasPrefix(s, "$")
		}
		return s == "NOW" || s != "" && !(s[0] >= 'A' && s[0] <= 'Z')
	case value.Array, value.Object:
		for it := v.Iter(); it.Next(); {
			switch string(it.Key()) {
			case "$literal", "$const":
				continue
			case "$function", "$getField", "$meta", "$rand", "$setField", "$unsetField": // read the document, or vary
				return false
			}
			if !fixed(it.Value()) {
				return false
			}
		}
	}
	return true
}

// pred returns the condition on the entries of indexes. The variables have the values of e.
func (c *exprSarg) pred(e *expr.Env, coll *collate.Collation) *access.Pred {
	if c.kind != sargNone {
		return c.comparison(c.operand(e, coll))
	}
	ps := make([]*access.Pred, len(c.kids))
	vs := make([]value.Value, len(c.kids))
	for i := range c.kids {
		if k := &c.kids[i]; k.kind == sargNone {
			ps[i] = k.pred(e, coll)
		} else {
			vs[i] = k.operand(e, coll)
			ps[i] = k.comparison(vs[i])
		}
	}
	if c.or {
		return access.Or(ps...)
	}
	for i := range c.kids {
		for j := range c.kids {
			lo, hi := &c.kids[i], &c.kids[j]
			if lo.lower() && hi.upper() && slices.Equal(lo.segs, hi.segs) && ordered(vs[i]) &&
				vs[i].Class() == vs[j].Class() && ordered(vs[j]) { // all between them is of their type
				ps[i] = access.Range(access.NewPath(lo.segs...), lo.bound(vs[i]), hi.bound(vs[j]))
			}
		}
	}
	return allOf(ps)
}

// operand returns the value with which the path is compared, Undefined if an index can't tell what is compared with it.
func (c *exprSarg) operand(e *expr.Env, coll *collate.Collation) value.Value {
	v, err := c.x(e.With(value.ObjectOf(bson.Empty)))
	if err != nil || coll != nil && collate.Affects(v) { // the error comes again with the first document
		return value.Undef()
	}
	return v
}

func (c *exprSarg) lower() bool { return c.kind == sargGt || c.kind == sargGte }

func (c *exprSarg) upper() bool { return c.kind == sargLt || c.kind == sargLte }

func (c *exprSarg) bound(v value.Value) *access.Bound {
	return &access.Bound{Value: v, Inclusive: c.kind == sargGte || c.kind == sargLte}
}

// comparison returns the condition for a comparison with v. Equal values are at the path itself: where an array is on
// the way, the path's value is an array.
func (c *exprSarg) comparison(v value.Value) *access.Pred {
	path := access.NewPath(c.segs...)
	equals := func(v value.Value) bool { return v.Kind() == value.Null || indexable(v) }
	switch {
	case c.kind == sargEq && equals(v):
		return access.Eq(path, v)
	case c.kind == sargIn && v.Kind() == value.Array:
		vs := value.Elements(v)
		if slices.ContainsFunc(vs, func(v value.Value) bool { return !equals(v) }) {
			return access.All()
		}
		return access.In(path, vs...)
	case c.lower() && ordered(v):
		above := access.Range(path, c.bound(v), nil)
		above.Any = true
		return access.Or(append(c.beyond(v), above)...)
	}
	return access.All()
}

// beyond returns the conditions on values that are above v in the order of types, and not in the order of index
// entries. There booleans are before numbers. An array on the way to the path, which is the path's value, has its entry
// at its own path.
func (c *exprSarg) beyond(v value.Value) (ps []*access.Pred) {
	switch v.Class() {
	case value.ClassNumber, value.ClassString:
		for n := 1; n < len(c.segs); n++ {
			ps = append(ps, arrays(c.segs[:n]))
		}
		fallthrough
	case value.ClassObjectID:
		ps = append(ps, access.In(access.NewPath(c.segs...), value.BoolOf(false), value.BoolOf(true)))
	}
	return ps
}

// arrays is satisfied by documents with an array at a path.
func arrays(segs []string) *access.Pred {
	return access.Range(access.NewPath(segs...), &access.Bound{Value: value.ArrayOf(bson.Empty), Inclusive: true}, nil)
}
