package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// ownEntries returns the walk over the entries of the keys of an order, if it finds the wanted rows sooner than the
// path p gives its candidates, which would all be sorted. Items may have several entries: they count at that of their
// key.
//
// Example: the 10 vertices with the greatest age of 100,000, of which a tenth has the label person. A walk passes 100
// entries and fetches their items, at a cost of 1,700. The index of labels gives 10,000 candidates, at a cost of
// 110,000. If 10 vertices have the label, these are sorted.
func (x *chooser) ownEntries(p *access.Plan) (access.Plan, bool) {
	r := &x.r
	if !r.Own || r.Limit == 0 || r.HasPK || r.From.At != AtStart {
		return access.Plan{}, false
	}
	leaf := access.Exists(r.OrderBy[0])
	if !x.usable(leaf) {
		return access.Plan{}, false
	}
	size := float64(max(1, x.Size()))
	passed, named := x.before(size)
	walk, sort := passed+float64(r.Limit), size*costScanned
	switch {
	case p.Kind == access.Scan:
	case p.Leaf != nil && x.ofKey(p.Leaf) || p.Union != nil && !slices.ContainsFunc(p.Union, x.notOfKey):
		sort = named * (costEntry + costFetch)
	case p.Leaf != nil:
		share := max(x.share(p.Leaf, lastCount), 1/size)
		walk, sort = passed+float64(r.Limit)/share, share*size*(costEntry+costFetch)
	default:
		return access.Plan{}, false
	}
	if walk*(costEntry+costNamed) > sort || !x.OwnInOrder(leaf.Path, r.Beside) {
		return access.Plan{}, false
	}
	return access.Plan{Kind: access.Ordered, Leaf: leaf, Why: access.EntryOfKey}, true
}

// ofKey reports whether a condition is on one of the paths where the keys of an order may be.
func (x *chooser) ofKey(c *access.Pred) bool {
	return slices.Equal(c.Path.Segs, x.r.OrderBy[0].Segs) ||
		len(x.r.Beside.Segs) > 0 && slices.Equal(c.Path.Segs, x.r.Beside.Segs)
}

func (x *chooser) notOfKey(c *access.Pred) bool { return !x.ofKey(c) }

// before returns about how many entries a walk passes before it reaches values that a condition on the key demands, and
// how many have such values. The walk begins at the end all the same: an item may satisfy the condition by a value that
// isn't its key.
//
// Example: n > 5 in ascending order passes the items up to 5. In descending order it passes none.
func (x *chooser) before(size float64) (passed, named float64) {
	named = size
	for _, c := range x.cs {
		alone := [1]*access.Pred{c}
		kids := alone[:]
		if c.Op == access.OpOr {
			kids = c.Kids
		}
		for _, k := range kids {
			if !slices.Equal(k.Path.Segs, x.r.OrderBy[0].Segs) || k.Op < access.OpIn || k.Op > access.OpPrefix ||
				!x.usable(k) {
				continue
			}
			have := x.share(k, lastCount) * size
			named = min(named, have)
			if k.Op != access.OpRange || x.r.Desc[0] && k.Hi != nil || !x.r.Desc[0] && k.Lo != nil {
				passed = max(passed, size-have)
			}
		}
	}
	return passed, named
}
