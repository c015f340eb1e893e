package sql

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// IndexUse says how a page's items were found: the access path, the indexes that were used, those that the query could
// use if the indexing policy had them, and what to change in the policy.
type IndexUse struct {
	Access string // kind of the access path
	Why    string // it was chosen
	Sorted bool   // the rows were sorted
	Slots  int    // visited

	Used, Potential                   []SingleIndex
	UsedComposite, PotentialComposite []CompositeIndex

	Advice []string // lines of the policy that would make the query cheaper
}

// SingleIndex is an index on one path. Spec is the path in the policy's form, "/a/b/?" or "/tags/[]/?"; Filter the
// condition that it serves, as the service prints it ("" for an order).
type SingleIndex struct{ Spec, Filter string }

// CompositeIndex is an index on several paths, each as "/a ASC".
type CompositeIndex struct{ Specs []string }

// indexUse reads the paths from the chosen access path, the translated filter and the order.
func (pl *Plan) indexUse(c *core.Container, q *exec.Query, s *exec.Stats) *IndexUse {
	plan := &s.Plan
	u := &IndexUse{Access: plan.Kind.String(), Why: plan.Why, Sorted: s.Sorted, Slots: s.Partitions}
	if plan.Leaf != nil {
		u.single(&u.Used, plan.Leaf.Path, pl)
		u.composite(plan.Leaf.Comp)
	}
	for _, l := range append(plan.Union[:len(plan.Union):len(plan.Union)], plan.Both...) {
		u.single(&u.Used, l.Path, pl)
	}
	if pl.env.Form != nil { // the policy's paths are not those of the query
		return u
	}
	a := adviser{use: u, pl: pl, c: c, policy: parsePolicy(c.Spec().IndexingPolicy), helps: s.Sorted ||
		s.Items > s.Rows || plan.Both != nil}
	a.singles(q)
	a.composites(q)
	return u
}

// single adds an index on a path to a list that hasn't got it.
func (u *IndexUse) single(to *[]SingleIndex, p access.Path, pl *Plan) bool {
	spec := indexSpec(p)
	if len(p.Segs) == 0 || slices.ContainsFunc(*to, func(s SingleIndex) bool { return s.Spec == spec }) {
		return false
	}
	*to = append(*to, SingleIndex{spec, pl.conditionOn(p)})
	return true
}

// composite adds the composite index that was scanned, if any.
func (u *IndexUse) composite(c *access.Composite) {
	if c == nil {
		return
	}
	spec := CompositeIndex{}
	for _, col := range c.Index.Columns {
		dir := " ASC"
		if col.Desc {
			dir = " DESC"
		}
		path := pathText(col.Segs)
		if c.Index.Array != nil {
			path = col.Path
		}
		spec.Specs = append(spec.Specs, path+dir)
	}
	u.UsedComposite = append(u.UsedComposite, spec)
}

// conditionOn returns the conditions of WHERE that read a path, printed with the item as ROOT.
func (pl *Plan) conditionOn(p access.Path) string {
	var found []string
	var walk func(e syntax.Expr)
	walk = func(e syntax.Expr) {
		if c, ok := e.(*syntax.Chain); ok {
			for _, x := range c.Xs {
				walk(x)
			}
			return
		}
		if e != nil && pl.reads(e, p.Segs) {
			found = append(found, syntax.PrintRooted(e, pl.rootName()))
		}
	}
	walk(pl.p.q.Where)
	return strings.Join(found, " AND ")
}

// reads reports whether an expression reads a stored path of the item.
func (pl *Plan) reads(e syntax.Expr, segs []string) bool {
	steps, base := shape.SplitPath(e)
	if _, ok := base.(*syntax.Ident); ok {
		path, _, ok := shape.StoredPath(steps, false)
		return ok && slices.Equal(path.Segs, segs)
	}
	found := false
	syntax.Children(e, func(x syntax.Expr) { found = found || x != nil && pl.reads(x, segs) })
	return found
}

// rootName is the alias of the item itself, "" when it has none.
func (pl *Plan) rootName() string {
	for _, v := range pl.p.top.vars {
		if v.root {
			return v.name
		}
	}
	return ""
}

// indexSpec writes a stored path as an indexing policy does.
func indexSpec(p access.Path) string {
	s := pathText(p.Segs)
	if p.Elements {
		s += "/[]"
	}
	return s + "/?"
}

// pathText writes stored names as a policy's path without its end.
func pathText(segs []string) string {
	var b strings.Builder
	for i, s := range segs {
		b.WriteByte('/')
		switch {
		case i == 0 && s == "_id":
			s = "id"
		case i == 0 && len(s) > 1 && s[0] < 2: // an escaped or system name
			s = s[1:]
		}
		if plainSegment(s) {
			b.WriteString(s)
		} else {
			b.WriteString(`"` + s + `"`)
		}
	}
	return b.String()
}

func plainSegment(s string) bool {
	for i := 0; i < len(s); i++ {
		if !syntax.IsWordByte(s[i]) {
			return false
		}
	}
	return s != ""
}
