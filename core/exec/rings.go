package exec

import (
	"math"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
)

// rings makes the candidates of an order of distances: first those near the place, then more, until enough rows are
// nearer than everything beyond the ring. Every ring is read completely from the place on, so only the sort's rows are
// held in memory. In most cases the part that is read twice is smaller than the new part, because each ring has at
// least four times the area of the one before.
//
// The filter must demand a shape at the path: items without a distance come first, and no index finds those.
//
// Example: the 10 nearest shops. The ring of 100 m has 3 of them, the ring of 400 m has 60. The 10 nearest of these 60
// are nearer than any shop outside the ring, so they are given.
type rings struct {
	b    *builder
	leaf *access.Pred
	dist float64
	all  bool // the candidates are all items that the filter accepts
}

// grow takes the next larger ring. It must name more places than the current ring, by as many as the sort holds: large
// shapes around the place are in every ring and may come late in the order.
func (x *rings) grow(s *sorter) {
	more := x.b.CountPlaces(x.leaf, math.MaxInt) + s.bound()
	var r plan.Request
	x.b.request(&r)
	dist, leaf := plan.Reach(x.b, &r, 2*x.dist, more)
	x.dist, x.leaf, x.all = dist, leaf, leaf == nil
}

// enough reports whether the rows that s has gathered are the first rows of the whole order: as many as are wanted, and
// none is beyond the ring.
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
