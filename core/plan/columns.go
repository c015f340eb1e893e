package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// An entry of a composite index holds the values of all its columns. A query that looks at no other paths needs no
// item.

// columnsTell reports whether the columns of a composite index, together with the identity, have the values at all
// paths that the query looks at. Rows are made of these values, so no two of the paths may lie in the same object.
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

// fewEntries is the largest number of entries that a composite index may have to gather for a page of a query without
// an order. All of them are read again for each page.
const fewEntries = 1000

// byColumns returns the scan of a composite index whose columns have all values that the query looks at, if the scan
// reads less than a plan that fetches items.
//
// Example: SELECT c.city, c.total FROM c WHERE c.city = "Bern" selects 400 of 10,000 items, with an index on (city,
// total). Its 400 entries cost 400. The entries of /city and 400 fetches cost 4,400.
func (x *chooser) byColumns(p access.Plan) (access.Plan, bool) {
	r := &x.r
	if p.Covered || p.Kind != access.Index && p.Kind != access.Scan || r.HasPK || r.From.At == AtItem ||
		!x.coverable() {
		return access.Plan{}, false
	}
	drained := r.Whole || len(r.OrderBy) > 0 // each page reads to the end in any case
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
	return access.Plan{Kind: access.Index, Leaf: best, Covered: true, Why: access.ColumnsTell}, true
}
