package plan

import (
	"github.com/orrerydb/orrery/core/plan/access"
)

// A query without an order goes on in the order in which it began: the signature in its continuation says by which
// access path, whatever would be chosen now.
//
// Example: a page began with the index of /n when it held for 10 items. Now it holds for half of all. The next page
// goes on with the index. Where the policy has dropped it, the items are scanned without what the index had given.

const began = "the continuation began with it"

// LeafOf returns the leaf of the index scan with this signature, nil when a query has no such leaf.
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

// again returns the access path that the continuation began with; false when the index can't do it any more.
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

// againConditions is again for the conditions of the filter.
func (x *chooser) againConditions() (access.Plan, bool) {
	sig := x.r.From.Signature
	if sig == access.SigBoth {
		return x.againBoth()
	}
	for _, c := range x.cs {
		if c.Op >= access.OpIn && access.Signature(c) == sig {
			if x.usable(c) {
				return access.Plan{Kind: access.Index, Leaf: c, Why: began}, true
			}
			break
		}
	}
	for _, c := range x.cs {
		if c.Op != access.OpOr {
			continue
		}
		if u := x.unionOf(c); u != nil && access.Signature(u...) == sig {
			return access.Plan{Kind: access.Index, Union: u, Why: began}, true
		}
	}
	return access.Plan{}, false
}

// againComposite is again for the scan of a composite index.
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
			return access.Plan{Kind: access.Index, Leaf: l, Why: began}, true
		}
	}
	return access.Plan{}, false
}

// againEvery is again for the scan of all entries of a path.
func (x *chooser) againEvery() (access.Plan, bool) {
	if !x.coverable() {
		return access.Plan{}, false
	}
	for i := range x.r.Needs {
		leaf := access.AnyEntry(x.r.Needs[i])
		if access.Signature(leaf) == x.r.From.Signature {
			ok := x.covers(leaf) && x.NamesEveryItem(leaf.Path)
			return access.Plan{Kind: access.Index, Leaf: leaf, Covered: true, Why: began}, ok
		}
	}
	return access.Plan{}, false
}
