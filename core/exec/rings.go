package exec

import (
	"math"

	"github.com/orrerydb/orrery/core/plan/access"
)

// rings makes the candidates of an order of distances: those near the place, and more of them until as many as are
// wanted are nearer than what lies beyond. Every ring is read from the place on, so nothing but the sort's rows is
// held; what is read twice is less than what is new, mostly, because a ring has four times the area of the one before
// it or more.
//
// The filter must demand a shape at the path: items without a distance come first, and no index finds those.
type rings struct {
	b    *builder
	near *Near
	leaf *access.Pred
	dist float64
	all  bool // the candidates are all that the filter leaves
}

// rings returns the rings of a sort, nil where a sort of all candidates is as good or needed.
func (b *builder) rings(plan *access.Plan, s *sorter) *rings {
	o := &b.q.OrderBy[0]
	want := s.bound()
	if o.Near == nil || len(b.q.OrderBy) != 1 || o.Desc || want == 0 || b.spans[0].full || s.pos != nil &&
		(s.pos.cut || !s.pos.keys[0].IsNumber()) {
		return nil
	}
	switch {
	case plan.Kind == access.Index && plan.Leaf != nil && plan.Leaf.Op == access.OpSpatial:
		if most := fewForRings(want); b.placesIn(plan.Leaf, most) < most {
			return nil
		}
	case plan.Kind != access.Scan:
		return nil
	}
	x := &rings{b: b, near: o.Near, dist: o.Near.First}
	if s.pos != nil {
		x.dist = max(x.dist, s.pos.keys[0].Float())
	}
	if !x.reach(want) {
		return nil
	}
	plan.Why = "the nearest places in growing rings"
	return x
}

// fewForRings is how many places are sorted rather than looked for in rings.
func fewForRings(want int) int { return 64 + 4*want }

// around returns the leaf of the present ring, nil where nothing lies beyond it or no index has it.
func (x *rings) around() *access.Pred {
	if x.dist > x.near.Last {
		return nil
	}
	return access.Around(x.b, x.b.q.Pred, x.near.Path, x.near.Within(x.dist))
}

// reach widens the ring until it names so many places; false when there are fewer.
func (x *rings) reach(places int) bool {
	for ; ; x.dist *= 2 {
		if x.leaf = x.around(); x.leaf == nil {
			return false
		}
		if x.b.placesIn(x.leaf, places) >= places {
			return true
		}
	}
}

// grow takes the next ring, which names some places more: large shapes around the place are in every ring, and may be
// far down the order.
func (x *rings) grow(s *sorter) {
	more := x.b.placesIn(x.leaf, math.MaxInt) + s.bound()
	x.dist *= 2
	x.all = !x.reach(more)
}

// enough reports whether the rows that s has gathered are the first ones of all: as many as are wanted, none beyond the
// ring.
func (x *rings) enough(s *sorter) bool {
	if x.all {
		return true
	}
	n := s.bound()
	if len(s.list) < n {
		return false
	}
	if last := s.list[n-1].keys[0]; !last.IsNumber() || last.Float() > x.dist {
		return false
	}
	s.more = s.more || n == s.window
	return true
}

// placesIn counts the entries of a spatial leaf in the slots of the query, up to a limit.
func (b *builder) placesIn(leaf *access.Pred, limit int) (n int) {
	for i := 0; i < len(b.spans) && n < limit; {
		n += b.countPlaces(b.spans[i].slot, leaf, limit-n)
		_, i = b.slotOf(i)
	}
	b.rows.stats.Entries += n
	return n
}
