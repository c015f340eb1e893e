package exec

import (
	"cmp"
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// newIntersection makes a union of only the first leaf. Every other leaf must name the items too. Order and window are
// those of a union.
func newIntersection(b *builder, leaves []*access.Pred, from *position) *union {
	u := newUnion(b, leaves[:1], from)
	for _, p := range leaves[1:] {
		if l, ok := newLeaf(b, p); ok {
			u.also = append(u.also, l)
		}
	}
	u.alsoE = make([]entries, len(u.also))
	for i := range u.alsoE {
		u.alsoE[i] = entries{b: b, leaf: &u.also[i]}
	}
	return u
}

// intersect removes from the list the items that another leaf doesn't name.
func (u *union) intersect() error {
	for i := range u.alsoE {
		if len(u.list) == 0 {
			return nil
		}
		u.hit = append(u.hit[:0], make([]bool, len(u.list))...)
		for at := u.i; at < u.upto; {
			var sps []span
			sps, at = u.b.slotOf(at)
			if err := u.marks(&u.alsoE[i], sps); err != nil {
				return err
			}
		}
		kept := u.list[:0]
		for at, n := range u.list {
			if u.hit[at] {
				kept = append(kept, n)
			}
		}
		u.list = kept
	}
	return nil
}

// marks marks the items of the list that a leaf names in a slot.
func (u *union) marks(e *entries, sps []span) error {
	e.start(sps, nil)
	for {
		ok, err := e.next()
		if err != nil || !ok {
			return err
		}
		if at, found := slices.BinarySearchFunc(u.list, e.cur.Number, func(n named, number uint64) int {
			return cmp.Compare(n.number, number)
		}); found {
			u.hit[at] = true
		}
	}
}
