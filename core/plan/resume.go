package plan

import (
	"github.com/orrerydb/orrery/core/plan/access"
)

// A query without an order is continued in the order in which it began. The signature in its continuation identifies
// the access path. The path is kept even if another one would be chosen now.
//
// Example: a page began with the index on /n when 10 items satisfied the condition. Now half of all items do. The next
// page still uses the index. If the policy no longer has that index, the items are scanned, without those that the
// index has given.

// LeafOf returns the leaf of the index scan with this signature, nil when the query has no such leaf.
func LeafOf(p *access.Pred, needs []access.Path, sig uint32) *access.Pred {
	for _, c := range p.Conjuncts() {
		if c.Op >= access.OpIn && access.Signature(c) == sig {
			return c
		}
	}
	for i := range needs {
		if leaf := access.AnyEntry(needs[i]); access.Signature(leaf) == sig {
			return leaf
		}
	}
	return nil
}

// again returns the access path that the continuation began with. It returns false when the index can't answer it any
// more.
func (x *chooser) again() (access.Plan, bool) {
	if x.r.From.Former || !x.IndexReady() {
		return access.Plan{}, false
	}
	if p, ok := x.againConditions(); ok {
		return x.coverChosen(p), true
	}
	if p, ok := x.againComposite(); ok {
		return x.coverChosen(p), true
	}
	return x.againEvery()
}

// againConditions does the same for the conditions of the filter.
func (x *chooser) againConditions() (access.Plan, bool) {
	sig := x.r.From.Signature
	if sig == access.SigBoth {
		return x.againBoth()
	}
	for _, c := range x.cs {
		if c.Op >= access.OpIn && access.Signature(c) == sig {
			if x.usable(c) {
				return access.Plan{Kind: access.Index, Leaf: c, Why: access.Began}, true
			}
			break
		}
	}
	for _, c := range x.cs {
		if c.Op != access.OpOr {
			continue
		}
		if u := x.unionOf(c); u != nil && access.Signature(u...) == sig {
			return access.Plan{Kind: access.Index, Union: u, Why: access.Began}, true
		}
	}
	return access.Plan{}, false
}

// againComposite does the same for the scan of a composite index.
func (x *chooser) againComposite() (access.Plan, bool) {
	var leaves []*access.Pred
	if x.r.HasPK {
		leaves = x.tuples(x.cs)
		if p, ok := x.compositeInPartition(); ok {
			leaves = append(leaves, p.Leaf)
		}
	} else {
		leaves = x.composites(1)
	}
	for _, l := range leaves {
		if access.Signature(l) == x.r.From.Signature {
			return access.Plan{Kind: access.Index, Leaf: l, Why: access.Began}, true
		}
	}
	return access.Plan{}, false
}

// againEvery does the same for the scan of all entries of a path.
func (x *chooser) againEvery() (access.Plan, bool) {
	if !x.coverable() {
		return access.Plan{}, false
	}
	for i := range x.r.Needs {
		leaf := access.AnyEntry(x.r.Needs[i])
		if access.Signature(leaf) == x.r.From.Signature {
			ok := x.covers(leaf) && x.NamesEveryItem(leaf.Path)
			return access.Plan{Kind: access.Index, Leaf: leaf, Covered: true, Why: access.Began}, ok
		}
	}
	return access.Plan{}, false
}
