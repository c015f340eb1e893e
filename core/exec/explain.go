package exec

import (
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
)

// Explain shows the plan of the rows. It has figures only with Query.Explain. ran says that the reader has read the
// rows. Then the steps show what they have done so far.
func (r *Rows) Explain(ran bool) *plan.Explanation {
	if ran && r.q.Explain {
		r.told(r.stats.Tree.Root)
	}
	e := r.stats.Tree.Explain(ran)
	e.Counted = r.stats.Counted
	return e
}

// MayHoldElements reports whether any slot has ever held elements of arrays on a leaf's paths, so that an item may have
// several entries. The rows must not be closed.
func (r *Rows) MayHoldElements(l *access.Pred) bool {
	slots := r.view.Slots()
	for i := range slots {
		if l.Comp == nil {
			if slots[i].HasElements(l.PathID(r.view.Policy())) {
				return true
			}
			continue
		}
		if l.Comp.Index.Array != nil {
			return true
		}
		for j := range l.Comp.Index.Columns {
			if slots[i].HasInColumn(l.Comp.Index.Columns[j].Array) {
				return true
			}
		}
	}
	return false
}

// told writes into a node, and into the nodes below it, what they did. It returns how many rows the node gave.
//
// Example: for Filter over Merge over IndexScan, the scan and the merge gave all candidates, and the filter gave those
// that match.
func (r *Rows) told(n *plan.Node) (given int64) {
	for _, k := range n.Kids {
		given = r.told(k)
	}
	n.Entries = -1
	switch n.Op {
	case plan.Filter:
		given = int64(r.stats.Matched)
	case plan.Limit, plan.Sort, plan.TopK, plan.Rings:
		given = int64(r.stats.Rows)
	case plan.KeyOrder, plan.Merge:
		if given = int64(r.stats.Candidates); len(n.Kids) > 1 {
			n.Kids[1].Given = int64(r.stats.Turned)
			n.Kids[0].Given = given - n.Kids[1].Given
		}
	case plan.Union, plan.Intersect:
		for _, k := range n.Kids { // several entries may name one item
			k.Given = k.Entries
		}
		given = int64(r.stats.Candidates)
	default:
		if len(n.Kids) == 0 {
			given = int64(r.stats.Candidates)
		}
	}
	if n.Leaf != nil {
		n.Entries = r.entriesOf(n)
	}
	n.Given = given
	return given
}

// entriesOf returns how many entries the scan of a node's leaf walked. If the query has only one leaf, all entries
// belong to it: a sort by distance scans another leaf for each ring.
func (r *Rows) entriesOf(n *plan.Node) (entries int64) {
	if n.Op == plan.Rings || r.stats.Tree.Leaves() == 1 {
		return int64(r.stats.Entries - r.stats.Counted)
	}
	for i, p := range r.leaves {
		if p == n.Leaf {
			entries += r.walked[i+1]
		}
	}
	return entries
}

// walk returns the index of the counter for a leaf's entries.
func (r *Rows) walk(p *access.Pred) int {
	if !r.q.Explain {
		return 0
	}
	r.leaves, r.walked = append(r.leaves, p), append(r.walked, 0)
	return len(r.walked) - 1
}
