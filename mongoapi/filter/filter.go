// Package filter compiles MongoDB query documents.
//
// A compiled Filter tests a stored document without decoding it, and provides the part of the condition that an index
// can answer (see Pred). The registry of operators is the table ops. A new operator needs one entry there, its
// implementation, and lines in testdata.
//
// Example: {a: {$gt: 1}, $or: [{b: 2}, {c: null}]} is a conjunction of the condition a > 1 and a disjunction. Its Pred
// is a > 1 alone: documents without c satisfy c: null, and no index entry tells that c is missing, so the disjunction
// becomes "all".
package filter

import (
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/schema"
)

// maxDepth limits the nesting of query documents: that of the messages that they come in.
const maxDepth = 200

// Filter is a compiled query document. It refers to bytes of the query only if it was compiled from bytes that stay
// valid.
type Filter struct {
	root   node
	all    bool
	run    *expr.Run
	near   *Near
	text   *Text
	coll   *collate.Collation
	leaves []*pathNode // conditions that each match satisfies: the terms of the top-level conjunction
}

// node is one condition on a document.
type node interface {
	match(e *expr.Env, doc value.Value) (bool, error)
}

// Options describe the surroundings of the query.
type Options struct {
	// Scope has the variables that $expr may use; nil = only the built-in ones.
	Scope *expr.Scope
	// Run is that of the Env with which the filter will be used; nil = it is never ended.
	Run *expr.Run
	// NoNear refuses $near and $nearSphere.
	NoNear bool
	// NoText refuses $text.
	NoText bool
}

// compiledSize is the approximate number of bytes that a Filter and its access path need for each byte of the query
// document, measured with long lists in $in and $or.
const compiledSize = 16

// Compile compiles a query document. q must not change as long as the Filter is used. o.Run counts the Filter's memory.
func Compile(q value.Value, o Options) (*Filter, error) {
	if q.IsDefined() && q.Kind() != value.Object {
		return nil, merr.New(merr.TypeMismatch, "Expected field filter to be of type object")
	}
	if err := o.Run.Hold(compiledSize * len(q.Bytes())); err != nil {
		return nil, err
	}
	c := &compiler{opts: o}
	n, err := c.document(q, 0)
	if err != nil {
		return nil, err
	}
	f := &Filter{root: n, run: o.Run, near: c.near, text: c.txt, coll: o.Run.Collation()}
	f.collect(n)
	if c.near != nil && c.txt != nil {
		return nil, merr.New(merr.BadValue, "text and geoNear not allowed in same query")
	}
	if a, ok := n.(andNode); ok && len(a) == 0 {
		f.all = true
	}
	return f, nil
}

func (f *Filter) collect(n node) {
	switch n := n.(type) {
	case andNode:
		for _, k := range n {
			f.collect(k)
		}
	case *pathNode:
		f.leaves = append(f.leaves, n)
	}
}

// All reports whether the filter has no condition.
func (f *Filter) All() bool { return f.all }

// Match tests a document. e may be nil if the query has no $expr.
func (f *Filter) Match(e *expr.Env, doc value.Value) (bool, error) {
	if f.all {
		return true, nil
	}
	ok, err := f.root.match(e, doc)
	if err == nil {
		err = f.run.Cut()
	}
	return ok, err
}

// Equality is a condition `path: value` that each match of a filter satisfies. Upserts start from these, and key
// look-ups use them.
type Equality struct {
	Path  string
	Value value.Value
}

// Equalities returns the equality conditions of the top-level conjunction in the query's order. $in and $all with a
// single value count, regular expressions don't.
func (f *Filter) Equalities() []Equality {
	var out []Equality
	for _, l := range f.leaves {
		if l.eq.IsDefined() {
			out = append(out, Equality{l.path, l.eq})
		}
	}
	return out
}

