package filter

import (
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/schema"
)

// breaker describes which clauses of a query a document doesn't satisfy, in the shape that MongoDB gives for
// validators. It works on the query's own document, and compiles each clause again: it is used only for documents that
// are refused.
//
// Example: the document {a: 1} and the query {a: {$gt: 5}} give {operatorName: "$gt", specifiedAs: {a: {$gt: 5}},
// reason: "comparison failed", consideredValue: 1}.
type breaker struct {
	o   Options
	e   *expr.Env
	doc value.Value
}

// Broken returns why a document doesn't match a query.
func Broken(q value.Value, o Options, e *expr.Env, doc value.Value) (value.Value, error) {
	b := &breaker{o, e, doc}
	at, dst := bson.Begin(nil)
	dst, err := b.query(dst, q, false)
	return value.ObjectOf(bson.End(dst, at)), err
}

// matches evaluates a query.
func (b *breaker) matches(q value.Value) (bool, error) {
	f, err := Compile(q, b.o)
	if err != nil {
		return false, err
	}
	return f.Match(b.e, b.doc)
}

// clauses splits a query into its conditions: {a: {$gt: 1, $lt: 5}, b: 2} has three.
func clauses(q value.Value) (out []value.Value) {
	for it := q.Iter(); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if name == "$comment" {
			continue
		}
		if strings.HasPrefix(name, "$") || !isOperatorObject(v) || v.Len() == 1 {
			out = append(out, single(name, v))
			continue
		}
		for ops := v.Iter(); ops.Next(); {
			op := string(ops.Key())
			switch {
			case op == "$options":
			case op == "$regex" && v.Get("$options").IsDefined():
				at, b := bson.Begin(nil)
				b = value.AppendElement(b, op, ops.Value())
				b = value.AppendElement(b, "$options", v.Get("$options"))
				out = append(out, single(name, value.ObjectOf(bson.End(b, at))))
			default:
				out = append(out, single(name, single(op, ops.Value())))
			}
		}
	}
	return out
}

func single(name string, v value.Value) value.Value {
	at, b := bson.Begin(nil)
	return value.ObjectOf(bson.End(value.AppendElement(b, name, v), at))
}

// query appends why a query fails. With inverted it appends why it holds, for a query in $nor or $not.
func (b *breaker) query(dst []byte, q value.Value, inverted bool) ([]byte, error) {
	cs := clauses(q)
	if len(cs) == 1 {
		return b.clause(dst, cs[0], inverted)
	}
	return b.list(bson.AppendString(dst, "operatorName", "$and"), cs, !inverted, inverted)
}

// list appends the clauses of $and, $or and $nor: with some only those that are to blame, else all.
func (b *breaker) list(dst []byte, cs []value.Value, some, inverted bool) ([]byte, error) {
	name := "clausesNotSatisfied"
	if inverted {
		name = "clausesSatisfied"
	}
	return b.blamed(dst, name, cs, some, inverted)
}

func (b *breaker) blamed(dst []byte, name string, cs []value.Value, some, inverted bool) ([]byte, error) {
	at, dst := bson.BeginArray(dst, name)
	n := 0
	for i, c := range cs {
		ok, err := b.matches(c)
		if err != nil {
			return dst, err
		}
		if some && ok != inverted {
			continue
		}
		oa, ob := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, n))
		da, ob := bson.BeginObject(bson.AppendInt64(ob, "index", int64(i)), "details")
		if ob, err = b.query(ob, c, inverted); err != nil {
			return ob, err
		}
		dst = bson.End(bson.End(ob, da), oa)
		n++
	}
	return bson.End(dst, at), nil
}

// clause appends why a query with one condition fails, or holds.
func (b *breaker) clause(dst []byte, c value.Value, inverted bool) ([]byte, error) {
	it := c.Iter()
	it.Next()
	name, v := string(it.Key()), it.Value()
	switch name {
	case "$and":
		return b.list(bson.AppendString(dst, "operatorName", name), value.Elements(v), !inverted, inverted)
	case "$or":
		return b.list(bson.AppendString(dst, "operatorName", name), value.Elements(v), inverted, inverted)
	case "$nor":
		dst = bson.AppendString(dst, "operatorName", name)
		if inverted {
			return b.blamed(dst, "clausesSatisfied", value.Elements(v), false, false)
		}
		return b.blamed(dst, "clausesNotSatisfied", value.Elements(v), true, true)
	case "$jsonSchema":
		return b.schema(dst, v, inverted)
	case "$expr":
		return b.expr(dst, c, v, inverted)
	}
	if strings.HasPrefix(name, "$") {
		dst = value.AppendElement(bson.AppendString(dst, "operatorName", name), "specifiedAs", c)
		return bson.AppendString(dst, "reason", pick(inverted, "expression always evaluates to false",
			"expression always evaluates to true")), nil
	}
	return b.leaf(dst, name, v, c, inverted)
}

func pick(inverted bool, normal, other string) string {
	if inverted {
		return other
	}
	return normal
}

func (b *breaker) schema(dst []byte, v value.Value, inverted bool) ([]byte, error) {
	if inverted {
		dst = bson.AppendString(dst, "operatorName", "$jsonSchema")
		return bson.AppendString(dst, "reason", "schema matched"), nil
	}
	s, err := schema.Compile(v, b.o.Run)
	if err != nil {
		return dst, err
	}
	return s.Explain(dst, b.doc), nil
}

