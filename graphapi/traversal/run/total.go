package run

import (
	"math"

	"github.com/orrerydb/orrery/graphapi/graph"
)

// totalStep is V() or E() before a count(), without ids and filters. If the store knows the number of elements, their
// traversers are one, with that number as its bulk. Otherwise the elements are read.
//
// Example: g.V().count() on a graph of 100,000 vertices gives count() one traverser with the bulk 100,000.
type totalStep struct {
	flatStep
	vertices bool
	unknown  bool // the store doesn't know the number
}

func (s *totalStep) next(x *exec) (*trav, error) {
	for !s.unknown {
		t, err := s.prev.next(x)
		if t == nil || err != nil {
			return nil, err
		}
		n, ok, err := x.total(s.vertices)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			s.unknown, s.t = true, t
			if s.cur, err = s.f(x, t); err != nil {
				return nil, err
			}
		case n > 0 && t.bulk > math.MaxInt64/n:
			return nil, errOverflow()
		case n > 0:
			all := t.split(x, true)
			all.bulk = t.bulk * n
			return all, nil
		}
	}
	return s.flatStep.next(x)
}

func (s *totalStep) reset() {
	s.flatStep.reset()
	s.unknown = false
}

// total returns the number of vertices or edges of the graph. ok is false if the store doesn't know it.
func (x *exec) total(vertices bool) (n int64, ok bool, err error) {
	store, can := x.g.Store.(graph.Totaler)
	if !can {
		return 0, false, nil
	}
	t, ok, err := store.Totals(x.ctx)
	if err != nil {
		return 0, false, x.cause(err)
	}
	x.stats.Charge += t.Charge
	x.stats.Items += int64(t.Read)
	x.ops.count++
	x.ops.items += int64(t.Read)
	if n = t.Edges; vertices {
		n = t.Vertices
	}
	return n, ok, nil
}
