package exec

import (
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
)

// sampled is a walk in key order whose rows are a sample, too: of how many items satisfy the filter. Where these are
// few, the planner has it go on with the names that an index gives (plan.Tree.Turn). Both have the same order and
// positions.
//
// Example: the first page of 20 entities of 100,000 whose Price is above 90. The index has many of them, but nobody
// has counted how many. Half of the first 32 entities qualify, so the walk goes on to the 40th. Had none qualified, the
// names of all that do would have been gathered and sorted.
type sampled struct {
	source // the walk, or the names
	b      *builder
	leaf   *access.Pred
	passed int64
	check  int64  // Turn is asked after so many rows; 0: never again
	begin  int    // Stats.Matched before the first row
	last   []byte // the name of the last row, when Turn is asked next
	turned bool
}

// keyOrderSampled makes the source of a walk in key order.
func (b *builder) keyOrderSampled(n *plan.Node, from *position) (source, error) {
	walk, err := b.keyOrder(n, from)
	if err != nil || len(n.Kids) < 2 {
		return walk, err
	}
	return &sampled{source: walk, b: b, leaf: n.Kids[1].Leaf, check: plan.FirstSample,
		begin: b.rows.stats.Matched}, nil
}

func (s *sampled) next(r *row) (bool, error) {
	if s.check > 0 && s.passed == s.check {
		if err := s.turn(); err != nil {
			return false, err
		}
	}
	ok, err := s.source.next(r)
	if !ok || err != nil {
		return ok, err
	}
	switch s.passed++; {
	case s.turned:
		s.b.rows.stats.Turned++
	case s.passed == s.check:
		s.last = append(s.last[:0], r.item.Identity()...)
	}
	return true, nil
}

// turn asks the planner whether the walk goes on.
func (s *sampled) turn() error {
	entries := s.b.tree.Turn(s.passed, int64(s.b.rows.stats.Matched-s.begin), s.b.Size())
	if entries == 0 {
		s.check *= 2
		return nil
	}
	s.check = 0
	names, err := s.b.sortNames(&access.Plan{Kind: access.Index, Leaf: s.leaf}, entries, s.last)
	if err != nil || names == nil { // more than expected: the walk goes on
		return err
	}
	s.source.close()
	s.source, s.turned = names, true
	return nil
}
