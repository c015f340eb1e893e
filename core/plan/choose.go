// Package plan chooses how a query is run. Choose is a pure function of what the query wants (Request) and of what is
// known of the data (Stats): it reads nothing and opens nothing. What comes out is a tree of nodes, which core/exec
// runs as it is, with the reasons, the estimates, and the alternatives that lost.
//
// There are two questions. Which access path finds the candidates (access.Plan)? The rules for that are in points.go,
// covered.go, composite.go, index.go, intersect.go and partition.go. And how do they come into the wanted order? That
// is in order.go and creation.go. Each rule is a function with an example. Rules that need no count come first; what is
// left is decided by cost (cost.go).
package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// chooser is a choice under way.
type chooser struct {
	Stats
	r      *Request
	cs     []*access.Pred // parts of the filter's conjunction
	counts []counted
	lost   []Alternative
	inKey  int64       // items of the logical partition, or unasked
	one    bool        // one logical partition is read
	read   access.Plan // the chosen access path, narrowed

	composed bool // comps are made
	comps    []*access.Pred
}

const unasked = -1

// Choose plans a query.
func Choose(r *Request, st Stats) *Tree {
	c := &struct { // one allocation
		tree    Tree
		chooser chooser
	}{chooser: chooser{Stats: st, r: r, cs: r.Pred.Conjuncts(), inKey: unasked, one: r.HasPK}}
	t, x := &c.tree, &c.chooser
	t.Access, t.Rest = x.access()
	x.tree(t)
	t.Lost = x.lost
	return t
}

// PartitionItems asks once.
func (x *chooser) PartitionItems() int64 {
	if x.inKey == unasked {
		x.inKey = x.Stats.PartitionItems()
	}
	return x.inKey
}

// access chooses what finds the candidates. rest says that it is a scan of what an index had not given yet.
func (x *chooser) access() (p access.Plan, rest bool) {
	r := x.r
	if len(r.OrderBy) == 0 {
		switch r.From.At {
		case AtStart:
			if r.HasPK && r.ByID {
				return x.oneItem(), false
			}
		case AtEntry:
			if p, ok := x.again(); ok {
				return p, false
			}
			fallthrough
		case AtRest:
			return access.Plan{Kind: access.Scan, Why: "the index that the query began with can't be used any more"},
				true
		}
	}
	if ks := x.idKeys(); ks != nil && !x.never() {
		return access.Plan{Kind: access.Points, Keys: ks, Why: "the filter names ids in one logical partition"}, false
	}
	p = x.path()
	if r.HasPK {
		p = x.insidePartition(p)
	}
	return p, false
}

// oneItem is the plan of a query about the single item of a logical partition, where the partition key is the id.
func (x *chooser) oneItem() access.Plan {
	if x.never() {
		return access.Plan{Kind: access.Nothing, Why: "the filter is never true"}
	}
	return access.Plan{Kind: access.Scan, Why: "the item of a logical partition"}
}

func (x *chooser) never() bool { return x.r.Pred != nil && x.r.Pred.Op == access.OpNone }

// path chooses the access path: what is covered, whatever else, with rows made of entries where these tell all.
func (x *chooser) path() access.Plan {
	if x.never() {
		return access.Plan{Kind: access.Nothing, Why: "the filter is never true"}
	}
	if p, ok := x.cover(); ok {
		return p
	}
	p := x.coverChosen(x.uncovered())
	if q, ok := x.byColumns(p); ok {
		return q
	}
	return p
}

