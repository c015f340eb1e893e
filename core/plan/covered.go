package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// A covered query needs no item: the index entries that it walks hold everything that it looks at. An entry holds the
// value at its path and the item's identity (id, partition key). Some entries don't hold their whole value (cut
// strings, arrays). The items that these name are fetched one by one.

// cover returns the plan of a query that is covered by its conditions. It runs before anything is counted: an entry
// costs a tenth of an item, so even the entries of most items cost less than a scan.
//
// Example: SELECT VALUE c.price FROM c WHERE c.price > 10. Of 10,000 items 9,000 satisfy it. Their 9,000 entries cost
// 9,000, a scan of the items costs 16,500.
func (x *chooser) cover() (access.Plan, bool) {
	r := &x.r
	if !x.coverable() || r.From.At == AtItem {
		return access.Plan{}, false
	}
	if r.HasPK && len(r.OrderBy) > 0 { // a plan that gives the order is better than entries that must be sorted
		if p, ok := x.compositeInPartition(); ok && p.Kind == access.Ordered && x.covers(p.Leaf) {
			p.Covered = true
			return p, true
		}
	}
	if r.Whole && len(r.OrderBy) == 0 && !r.HasPK {
		if p, ok := x.coverWhole(); ok {
			return p, true
		}
	}
	if len(x.cs) != 1 || !x.covers(x.cs[0]) {
		return access.Plan{}, false
	}
	c := x.cs[0]
	if !r.HasPK && c.Op == access.OpIn {
		for _, k := range x.pointKeys(r.Pred) {
			if k.ID.IsDefined() {
				return access.Plan{}, false
			}
		}
	}
	if p, ok := x.coveredOrder(); ok {
		return p, true
	}
	return access.Plan{Kind: access.Index, Leaf: c, Covered: true, Why: access.EntriesTell}, true
}

// coverWhole returns a covered plan for a reader that takes no continuation. Such a plan can't be continued.
//
// Example: SELECT MAX(c.price) FROM c reads the entries of the path. The heads of the slots tell how many items have no
// price.
func (x *chooser) coverWhole() (access.Plan, bool) {
	if leaf := oneLeaf(x.r.Pred); leaf != nil && x.covers(leaf) {
		return access.Plan{Kind: access.Index, Leaf: leaf, Covered: true,
			Why: access.AlternativesTell}, true
	}
	if r := &x.r; len(r.Needs) == 1 && onlyFilter(x, r.Needs[0]) {
		if leaf := access.Exists(r.Needs[0]); x.covers(leaf) {
			return access.Plan{Kind: access.Index, Leaf: leaf, Covered: true, Missing: true,
				Why: access.EntriesAndCount}, true
		}
	}
	return access.Plan{}, false
}

// onlyFilter reports whether all conditions are on a path, and such that the index can't answer them.
//
// Example: SELECT COUNT(1) FROM c WHERE NOT IS_DEFINED(c.price).
func onlyFilter(x *chooser, p access.Path) bool {
	return !slices.ContainsFunc(x.cs, func(c *access.Pred) bool { return x.usable(c) || !isOn(c, p.Segs) })
}

// coveredOrder returns a covered plan whose index order is the wanted order.
//
// Example: SELECT VALUE c.n FROM c WHERE c.n > 5 ORDER BY c.n LIMIT 10 walks 10 entries and fetches nothing.
func (x *chooser) coveredOrder() (access.Plan, bool) {
	r := &x.r
	if r.HasPK {
		return access.Plan{}, false
	}
	if p, ok := x.ordered(); ok {
		p.Covered = x.covers(p.Leaf)
		return p, p.Covered
	}
	c := x.cs[0]
	if len(r.OrderBy) == 1 && c.Op == access.OpExists && slices.Equal(c.Path.Segs, r.OrderBy[0].Segs) &&
		x.InOneClass(c.Path) {
		return access.Plan{Kind: access.Ordered, Leaf: c, Covered: true,
			Why: access.EntriesTellInOrder}, true
	}
	return access.Plan{}, false
}

// coverChosen marks a plan as covered if its entries hold all that the query looks at. It replaces a scan of items by
// the walk of such entries.
//
// Example: SELECT c.id FROM c reads the entries of the identity, which are a tenth of the bytes of the items.
func (x *chooser) coverChosen(p access.Plan) access.Plan {
	if p.Covered || !x.coverable() {
		return p
	}
	switch p.Kind {
	case access.Index, access.Ordered:
		p.Covered = p.Leaf != nil && x.covers(p.Leaf)
	case access.Scan:
		if x.r.From.At == AtItem || x.r.HasPK {
			return p
		}
		if q, ok := x.coverScan(); ok {
			x.lose(p)
			return q
		}
	}
	return p
}

// fewRows is a limit of rows. Up to it a query reads the first items, and no rule waits for statistics of all items.
const fewRows = 100

// coverScan returns the walk of entries that gives the same rows as a scan.
func (x *chooser) coverScan() (access.Plan, bool) {
	var leaf *access.Pred
	for _, c := range x.cs {
		if x.covers(c) && (leaf == nil || c.Op < leaf.Op) {
			leaf = c
		}
	}
	if leaf != nil {
		return access.Plan{Kind: access.Index, Leaf: leaf, Covered: true, Why: access.EntriesTell}, true
	}
	if r := &x.r; len(r.OrderBy) > 0 || r.Limit == 0 || r.Limit > fewRows {
		for i := range r.Needs {
			if leaf := access.AnyEntry(r.Needs[i]); x.covers(leaf) && x.NamesEveryItem(leaf.Path) {
				return access.Plan{Kind: access.Index, Leaf: leaf, Covered: true,
					Why: access.EntriesNameAll}, true
			}
		}
	}
	return access.Plan{}, false
}

// coverable reports whether the query names the paths that it looks at, and entries may stand for items.
func (x *chooser) coverable() bool { return len(x.r.Needs) > 0 && x.IndexReady() && x.Coverable() }

// covers reports whether the entries of a leaf hold the values at all paths that the query looks at.
func (x *chooser) covers(leaf *access.Pred) bool {
	if leaf.Comp != nil {
		return x.columnsTell(leaf.Comp)
	}
	if leaf.Op == access.OpSpatial || !x.usable(leaf) || len(leaf.Path.Segs) == 0 {
		return false
	}
	for _, n := range x.r.Needs {
		if !slices.Equal(n.Segs, leaf.Path.Segs) && (!x.inIdentity(n.Segs) || n.Segs[0] == leaf.Path.Segs[0]) {
			return false
		}
	}
	return true
}

// onlyLeaf reports whether a query looks only at the path of a leaf.
func (x *chooser) onlyLeaf(leaf *access.Pred) bool {
	for _, n := range x.r.Needs {
		if !slices.Equal(n.Segs, leaf.Path.Segs) {
			return false
		}
	}
	return leaf.Comp == nil
}

// inIdentity reports whether a value is part of the identity that every entry holds: the id, or a partition key that
// shares no object with other keys.
func (x *chooser) inIdentity(segs []string) bool {
	if isID(segs) {
		return true
	}
	found := false
	for _, k := range x.KeyPaths() {
		if slices.Equal(k, segs) {
			found = true
		} else if k[0] == segs[0] {
			return false
		}
	}
	return found
}