func (b *breaker) expr(dst []byte, c, v value.Value, inverted bool) ([]byte, error) {
	dst = value.AppendElement(bson.AppendString(dst, "operatorName", "$expr"), "specifiedAs", c)
	x, err := expr.Compile(v, b.o.Scope)
	if err != nil {
		return dst, err
	}
	res, err := x(b.e.With(b.doc))
	if err != nil {
		dst = bson.AppendString(dst, "reason", "failed to evaluate aggregation expression")
		e := merr.From(err)
		at, ob := bson.BeginObject(dst, "details")
		ob = bson.AppendInt32(ob, "code", e.Code)
		ob = bson.AppendString(bson.AppendString(ob, "codeName", e.CodeName()), "errmsg", e.Msg)
		return bson.End(ob, at), nil
	}
	dst = bson.AppendString(dst, "reason", pick(inverted, "expression did not match", "expression did match"))
	return value.AppendElement(dst, "expressionResult", res), nil
}

// reasons are the reasons of operators on a path: why they fail, and why they hold.
var reasons = map[string][2]string{
	"$all":       {"array did not contain all specified values", "array did contain all specified values"},
	"$elemMatch": {"array did not satisfy the child predicate", "array did satisfy the child predicate"},
	"$exists":    {"path does not exist", "path does exist"},
	"$in":        {"no matching value found in array", "matching value found in array"},
	"$mod":       {"$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"},
	"$regex":     {"regular expression did not match", "regular expression did match"},
	"$size":      {"array length was not equal to given size", "array length was equal to given size"},
	"$type":      {"type did not match", "type did match"},
	"$bits":      {"bitwise operator failed to match", "bitwise operator matched successfully"},
	"comparison": {"comparison failed", "comparison succeeded"},
}

// wanted are the types of operators that need certain types.
var wanted = map[string][]string{
	"$elemMatch": {"array"}, "$size": {"array"}, "$mod": {"decimal", "double", "int", "long"},
	"$regex": {"regex", "string", "symbol"}, "$bits": {"binData", "decimal", "double", "int", "long"},
}

// leaf appends why a condition on a path fails.
func (b *breaker) leaf(dst []byte, path string, v, spec value.Value, inverted bool) ([]byte, error) {
	op, arg := "$eq", v
	switch {
	case v.Kind() == value.Regex:
		op = "$regex"
	case isOperatorObject(v):
		it := v.Iter()
		it.Next()
		op, arg = string(it.Key()), it.Value()
	}
	of, turned := op, ""
	switch {
	case op == "$not":
		return b.not(dst, path, arg, spec, inverted)
	case op == "$ne":
		of, turned = "$eq", op
	case op == "$nin":
		of, turned = "$in", op
	case op == "$exists" && !expr.Truthy(arg):
		turned = op
	case strings.HasPrefix(op, "$bits"):
		of = "$bits"
	}
	if turned != "" {
		inverted = !inverted
	}
	dst = value.AppendElement(bson.AppendString(dst, "operatorName", op), "specifiedAs", spec)
	if of == "$exists" {
		return bson.AppendString(dst, "reason", pick(inverted, reasons[of][0], reasons[of][1])), nil
	}
	r, ok := reasons[of]
	if !ok {
		r = reasons["comparison"]
	}
	vs, found := b.values(path, of)
	if !found {
		return bson.AppendString(dst, "reason", "field was missing"), nil
	}
	if types, bad := b.types(of, vs); bad {
		return b.wrongTypes(dst, vs, types), nil
	}
	dst = bson.AppendString(dst, "reason", pick(inverted, r[0], r[1]))
	dst = considered(dst, "consideredValue", vs)
	if of == "$type" {
		dst = considered(dst, "consideredType", typesOf(vs))
	}
	return dst, nil
}

// not appends why {path: {$not: ..}} fails: because the condition in it holds.
func (b *breaker) not(dst []byte, path string, arg, _ value.Value, inverted bool) ([]byte, error) {
	dst = bson.AppendString(dst, "operatorName", "$not")
	at, dst := bson.BeginObject(dst, "details")
	dst, err := b.query(dst, single(path, arg), !inverted)
	return bson.End(dst, at), err
}

// values returns the values at a path that a condition looks at. found is false if there is none.
func (b *breaker) values(path, op string) (vs []value.Value, found bool) {
	whole := op == "$size" || op == "$elemMatch" || op == "$all"
	visit(b.doc, splitPath(path), !whole, func(v value.Value, _ int) bool {
		if v.IsDefined() {
			found = true
			if whole || v.Kind() != value.Array {
				vs = append(vs, v)
			}
		}
		return false
	})
	return vs, found
}

// types reports whether none of the values has one of the types that an operator needs.
func (b *breaker) types(op string, vs []value.Value) (want []string, bad bool) {
	if want = wanted[op]; want == nil {
		return nil, false
	}
	for _, v := range vs {
		for _, w := range want {
			if expr.TypeName(v) == w {
				return want, false
			}
		}
	}
	return want, true
}

func (b *breaker) wrongTypes(dst []byte, vs []value.Value, want []string) []byte {
	dst = bson.AppendString(dst, "reason", "type did not match")
	dst = considered(dst, "consideredType", typesOf(vs))
	if len(want) == 1 {
		dst = bson.AppendString(dst, "expectedType", want[0])
	} else {
		dst = bson.AppendStrings(dst, "expectedTypes", want...)
	}
	return considered(dst, "consideredValue", vs)
}

func typesOf(vs []value.Value) (out []value.Value) {
	seen := map[string]bool{}
	for _, v := range vs {
		if t := expr.TypeName(v); !seen[t] {
			seen[t] = true
			out = append(out, value.StringOf(t))
		}
	}
	return out
}

// considered appends one value under its name, or several under the plural.
func considered(dst []byte, name string, vs []value.Value) []byte {
	if len(vs) == 1 {
		return value.AppendElement(dst, name, vs[0])
	}
	return value.AppendElement(dst, name+"s", value.MakeArray(vs))
}