// Equal returns the value that path must equal according to the top-level conjunction, Undefined if there is none.
func (f *Filter) Equal(path string) value.Value {
	for _, l := range f.leaves {
		if l.path == path && l.eq.IsDefined() {
			return l.eq
		}
	}
	return value.Undef()
}

// Exact is Equal for a value that no other one equals in the filter's collation, apart from numbers of other kinds.
func (f *Filter) Exact(path string) value.Value {
	v := f.Equal(path)
	if f.coll != nil && collate.Affects(v) {
		return value.Undef()
	}
	return v
}

// Position returns the index of the first array element in doc that satisfied a condition of the query on a path with
// the given first component. The positional operator $ uses it.
func (f *Filter) Position(doc value.Value, first string) (int, bool) {
	for pass := 0; pass < 2; pass++ { // a condition on that array first, then any
		for _, l := range f.leaves {
			if l.not || pass == 0 && l.segs[0] != first {
				continue
			}
			if i, ok := l.position(doc); ok {
				return i, true
			}
		}
	}
	return 0, false
}

type andNode []node

func (a andNode) match(e *expr.Env, doc value.Value) (bool, error) {
	for _, n := range a {
		if ok, err := n.match(e, doc); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

type orNode []node

func (o orNode) match(e *expr.Env, doc value.Value) (bool, error) {
	for _, n := range o {
		if ok, err := n.match(e, doc); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

type notNode struct{ node }

func (n notNode) match(e *expr.Env, doc value.Value) (bool, error) {
	ok, err := n.node.match(e, doc)
	return !ok && err == nil, err
}

// schemaNode is $jsonSchema.
type schemaNode struct{ s *schema.Schema }

func (n schemaNode) match(_ *expr.Env, doc value.Value) (bool, error) { return n.s.Matches(doc), nil }

type constNode bool

func (c constNode) match(*expr.Env, value.Value) (bool, error) { return bool(c), nil }

type exprNode struct {
	x    expr.Expr
	sarg *exprSarg // nil: no index can answer a part of it
}

func (n exprNode) match(e *expr.Env, doc value.Value) (bool, error) {
	if e == nil {
		return false, merr.New(merr.InternalError, "$expr without an environment")
	}
	v, err := n.x(e.With(doc))
	return expr.Truthy(v), err
}

// pathNode is a condition on the values at a path.
type pathNode struct {
	path string
	segs []string
	leaf bool // whether an array at the end of the path also represents its elements
	not  bool // no value may satisfy the condition
	test func(v value.Value) bool
	eq   value.Value // the value of an equality that is the whole condition
	sarg sarg        // how an index can answer it
}

func (p *pathNode) match(_ *expr.Env, doc value.Value) (bool, error) { return p.ok(doc), nil }

func (p *pathNode) ok(doc value.Value) bool {
	if len(p.segs) == 1 { // the common case, without visit
		v := doc.Get(p.segs[0])
		if v.Kind() != value.Array {
			return p.test(v) != p.not
		}
		if p.leaf {
			for it := v.Iter(); it.Next(); {
				if p.test(it.Value()) {
					return !p.not
				}
			}
		}
		return p.test(v) != p.not
	}
	return visit(doc, p.segs, p.leaf, func(v value.Value, _ int) bool { return p.test(v) }) != p.not
}

func (p *pathNode) position(doc value.Value) (int, bool) {
	at := -1
	if p.sarg.elem != nil { // $elemMatch, $all of $elemMatch: test contains the test of one element
		found := visit(doc, p.segs, false, func(v value.Value, _ int) bool {
			i := 0
			for it := v.Iter(); it.Next(); i++ {
				if p.sarg.elem(it.Value()) {
					at = i
					return true
				}
			}
			return false
		})
		return at, found && at >= 0
	}
	found := visit(doc, p.segs, p.leaf, func(v value.Value, i int) bool {
		if p.test(v) {
			at = i
			return true
		}
		return false
	})
	return at, found && at >= 0
}
