package exec

import (
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
)

// Explain shows the plan of the rows. ran says that the reader has read them: then the steps tell what they did so far.
func (r *Rows) Explain(ran bool) *plan.Explanation {
	if ran {
		r.told(r.stats.Tree.Root)
	}
	e := r.stats.Tree.Explain(ran)
	e.Counted = r.stats.Counted
	return e
}

// told writes into a node and those below it what they did; it returns what the node gave.
//
// Example: of Filter over Merge over IndexScan the scan and the merge gave the candidates, the filter those that match.
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
	case plan.Union, plan.Intersect:
		for _, k := range n.Kids { // entries of several name one item
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

// entriesOf returns how many entries the scan of a node's leaf walked. A leaf that is alone has all: a sort of places
// scans another leaf for each ring.
func (r *Rows) entriesOf(n *plan.Node) (entries int64) {
	if n.Op == plan.Rings || r.stats.Tree.Leaves() == 1 {
		return int64(r.stats.Entries - r.stats.Counted)
	}
	for i, p := range r.leaves {
		if p == n.Leaf {
			entries += r.walked[i]
		}
	}
	return entries
}

// walk returns where the entries of a leaf are counted.
func (r *Rows) walk(p *access.Pred) int {
	r.leaves, r.walked = append(r.leaves, p), append(r.walked, 0)
	return len(r.walked) - 1
}
