package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// The entry of a composite index tells the values of all its columns, so a query that looks at no other paths needs no
// item.

// columnsTell reports whether the columns of a composite index, and the identity, have the values at all paths that the
// query looks at. Rows are made of them: no two may lie in one object.
func (x *chooser) columnsTell(c *access.Composite) bool {
	needs := x.r.Needs
	if c.Index.Array != nil || len(needs) == 0 {
		return false
	}
	for i, n := range needs {
		if len(n.Segs) == 0 || slices.ContainsFunc(needs[:i], func(o access.Path) bool {
			return o.Segs[0] == n.Segs[0]
		}) {
			return false
		}
		if c.Column(n.Segs) < 0 && !x.inIdentity(n.Segs) {
			return false
		}
	}
	return true
}

// fewEntries is how many entries a composite index may have to gather for a page of a query without an order: it goes
// through all of them for each page.
const fewEntries = 1000

// byColumns returns the scan of a composite index whose columns tell all that a query looks at, when that reads less
// than a plan that fetches items.
//
// Example: SELECT c.city, c.total FROM c WHERE c.city = "Bern", 400 of 10,000 items, with an index on (city, total).
// Its 400 entries cost 400; those of /city and 400 fetches 4,400.
func (x *chooser) byColumns(p access.Plan) (access.Plan, bool) {
	r := x.r
	if p.Covered || p.Kind != access.Index && p.Kind != access.Scan || r.HasPK || r.From.At == AtItem ||
		!x.coverable() {
		return access.Plan{}, false
	}
	drained := r.Whole || len(r.OrderBy) > 0 // to the end on each page anyway
	var best *access.Pred
	for _, l := range x.composites(0) {
		if x.columnsTell(l.Comp) && (best == nil || l.Comp.Used() > best.Comp.Used()) {
			best = l
		}
	}
	switch {
	case best == nil:
		return access.Plan{}, false
	case p.Kind == access.Scan:
		if !drained {
			return access.Plan{}, false
		}
	case best.Comp.Used() == 0 || p.Leaf == nil:
		return access.Plan{}, false
	default:
		share := x.share(best, lastCount)
		if share*costEntry > x.share(p.Leaf, lastCount)*costFetch || !drained && share*float64(x.Items()) > fewEntries {
			return access.Plan{}, false
		}
	}
	x.lose(p)
	return access.Plan{Kind: access.Index, Leaf: best, Covered: true, Why: "the columns tell all that is wanted"}, true
}
