package sarg

import (
	"slices"

	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"

	funcs "github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// Coverage is what the core may know of a query to answer it from index entries: found once, when the text is compiled.
type Coverage struct {
	needs   []access.Path // what the query reads of an item; nil: all of it, or too much
	want    exec.Want
	whole   bool         // the query reads to its end on each page
	number  bool         // it shows the item's number
	repeat  bool         // items that agree in needs make the same rows
	defined *access.Path // items without a value here make no difference
}

// Ask tells the core.
func (v *Coverage) Ask(q *exec.Query) {
	if v.needs == nil {
		return
	}
	q.Needs, q.Number, q.Want, q.Whole, q.Repeat = v.needs, v.number, v.want, v.whole, v.repeat
	if v.defined != nil && !q.Pred.Demands(*v.defined) {
		q.Pred = access.And(q.Pred, access.Exists(*v.defined))
	}
}

// CoverageOf looks at what a query reads, whose one source is the item under the alias root. whole says that the text
// reads to its end on each page, outermost that no other query reads the rows of this one.
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
		v.needs = []access.Path{access.TS} // every item has one
	}
	v.defined = definedPath(q, root, v.needs)
	v.number = r.each
	v.repeat = !r.each && outermost && shape.IsGrouped(q)
	if !r.each && len(v.needs) == 1 {
		v.want = wanted(q, root, v.needs[0])
		if v.want == exec.WantTally && !v.repeat { // who counts must be the one who reads
			v.want = exec.WantAll
		}
	}
	return v
}

// reads collects the paths that expressions read of the item.
type reads struct {
	root string
	list []access.Path
	all  bool // something reads more than paths
	each bool // something may differ between items that agree in the paths
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
	for i, s := range steps { // elements are read of the array
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
	case first == "_rid" || first == "_self" || first == "_attachments": // made of the item's number
		r.each = true
		return
	case shape.IsSystem(first):
		r.all = true
		return
	}
	if _, ok := doc.NoSQL.Stored(steps[0].Name); !ok {
		return // nothing is there
	}
	p, _, ok := shape.StoredPath(steps, false)
	if !ok {
		r.all = true
		return
	}
	r.list = append(r.list, p)
}

// paths returns the paths without those that lie below another.
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

// definedPath returns the path without whose value an item has no part in the answer: that of SELECT VALUE path, or of
// all aggregates, which skip what is undefined.
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

// pathOf returns the path that e is; nil when it is something else. Of an element of an array it is the array's.
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

// skipsUndefined are the aggregates on which undefined has no effect.
var skipsUndefined = map[string]bool{"AVG": true, "COUNT": true, "MAX": true, "MIN": true, "SUM": true}

// wanted says which items of a query that reads one path make a difference.
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
