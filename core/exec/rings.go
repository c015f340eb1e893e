package exec

import (
	"math"

	"github.com/orrerydb/orrery/core/plan"
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
	leaf *access.Pred
	dist float64
	all  bool // the candidates are all that the filter leaves
}

// grow takes the next ring, which names some places more: large shapes around the place are in every ring, and may be
// far down the order.
func (x *rings) grow(s *sorter) {
	more := x.b.CountPlaces(x.leaf, math.MaxInt) + s.bound()
	dist, leaf := plan.Reach(x.b, x.b.req, 2*x.dist, more)
	x.dist, x.leaf, x.all = dist, leaf, leaf == nil
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
