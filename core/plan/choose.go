// Package plan chooses how a query is run. Choose is a pure function of what the query wants (Request) and of what is
// known about the data (Stats): it reads nothing and opens nothing. Its result is a Tree of nodes, which core/exec runs
// as it is. The tree also holds the reasons, the estimates and the rejected alternatives.
//
// Two questions are decided. First: which access path finds the candidates (access.Plan)? The rules are in points.go,
// covered.go, composite.go, index.go, intersect.go and partition.go. Second: how do the candidates get into the wanted
// order? The rules are in order.go and creation.go. Each rule is a function with an example. Rules that need no
// counting of index entries come first. The remaining choices are decided by cost (cost.go).
//
// Example: SELECT * FROM c WHERE c.n > 5 ORDER BY c.n, with an index on /n. The access path is the scan of the entries
// of /n above 5. The tree is Filter over Merge over IndexScan: each slot gives its entries in the order of n, the merge
// joins the slots, and the filter checks the items.
package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// chooser is the state of one call of Choose.
type chooser struct {
	Stats
	r       Request
	cs      []*access.Pred // parts of the filter's conjunction
	counts  []counted
	inSlots []slotCount
	lost    []Alternative
	inKey   int64        // items in the logical partition, or unasked
	one     bool         // only one logical partition is read
	read    *access.Plan // the chosen access path, narrowed

	keysAsked, keysOrdered bool // see keysGiveOrder

	composed bool // comps is computed
	comps    []*access.Pred
}

const unasked = -1

// Choose plans a query.
func Choose(r *Request, st Stats) *Tree {
	t := &Tree{filtered: r.Filtered, limit: r.Limit, page: r.Page}
	x := chooser{Stats: st, r: *r, cs: r.Pred.Conjuncts(), inKey: unasked, one: r.HasPK}
	t.Access, t.Rest = x.access()
	if !r.Explain {
		x.tree(t)
		return t
	}
	a := appraiser{chooser: &x}
	a.paths(t)
	x.tree(t)
	a.tree(t)
	return t
}

// PartitionItems asks Stats once and keeps the answer.
func (x *chooser) PartitionItems() int64 {
	if x.inKey == unasked {
		x.inKey = x.Stats.PartitionItems()
	}
	return x.inKey
}

// access chooses the access path that finds the candidates. rest says that the path is a scan of the items which an
// index had not given yet.
func (x *chooser) access() (p access.Plan, rest bool) {
	r := &x.r
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
			return access.Plan{Kind: access.Scan, Why: access.Unusable},
				true
		}
	}
	if ks := x.idKeys(); ks != nil && !x.never() {
		return access.Plan{Kind: access.Points, Keys: ks, Why: access.NamesIDs}, false
	}
	p = x.path()
	if r.HasPK {
		p = x.insidePartition(p)
	}
	return p, false
}

// oneItem is the plan of a query on the single item of a logical partition. It applies where the partition key is the
// id.
func (x *chooser) oneItem() access.Plan {
	if x.never() {
		return access.Plan{Kind: access.Nothing, Why: access.Never}
	}
	return access.Plan{Kind: access.Scan, Why: access.OnlyItem}
}

func (x *chooser) never() bool { return x.r.Pred != nil && x.r.Pred.Op == access.OpNone }

// path chooses the access path. A covered plan wins over all others. Rows are made of index entries where the entries
// hold all values that the query looks at.
func (x *chooser) path() access.Plan {
	if x.never() {
		return access.Plan{Kind: access.Nothing, Why: access.Never}
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
//  2. the rules for one logical partition, if the query is restricted to one;
//  3. a composite index that gives the wanted order;
//  4. the conditions on the path of the wanted order;
//  5. the least cost among conditions, unions, intersections and a scan;
//  6. instead of what costs least, the entries of the keys of the order, where few rows are wanted;
//  7. instead of a scan, the entries of the order's path, if they name every item.
func (x *chooser) uncovered() access.Plan {
	r := &x.r
	if !r.HasPK {
		if ks := x.pointKeys(r.Pred); ks != nil {
			return access.Plan{Kind: access.Points, Keys: ks, Why: access.NamesKeys}
		}
	}
	switch {
	case !x.IndexReady():
		return access.Plan{Kind: access.Scan, Why: access.Rebuilding}
	case r.From.At == AtItem:
		return access.Plan{Kind: access.Scan, Why: access.BeganWithScan}
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
	if q, ok := x.ownEntries(&p); ok {
		x.lose(p)
		return q
	}
	if p.Kind == access.Scan && len(r.OrderBy) == 1 && !r.Own {
		if leaf := access.AnyEntry(r.OrderBy[0]); x.usable(leaf) && (x.EveryItemHas(leaf.Path) ||
			inOneOrder(x, leaf) && x.InOrder(leaf.Path) && x.NamesEveryItem(leaf.Path)) {
			x.lose(p)
			return access.Plan{Kind: access.Ordered, Leaf: leaf,
				Why: access.EntryOfEvery}
		}
	}
	return p
}

// narrow restricts Stats to what the access path reads: the slots of the partition keys that a covered plan names, or
// the logical partition that is the only point. In the second case a scan of that partition is read.
//
// Example: SELECT VALUE c.pk FROM c WHERE c.pk = "a" walks the entries of one slot, not of all slots.
func (x *chooser) narrow(p *access.Plan) {
	x.read = p
	if vals := x.keysOf(p); vals != nil {
		x.Stats = x.Within(Scope{Keys: vals})
	}
	r := &x.r
	if p.Kind == access.Points && len(p.Keys) == 1 && !p.Keys[0].ID.IsDefined() && r.Shown != AnyOrder &&
		(r.From.At == AtStart || r.From.At == AtCreation) && len(r.OrderBy) == 0 {
		x.Stats, x.one = x.Within(Scope{Key: &p.Keys[0]}), true
		x.read = &access.Plan{Kind: access.Scan, Why: p.Why}
	}
	if x.read.Kind == access.Scan && x.one && x.Slots() > 0 {
		x.Stats = x.Within(Scope{IDs: r.Pred})
	}
}

// maxNamedKeys is the largest number of partition keys that are looked up to exclude slots.
const maxNamedKeys = 16

// keysOf returns the partition keys that a covered plan names, if all of them are strings. It returns nil when the plan
// names none.
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
