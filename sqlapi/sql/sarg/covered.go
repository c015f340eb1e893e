package sarg

import (
	"slices"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Coverage tells the core what it needs to answer a query from index entries without reading items. It is computed
// once, when the text is compiled.
//
// Example: SELECT VALUE c.a FROM c WHERE c.b > 1 reads the paths /a and /b. A composite index on (/b, /a) holds both,
// so the core can answer from its entries. SELECT VALUE c FROM c reads the whole item (needs is nil), so the core must
// read the items.
type Coverage struct {
	needs   []access.Path // paths that the query reads; nil: all of the item, or more than paths
	want    exec.Want
	whole   bool         // each page of the query reads all items
	number  bool         // the query shows the item's number (_rid, _self, _attachments)
	repeat  bool         // items with equal values in needs make equal rows
	defined *access.Path // an item without a value at this path doesn't change the answer
}

// Ask copies the coverage into a query to the core.
func (v *Coverage) Ask(q *exec.Query) {
	if v.needs == nil {
		return
	}
	q.Needs, q.Number, q.Want, q.Whole, q.Repeat = v.needs, v.number, v.want, v.whole, v.repeat
	if v.defined != nil && !q.Pred.Demands(*v.defined) {
		q.Pred = access.And(q.Pred, access.Exists(*v.defined))
	}
}

// CoverageOf computes the coverage of a query whose only source is the item, under the alias root. whole is true when
// each page of the text reads all items. outermost is true when no other query reads the rows of this one.
func CoverageOf(q *syntax.Query, root string, whole, outermost bool) (v Coverage) {
	r := reads{root: root}
	for _, e := range shape.Selected(q) {
		r.expr(e)
	}
	r.expr(q.Where)
	for _, e := range q.GroupBy {
		r.expr(e)
	}
	for _, o := range q.OrderBy {
		r.expr(o.Expr)
	}
	if r.all {
		return v
	}
	v.needs, v.whole = r.paths(), whole
	if len(v.needs) == 0 {
		v.needs = []access.Path{access.TS} // every item has a value there
	}
	v.defined = definedPath(q, root, v.needs)
	v.number = r.each
	v.repeat = !r.each && outermost && shape.IsGrouped(q)
	if !r.each && len(v.needs) == 1 {
		v.want = wanted(q, root, v.needs[0])
		if v.want == exec.WantTally && !v.repeat { // only an outermost grouped query can take rows with counts
			v.want = exec.WantAll
		}
	}
	return v
}

// reads collects the paths of the item that expressions read.
type reads struct {
	root string
	list []access.Path
	all  bool // an expression reads more than paths
	each bool // rows may differ between items with equal values at the paths
}

func (r *reads) expr(e syntax.Expr) {
	if e == nil || r.all {
		return
	}
	switch x := e.(type) {
	case *syntax.Ident, *syntax.SubqueryExpr:
		r.all = true // an item as a whole
		return
	case *syntax.Prop, *syntax.Index:
		steps, base := shape.SplitPath(e)
		if id, ok := base.(*syntax.Ident); ok {
			r.path(id.Name, steps)
			return
		}
	case *syntax.Call:
		fn := funcs.Lookup(x.Name)
		if x.UDF || fn == nil && funcs.AggregateOf(x.Name) == nil || fn != nil && fn.Volatile {
			r.each = true
		}
	}
	syntax.Children(e, r.expr)
}

func (r *reads) path(root string, steps []shape.Step) {
	if root != r.root && root != syntax.RootName || len(steps) == 0 {
		r.all = true
		return
	}
	for i, s := range steps { // to read an element is to read its array
		if s.Array {
			steps = steps[:i]
			break
		}
	}
	if len(steps) == 0 { // the item is no array
		return
	}
	switch first := steps[0].Name; {
	case first == "_ts":
		r.list = append(r.list, access.TS)
		return
	case first == "_rid" || first == "_self" || first == "_attachments": // derived from the item's number
		r.each = true
		return
	case shape.IsSystem(first):
		r.all = true
		return
	}
	if _, ok := doc.NoSQL.Stored(steps[0].Name); !ok {
		return // no item has a value there
	}
	p, _, ok := shape.StoredPath(steps, false)
	if !ok {
		r.all = true
		return
	}
	r.list = append(r.list, p)
}

// paths returns the collected paths, without paths below another collected path.
func (r *reads) paths() (out []access.Path) {
	for i, p := range r.list {
		below := slices.ContainsFunc(r.list, func(o access.Path) bool {
			return len(o.Segs) < len(p.Segs) && isPrefix(o.Segs, p.Segs)
		})
		again := slices.ContainsFunc(r.list[:i], func(o access.Path) bool { return slices.Equal(o.Segs, p.Segs) })
		if !below && !again {
			out = append(out, p)
		}
	}
	return out
}

func isPrefix(a, b []string) bool { return len(a) <= len(b) && slices.Equal(a, b[:len(a)]) }

// definedPath returns a path whose absence excludes an item from the answer, nil when there is none. It is the path of
// SELECT VALUE path, or the common argument of all aggregates when these skip undefined values.
func definedPath(q *syntax.Query, root string, needs []access.Path) *access.Path {
	isNeed := func(e syntax.Expr) *access.Path {
		for i := range needs {
			if p := pathOf(root, e); p != nil && isPrefix(needs[i].Segs, p.Segs) {
				return &needs[i]
			}
		}
		return nil
	}
	if !shape.IsGrouped(q) {
		if q.Value == nil {
			return nil
		}
		return isNeed(q.Value)
	}
	if len(q.GroupBy) > 0 {
		return nil
	}
	var one *access.Path
	same := true
	shape.EachAggregate(q, func(name string, arg syntax.Expr) {
		p := isNeed(arg)
		if p == nil || one != nil && p != one || !skipsUndefined[name] {
			same = false
		}
		one = p
	})
	if !same {
		return nil
	}
	return one
}

// pathOf returns e as a path, nil when it is another expression. For an array element it returns the path of the array.
func pathOf(root string, e syntax.Expr) *access.Path {
	if !shape.IsPath(e) {
		return nil
	}
	r := reads{root: root}
	if r.expr(e); r.all || len(r.list) != 1 {
		return nil
	}
	return &r.list[0]
}

// skipsUndefined are the aggregates that ignore undefined values.
var skipsUndefined = map[string]bool{"AVG": true, "COUNT": true, "MAX": true, "MIN": true, "SUM": true}

// wanted returns which items can change the answer of a query that reads one path.
func wanted(q *syntax.Query, root string, need access.Path) exec.Want {
	if !shape.IsGrouped(q) {
		if q.Distinct {
			return exec.WantValues
		}
		return exec.WantAll
	}
	extremes, counts, ends := true, true, len(q.GroupBy) == 0
	shape.EachAggregate(q, func(name string, arg syntax.Expr) {
		extreme := name == "MIN" || name == "MAX"
		extremes, counts = extremes && extreme, counts && (extreme || name == "COUNT")
		steps, _ := shape.SplitPath(arg)
		p := pathOf(root, arg)
		lit, constant := arg.(*syntax.Lit)
		ends = ends && (p != nil && len(steps) == len(need.Segs) && slices.Equal(p.Segs, need.Segs) || !extreme &&
			constant && lit.Val.IsDefined())
	})
	switch {
	case extremes && ends && shape.HasAggregates(q):
		return exec.WantEnds
	case extremes:
		return exec.WantValues
	case counts && ends && q.Where == nil:
		return exec.WantTally
	}
	return exec.WantAll
}
