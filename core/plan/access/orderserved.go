package access

import (
	"slices"

	"github.com/orrerydb/orrery/core/index"
)

// OrderSupport says whether an indexing policy supports an order by the service's rules. The core sorts in any case. An
// API that must refuse what the service refuses calls ServesOrder.
type OrderSupport uint8

// Values of OrderSupport.
const (
	OrderServed      OrderSupport = iota
	OrderExcluded                 // one path, and it is excluded from the index
	OrderNoComposite              // several paths, and no composite index has them
)

// By is one key of a wanted order.
type By struct {
	Path Path
	Desc bool
}

// ServesOrder says whether a policy supports an order. One path must be indexed. Several paths must be the paths of a
// composite index in the same sequence, with the same directions or all of them reversed. Columns before them may be
// left out if the filter demands one value of each.
func ServesOrder(pol *index.Policy, by []By, filter *Pred) OrderSupport {
	switch {
	case len(by) == 0:
		return OrderServed
	case len(by) == 1:
		if segs := by[0].Path.Segs; !isSystem(segs) && !pol.Covers(segs, false) {
			return OrderExcluded
		}
		return OrderServed
	}
	cs := filter.Conjuncts()
	for _, c := range pol.Composites() {
		front := len(c.Columns) - len(by)
		if front >= 0 && runs(c.Columns[front:], by) && fixed(c.Columns[:front], cs) {
			return OrderServed
		}
	}
	return OrderNoComposite
}

// isSystem reports whether a path is not the path of a stored value. The time of the last write is always indexed.
func isSystem(segs []string) bool { return len(segs) > 0 && segs[0] != "" && segs[0][0] == 0 }

// runs reports whether columns are the keys of an order, forwards or backwards.
func runs(cols []index.Column, by []By) bool {
	for i := range cols {
		if !slices.Equal(cols[i].Segs, by[i].Path.Segs) ||
			(cols[i].Desc == by[i].Desc) != (cols[0].Desc == by[0].Desc) {
			return false
		}
	}
	return true
}

// fixed reports whether conditions demand one value of each column.
func fixed(cols []index.Column, cs []*Pred) bool {
	for i := range cols {
		if !slices.ContainsFunc(cs, func(c *Pred) bool {
			return c.Op == OpIn && len(c.Vals) == 1 && slices.Equal(c.Path.Segs, cols[i].Segs)
		}) {
			return false
		}
	}
	return true
}
