package filter

import (
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
)

// exprSarg is a condition of $expr that an index can answer: the value at a path equals a value that doesn't depend on
// the document, or is an element of it.
//
// Example: {$expr: {$eq: ["$item", "$$id"]}} in the pipeline of a $lookup. When the variable has a value, the matches
// are among the documents that {item: <value>} finds. Without it each document of the outer collection would read the
// whole foreign one.
type exprSarg struct {
	segs []string
	x    expr.Expr
	in   bool
}

// exprSargs appends the conditions of an expression's top-level conjunction to out.
func exprSargs(out []exprSarg, v value.Value, s *expr.Scope) []exprSarg {
	if v.Kind() != value.Object || v.Len() != 1 {
		return out
	}
	it := v.Iter()
	it.Next()
	op, list := string(it.Key()), it.Value()
	if list.Kind() != value.Array {
		return out
	}
	args := value.Elements(list)
	switch {
	case op == "$and":
		for _, a := range args {
			out = exprSargs(out, a, s)
		}
	case (op == "$eq" || op == "$in") && len(args) == 2:
		path, other := fieldPath(args[0]), args[1]
		if path == nil && op == "$eq" {
			path, other = fieldPath(args[1]), args[0]
		}
		if path == nil || !fixed(other) && !(op == "$in" && fixedList(other)) {
			return out
		}
		if x, err := expr.Compile(other, s); err == nil {
			out = append(out, exprSarg{path, x, op == "$in"})
		}
	}
	return out
}

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

// fixed reports whether an expression is a scalar or a variable of a user, whose names don't begin with a capital.
func fixed(v value.Value) bool {
	if v.Kind() != value.String {
		return indexable(v)
	}
	s := v.Str()
	if !strings.HasPrefix(s, "$") {
		return true
	}
	return len(s) > 2 && s[1] == '$' && !(s[2] >= 'A' && s[2] <= 'Z')
}

// fixedList reports whether an expression is a list of such expressions.
func fixedList(v value.Value) bool {
	if v.Kind() != value.Array {
		return false
	}
	for it := v.Iter(); it.Next(); {
		if !fixed(it.Value()) {
			return false
		}
	}
	return true
}

// PredIn is Pred together with the conditions of $expr, whose variables have the values of e.
func (f *Filter) PredIn(e *expr.Env) *access.Pred {
	if len(f.exprs) == 0 {
		return f.Pred()
	}
	ps := []*access.Pred{f.Pred()}
	for _, s := range f.exprs {
		v, err := s.x(e.With(value.ObjectOf(bson.Empty)))
		if err != nil { // it comes again with the first document
			continue
		}
		c := sarg{kind: sargEq, v: v}
		if s.in {
			if v.Kind() != value.Array {
				continue
			}
			c = sarg{kind: sargIn, vs: value.Elements(v)}
		}
		if f.coll != nil && collate.Affects(v) { // the index has the order of bytes
			continue
		}
		n := pathNode{path: strings.Join(s.segs, "."), segs: s.segs, sarg: c}
		ps = append(ps, n.pred(nil))
	}
	return allOf(ps)
}
