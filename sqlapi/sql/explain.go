package sql

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// IndexUse tells how the items of a page were found. It has the access path and the indexes that were used, advice on
// the policy, and the index metrics of the service. These depend on the text of the query and the policy only, so that
// they are the same for every page: the indexes that serve the partition key, the filter and the order, and those that
// would, if the policy had them.
type IndexUse struct {
	Access string // kind of the access path
	Why    string // why it was chosen
	Sorted bool   // the rows were sorted
	Slots  int    // slots visited

	Used          []SingleIndex
	UsedComposite []CompositeIndex

	Utilized, Potential                   []SingleIndex
	UtilizedComposite, PotentialComposite []CompositeIndex

	Advice []string // changes of the policy that would make the query cheaper
}

// SingleIndex is an index on one path. Spec is the path in the policy's form, "/a/b/?" or "/tags/[]/?". Filter is the
// condition that uses the index, as the service prints it; it is "" for ORDER BY.
type SingleIndex struct{ Spec, Filter string }

// CompositeIndex is an index on several paths, each as "/a ASC".
type CompositeIndex struct{ Specs []string }

// indexUse collects the paths of the chosen access path, the translated filter and ORDER BY.
func (pl *Plan) indexUse(c *core.Container, q *exec.Query, s *exec.Stats) *IndexUse {
	plan := s.Plan
	u := &IndexUse{Access: plan.Kind.String(), Why: plan.Why.String(), Sorted: s.Sorted, Slots: s.Partitions}
	if plan.Leaf != nil {
		u.single(&u.Used, plan.Leaf.Path, pl)
		u.composite(plan.Leaf.Comp)
		u.UtilizedComposite = slices.Clone(u.UsedComposite)
	}
	for _, l := range append(plan.Union[:len(plan.Union):len(plan.Union)], plan.Both...) {
		u.single(&u.Used, l.Path, pl)
	}
	if pl.env.Form != nil { // the paths of the policy and of the query differ
		u.Utilized = u.Used
		return u
	}
	a := adviser{use: u, pl: pl, c: c, policy: parsePolicy(c.Spec().IndexingPolicy), helps: s.Sorted ||
		s.Items > s.Rows || plan.Both != nil}
	a.composites(q)
	a.key(q)
	a.singles(q)
	return u
}

// single adds an index on a path to a list, unless the list has it already.
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

// conditionOn returns the text of the conditions of WHERE that read a path. The item's alias is printed as ROOT.
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

// rootName returns the alias of the item itself, "" when there is none.
func (pl *Plan) rootName() string {
	for _, v := range pl.p.top.vars {
		if v.root {
			return v.name
		}
	}
	return ""
}

// indexSpec returns a stored path in the form of an indexing policy.
func indexSpec(p access.Path) string {
	s := pathText(p.Segs)
	if p.Elements {
		s += "/[]"
	}
	return s + "/?"
}

// pathText returns stored names as a policy's path, without the ending /? or /*.
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
