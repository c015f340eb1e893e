package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/plan/access"
)

// Reach doubles the radius of a ring, beginning with dist, until the ring has at least places index entries. It returns
// the radius and the ring's leaf. The leaf is nil when the radius would pass Near.Last first, or no index can answer.
func Reach(st Stats, r *Request, dist float64, places int) (float64, *access.Pred) {
	for ; dist <= r.Near.Last; dist *= 2 {
		leaf := around(st, r.Pred, r.Near.Path, r.Near.Within(dist))
		if leaf == nil {
			break
		}
		if st.CountPlaces(leaf, places) >= places {
			return dist, leaf
		}
	}
	return dist, nil
}

// around returns the leaf of all shapes that may meet a region. The filter must demand a place at the path itself, not
// in an element of an array. around returns nil when it doesn't, or when no index has the path.
func around(st Stats, filter *access.Pred, path access.Path, region *geo.Region) *access.Pred {
	if !st.IndexReady() || path.Elements {
		return nil
	}
	for _, c := range filter.Conjuncts() {
		if c.Op == access.OpSpatial && !c.Path.Elements && slices.Equal(c.Path.Segs, path.Segs) && usable(st, c) {
			if leaf := access.Resolve(access.Spatial(path, region), st.Policy()); usable(st, leaf) {
				return leaf
			}
		}
	}
	return nil
}
