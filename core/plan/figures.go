package plan

import "github.com/orrerydb/orrery/core/plan/access"

// appraiser computes the figures that EXPLAIN shows. It counts what the choice did not count, and remembers it apart
// from what the choice counted, so that the choice is the same without EXPLAIN.
//
// Example: an equality that is alone isn't counted, because it is taken to be selective. EXPLAIN counts it, and shows
// how many rows the scan of its entries gives.
type appraiser struct {
	*chooser
	leaves map[*access.Pred]named
	fewest float64 // the least number of items that a condition of the filter names; below 0: unknown
	priced int     // alternatives that have figures
}

// named is how many items a leaf names. more says that there are at least so many.
type named struct {
	items float64
	more  bool
}

// Limits on the entries of a slot that are counted for EXPLAIN: farCount for each of the first leaves, nearCount for
// the others.
const (
	farCount  = 2048
	nearCount = 64
	farLeaves = 8
)

// leaf returns how many items a leaf names.
func (a *appraiser) leaf(l *access.Pred) named {
	if l.Every() || l.Comp != nil && l.Comp.Used() == 0 && l.Comp.Index.Array == nil { // names every item
		return named{items: a.size()}
	}
	if n, ok := a.leaves[l]; ok {
		return n
	}
	if a.leaves == nil {
		a.leaves = map[*access.Pred]named{}
	}
	entries := farCount
	if len(a.leaves) >= farLeaves {
		entries = nearCount
	}
	var n named
	n.items, n.more = a.CountRows(l, entries)
	a.leaves[l] = n
	return n
}

// size is the approximate number of items that the query is about.
func (a *appraiser) size() float64 {
	if a.one {
		return float64(a.PartitionItems())
	}
	return float64(a.Size())
}

// paths computes the figures of the access paths. It is called before the planner narrows what is read.
func (a *appraiser) paths(t *Tree) {
	a.fewest = -1
	a.path(&t.Access)
	a.lost()
}

// lost computes the figures of the alternatives that have none.
func (a *appraiser) lost() {
	for ; a.priced < len(a.chooser.lost); a.priced++ {
		l := &a.chooser.lost[a.priced]
		l.Figures = a.path(&l.Access)
	}
}

// path returns the figures of an access path.
func (a *appraiser) path(p *access.Plan) (f Figures) {
	switch p.Kind {
	case access.Nothing:
		return f
	case access.Points:
		return a.points(p.Keys)
	case access.Scan:
		n := a.size()
		return Figures{Rows: n, Cost: n * costScanned}
	}
	walked := 0.0
	switch {
	case p.Leaf != nil:
		n := a.leaf(p.Leaf)
		f.Rows, f.AtLeast, walked = n.items, n.more, n.items
	case p.Both != nil:
		f.Rows = a.size()
		for _, l := range p.Both {
			n := a.leaf(l)
			f.Rows, f.AtLeast, walked = f.Rows*n.items/max(1, a.size()), f.AtLeast || n.more, walked+n.items
		}
	default:
		for i, l := range p.Union {
			if i == maxShown {
				f.AtLeast = true
				break
			}
			n := a.leaf(l)
			f.AtLeast, walked = f.AtLeast || n.more, walked+n.items
		}
		f.Rows = min(a.size(), walked)
	}
	if !f.AtLeast && (a.fewest < 0 || f.Rows < a.fewest) {
		a.fewest = f.Rows
	}
	f.Cost = walked * costEntry
	if !p.Covered {
		f.Cost += f.Rows * costFetch
	}
	return f
}

// points returns the figures of items and logical partitions.
func (a *appraiser) points(ks []access.Key) (f Figures) {
	ids := 0
	for i := range ks {
		if ks[i].ID.IsDefined() {
			ids++
		}
	}
	f.Rows = float64(ids)
	if ids < len(ks) {
		n := a.CountKeyed(ks, MaxCreation)
		f.Rows, f.AtLeast = float64(min(n, MaxCreation)), n > MaxCreation
	}
	f.Cost = float64(ids)*costNamed + max(0, f.Rows-float64(ids))*costScanned
	return f
}

// tree computes the figures of all nodes.
func (a *appraiser) tree(t *Tree) {
	a.lost()
	t.Lost = a.chooser.lost
	a.node(t.Root)
}

func (a *appraiser) node(n *Node) {
	for _, k := range n.Kids {
		a.node(k)
	}
	f := a.figures(n)
	n.Figures = &f
}

// figures returns the figures of a node whose nodes below have theirs.
func (a *appraiser) figures(n *Node) (f Figures) {
	if len(n.Kids) > 0 {
		f = *n.Kids[0].Figures
	}
	switch n.Op {
	case Nothing:
		return Figures{}
	case Scan, PartitionScan:
		return a.path(&access.Plan{Kind: access.Scan})
	case Points:
		return a.path(a.read)
	case IndexScan, CompositeScan, SpatialScan:
		return a.path(&access.Plan{Kind: access.Index, Leaf: n.Leaf, Covered: n.Covered})
	case EndsScan, TallyScan:
		f.Rows = float64(2 * len(n.Leaf.ByClass()) * a.Slots()) // both ends of each class in each slot, at most
		f.Cost = f.Rows * costEntry
	case Union, Intersect:
		for _, k := range n.Kids { // they give names, not items
			k.Cost = k.Rows * costEntry
		}
		return a.path(a.read)
	case KeyOrder:
		k := n.Kids[0].Figures
		if n.Leaf == a.read.Leaf {
			*k = a.path(a.read)
		}
		k.Cost = k.Rows * costPassed
		return *k
	case Merge:
		if len(n.Kids) > 1 {
			f.Cost += f.Rows * (a.between() - 1) * costEntry
		}
	case Missing:
		f.Rows = a.size()
	case Filter:
		if a.fewest >= 0 && a.fewest < f.Rows {
			f.Rows, f.AtLeast = a.fewest, false
		}
	case Rings:
		f = a.path(&access.Plan{Kind: access.Index, Leaf: n.Leaf})
		f.cut(a.bound(n))
	case TopK:
		f.cut(a.bound(n))
	case Limit:
		if f.Rows > float64(n.Count) && n.Kids[0].streams() {
			f.Cost *= float64(n.Count) / f.Rows
		}
		f.cut(n.Count)
	}
	return f
}

// bound is how many rows a sort gives at most before its source is read again.
func (a *appraiser) bound(n *Node) int {
	if n.Count == 0 || a.r.Limit > 0 && a.r.Limit < n.Count {
		return a.r.Limit
	}
	return n.Count
}

// cut limits the rows to a number that is known.
func (f *Figures) cut(rows int) {
	if rows > 0 && f.Rows >= float64(rows) {
		f.Rows, f.AtLeast = float64(rows), false
	}
}

// streams reports whether a node gives its first rows before it has read all that it reads.
func (n *Node) streams() bool {
	switch n.Op {
	case Sort, TopK, Rings, NameOrder, Union, Intersect, EndsScan, TallyScan:
		return false
	case CreationOrder:
		return n.OneValue
	}
	return !n.ByNumber && (len(n.Kids) == 0 || n.Kids[0].streams())
}