// uncovered chooses the access path of a query that looks at whole items. The first rule that applies wins:
//
//  1. keys that the filter names;
//  2. in one logical partition its own rules;
//  3. a composite index that gives the wanted order;
//  4. a condition on the path of the wanted order;
//  5. the least cost among conditions, unions, intersections and a scan;
//  6. instead of a scan the entries of the order's path, where they name every item.
func (x *chooser) uncovered() access.Plan {
	r := x.r
	if !r.HasPK {
		if ks := x.pointKeys(r.Pred); ks != nil {
			return access.Plan{Kind: access.Points, Keys: ks, Why: "the filter names partition keys"}
		}
	}
	switch {
	case !x.IndexReady():
		return access.Plan{Kind: access.Scan, Why: "the index is being rebuilt"}
	case r.From.At == AtItem:
		return access.Plan{Kind: access.Scan, Why: "the continuation began with a scan"}
	case r.HasPK:
		if p, ok := x.compositeInPartition(); ok {
			return p
		}
		return x.inPartition()
	case len(r.PK) > 0:
		if p, ok := x.compositeInPartition(); ok && p.Kind == access.Ordered {
			return p
		}
	default:
		if p, ok := x.byComposite(); ok {
			return p
		}
	}
	if p, ok := x.ordered(); ok {
		return p
	}
	p := x.byIndex(x.cs, x.Items())
	if p.Kind == access.Scan && len(r.OrderBy) == 1 {
		if leaf := access.AnyEntry(r.OrderBy[0]); x.usable(leaf) && x.EveryItemHas(leaf.Path) {
			x.lose(p)
			return access.Plan{Kind: access.Ordered, Leaf: leaf,
				Why: "every item has an entry on the path of the order"}
		}
	}
	return p
}

// ordered returns a plan whose index order is the wanted order.
//
// Example: WHERE n > 5 ORDER BY n LIMIT 10. The entries of /n behind 5 stand in that order in each slot; merged over
// the slots they give 10 rows for 10 fetches, however many items satisfy the filter.
func (x *chooser) ordered() (access.Plan, bool) {
	if len(x.r.OrderBy) != 1 {
		return access.Plan{}, false
	}
	for _, c := range x.cs {
		if !slices.Equal(c.Path.Segs, x.r.OrderBy[0].Segs) || !x.usable(c) {
			continue
		}
		if c.Op != access.OpRange && c.Op != access.OpIn && c.Op != access.OpPrefix || c.Any || !oneClass(c) {
			continue
		}
		if c.Path.Elements && !x.InOrder(c.Path) || c.Foreign && x.MayHoldForeign() {
			continue
		}
		return access.Plan{Kind: access.Ordered, Leaf: c, Why: "range and order are on one path"}, true
	}
	return access.Plan{}, false
}

// narrow restricts what is known to what the access path reads: the slots of partition keys that a covered plan names,
// and the logical partition that is the only point. That one is a scan then.
//
// Example: SELECT VALUE c.pk FROM c WHERE c.pk = "a" walks the entries of one slot, not of all.
func (x *chooser) narrow(p *access.Plan) {
	if vals := x.keysOf(p); vals != nil {
		x.Stats = x.Within(Scope{Keys: vals})
	}
	r := x.r
	if p.Kind == access.Points && len(p.Keys) == 1 && !p.Keys[0].ID.IsDefined() && r.Shown != AnyOrder &&
		(r.From.At == AtStart || r.From.At == AtCreation) && len(r.OrderBy) == 0 {
		x.Stats, x.one = x.Within(Scope{Key: &p.Keys[0]}), true
		*p = access.Plan{Kind: access.Scan, Why: p.Why}
	}
	if p.Kind == access.Scan && x.one && x.Slots() > 0 {
		x.Stats = x.Within(Scope{IDs: r.Pred})
	}
}

// maxNamedKeys is how many partition keys are looked up to leave slots out.
const maxNamedKeys = 16

// keysOf returns the partition keys that a covered plan names, where they are texts; nil when it names none.
func (x *chooser) keysOf(p *access.Plan) []value.Value {
	ks := x.KeyPaths()
	if !p.Covered || p.Leaf.Op != access.OpIn || len(ks) != 1 || len(p.Leaf.Vals) > maxNamedKeys ||
		!slices.Equal(p.Leaf.Path.Segs, ks[0]) || p.Leaf.Path.Elements ||
		p.Leaf.Foreign && x.KeysMayBeForeign() {
		return nil
	}
	for _, v := range p.Leaf.Vals {
		if v.Kind() != value.String {
			return nil
		}
	}
	return p.Leaf.Vals
}
