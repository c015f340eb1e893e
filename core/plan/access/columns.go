package access

import "slices"

// The entry of a composite index tells the values of all its columns, so a query that looks at no other paths needs no
// item.

// tells reports whether the columns of a composite index, and the identity, have the values at all of these paths. Rows
// are made of them: no two may lie in one object.
func (c *Composite) tells(src Source, needs []Path) bool {
	if c.Index.Array != nil || len(needs) == 0 {
		return false
	}
	for i, n := range needs {
		if len(n.Segs) == 0 || slices.ContainsFunc(needs[:i], func(o Path) bool { return o.Segs[0] == n.Segs[0] }) {
			return false
		}
		if c.Column(n.Segs) < 0 && !inIdentity(src, n.Segs) {
			return false
		}
	}
	return true
}

// Column returns which column has a path, -1 when none has.
func (c *Composite) Column(segs []string) int {
	for i := range c.Index.Columns {
		if slices.Equal(c.Index.Columns[i].Segs, segs) {
			return i
		}
	}
	return -1
}

// fewEntries is how many entries a composite index may have to gather for a page of a query without an order: it goes
// through all of them for each page.
const fewEntries = 1000

// byColumns returns the scan of a composite index whose columns tell all that a query looks at, when that reads less
// than a plan that fetches items.
func byColumns(src Source, r *Request, p Plan) (Plan, bool) {
	if p.Covered || p.Kind != Index && p.Kind != Scan || r.HasPK || r.Want == SigScan || !coverable(src, *r) {
		return Plan{}, false
	}
	drained := r.Whole || len(r.OrderBy) > 0 // to the end on each page anyway
	var best *Pred
	cs := conjuncts(r.Pred)
	for _, l := range composites(src, cs, 0) {
		if l.Comp.tells(src, r.Needs) && (best == nil || l.Comp.Used() > best.Comp.Used()) {
			best = l
		}
	}
	switch {
	case best == nil:
		return Plan{}, false
	case p.Kind == Scan:
		if !drained {
			return Plan{}, false
		}
	case best.Comp.Used() == 0 || p.Leaf == nil:
		return Plan{}, false
	default:
		if share := src.Share(best); share > fetchCost*src.Share(p.Leaf) || !drained &&
			share*float64(r.Items) > fewEntries {
			return Plan{}, false
		}
	}
	return Plan{Kind: Index, Leaf: best, Covered: true, Why: "the columns tell all that is wanted"}, true
}
