// Package filter compiles MongoDB query documents.
//
// A compiled Filter decides a stored document without decoding it, and says which part of it an index can answer (see
// Pred). The registry is the table ops: one more operator is one entry there, its implementation, and lines in
// testdata.
package filter

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// MaxDepth bounds how deep query documents nest.
const MaxDepth = 100

// Filter is a compiled query document. It keeps no bytes of the query unless it was compiled from bytes that stay.
type Filter struct {
	root   node
	all    bool
	run    *expr.Run
	leaves []*pathNode // conditions that every match meets: the terms of the top-level conjunction
}

// node is one condition on a document.
type node interface {
	match(e *expr.Env, doc value.Value) (bool, error)
}

// Options tell the compiler of its surroundings.
type Options struct {
	// Scope has the variables that $expr may use; nil when there are none but the built-in ones.
	Scope *expr.Scope
	// Run is that of the Env in which the filter will be used; nil when nothing ends it.
	Run *expr.Run
}

// compiledSize is about how many bytes a Filter and the access path that is made of it take for each byte of the query
// document: measured with long lists of $in and $or.
const compiledSize = 16

// Compile compiles a query document. q must stay unchanged as long as the Filter lives. The memory of the Filter is
// held by o.Run.
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
	f := &Filter{root: n, run: o.Run}
	f.collect(n)
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

// Match decides a document. e may be nil when the query has no $expr.
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

// Equality is one `path: value` that every match of a filter has: what an upsert starts from, and where a key look-up
// is found.
type Equality struct {
	Path  string
	Value value.Value
}

// Equalities returns the equality conditions of the top-level conjunction, in the query's order. A single-valued $in,
// and an $all of one value, count. A regular expression doesn't.
func (f *Filter) Equalities() []Equality {
	var out []Equality
	for _, l := range f.leaves {
		if l.eq.IsDefined() {
			out = append(out, Equality{l.path, l.eq})
		}
	}
	return out
}

// Equal returns the value that path must equal by the top-level conjunction, Undefined when there is none.
func (f *Filter) Equal(path string) value.Value {
	for _, l := range f.leaves {
		if l.path == path && l.eq.IsDefined() {
			return l.eq
		}
	}
	return value.Undef()
}

// Position returns the index of the first element of an array in doc that met a condition of the query on a path with
// the given first component: what the positional operator $ stands for.
func (f *Filter) Position(doc value.Value, first string) (int, bool) {
	for pass := 0; pass < 2; pass++ { // a condition on the very array first, then any
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

type constNode bool

func (c constNode) match(*expr.Env, value.Value) (bool, error) { return bool(c), nil }

type exprNode struct{ x expr.Expr }

func (n exprNode) match(e *expr.Env, doc value.Value) (bool, error) {
	if e == nil {
		return false, merr.New(merr.InternalError, "$expr without an environment")
	}
	v, err := n.x(e.With(doc))
	return expr.Truthy(v), err
}

// pathNode is a condition on the values that a path reaches.
type pathNode struct {
	path string
	segs []string
	leaf bool // whether an array at the path's end stands for its elements too
	not  bool // no value may meet the condition
	test func(v value.Value) bool
	eq   value.Value // the value tested for equality, when that is the whole condition
	sarg sarg        // what an index may do about it
}

func (p *pathNode) match(_ *expr.Env, doc value.Value) (bool, error) { return p.ok(doc), nil }

func (p *pathNode) ok(doc value.Value) bool {
	if len(p.segs) == 1 { // the common case, without the walker
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
	if p.sarg.elem != nil { // $elemMatch, $all of $elemMatch: the element tested is inside the test
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
