package sql

import (
	"cmp"
	"context"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
)

// gathered returns groups or distinct rows in their final order. It can be kept between two pages (spill.Kept), so it
// must not refer to the execution that made it.
//
// Example: SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city with pages of 100 rows. Page 1 reads all items, returns
// the first 100 groups with peek and next, and keeps the others. Page 2 takes the kept groups and reads no item. If
// they were dropped in the meantime, page 2 groups all items again and seeks the group that page 1 returned last.
type gathered[S any] struct {
	all   *spill.Sorter[*spill.Group[S]] // in memory or in files
	acct  *budget.Account                // nil while the execution has it
	ahead *spill.Group[S]
	stats exec.Stats
	last  uint64 // hash of the keys of the last group that was returned
	left  int64  // rows of TOP or LIMIT still to return
}

// inPlace is the order of groups that are sorted already: a stable sort keeps it.
func inPlace[S any](_, _ *spill.Group[S]) int { return 0 }

// gather returns the groups of a set in their order in memory, without the first ones. They were never written to
// files.
func gather[S any](f *frame, s *set[S], k *spill.Keyed[S], first int64) *gathered[S] {
	list := s.TakeList()[first:] // what writes the set to files must not find them any more
	g := &gathered[S]{all: spill.Sorted(f.done, f.space, f.acct, k.Sorted(inPlace[S]), list, int64(s.held))}
	s.size, s.held = 0, 0 // the sorter returns the memory
	return g
}

// gatherWritten returns the groups of a set of which some were written to files, in the order of compare. own copies a
// group that was read; ok is false for one that isn't wanted. The second number is the size of the copy in bytes.
func gatherWritten[S any](f *frame, s *set[S], k *spill.Keyed[S], compare func(a, b *spill.Group[S]) int,
	own func(g *spill.Group[S]) (state S, bytes int, ok bool)) (*gathered[S], error) {
	rows, err := s.Merge(f.done)
	s.drop(f)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	defer f.spills() // the sorter has set its own function
	out := &gathered[S]{all: spill.NewSorter(f.done, f.space, f.acct, k.Sorted(compare))}
	for n := 1; ; n++ {
		g, ok, err := rows.Next()
		if n&1023 == 0 {
			f.cancelled()
		}
		if err == nil {
			err = f.err
		}
		if err == nil && ok {
			if state, bytes, wanted := own(g); wanted && f.err == nil {
				err = out.all.Add(&spill.Group[S]{Hash: g.Hash, Place: g.Place, State: state}, bytes)
			}
		}
		if err != nil {
			out.Close()
			return nil, err
		}
		if !ok {
			break
		}
	}
	rows.Close()
	s.Close()
	if err := out.all.End(f.done); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// groupRows ends the gathering of groups. It returns them in the order of ORDER BY, or without one in the order of
// their first rows.
func (cq *cquery) groupRows(f *frame) (*gathered[group], error) {
	st := &f.subs[cq.id]
	cq.oneGroup(st)
	cq.holdOrder(f)
	if f.err != nil {
		return nil, f.err
	}
	if !st.groups.Written() {
		st.groups.files = false // a sub-query in ORDER BY can need memory
		cq.sortGroups(f)
		f.acct.Shrink(st.held)
		st.held = 0
		return gather(f, &st.groups.set, cq.keyed, 0), f.err
	}
	return gatherWritten(f, &st.groups.set, cq.keyed, func(a, b *spill.Group[group]) int {
		switch {
		case cq.before(a.State.order, b.State.order):
			return -1
		case cq.before(b.State.order, a.State.order):
			return 1
		}
		return cmp.Compare(a.Place, b.Place)
	}, func(g *spill.Group[group]) (group, int, bool) {
		st.group = &g.State
		g.State.order = make([]value.Value, len(cq.order))
		for i, k := range cq.order {
			g.State.order[i] = k(f)
		}
		own, bytes := g.State.clone()
		return own, bytes, true
	})
}

// peek returns the next group, nil at the end. The group is valid until the peek after next.
func (r *gathered[S]) peek() (*spill.Group[S], error) {
	if r.ahead != nil {
		return r.ahead, nil
	}
	g, ok, err := r.all.Next()
	if ok {
		r.ahead = g
	}
	return r.ahead, err
}

// next moves past the group that peek has returned.
func (r *gathered[S]) next() {
	r.last = r.ahead.Hash
	r.ahead = nil
}

// seek moves past the group whose keys have the given hash and reports true. If there is no such group it stays at the
// beginning and reports false.
func (r *gathered[S]) seek(ctx context.Context, hash uint64) (found bool, err error) {
	for !found {
		g, err := r.peek()
		if err != nil {
			return false, err
		}
		if g == nil {
			return false, r.all.End(ctx)
		}
		r.next()
		found = g.Hash == hash
	}
	return true, nil
}

// write writes what is in memory to a file, if that is allowed. What peek has returned stays valid.
func (r *gathered[S]) write(ctx context.Context) error { return r.all.Spill(ctx) }

// keep keeps what was not returned for the next page, and returns its number. Then it has the frame's account. It is
// written to a file when it takes too much memory and files are allowed.
func (r *gathered[S]) keep(f *frame, k *keeper) (uint64, error) {
	if r.Held() > k.all.Most() {
		if err := r.write(f.done); err != nil {
			return 0, err
		}
	}
	r.acct = f.handOver()
	return k.all.Put(k.owner, r), nil
}

// Held implements spill.State.
func (r *gathered[S]) Held() int64 { return r.all.Held() }

// Close implements spill.State.
func (r *gathered[S]) Close() {
	if r != nil {
		r.all.Close()
		r.acct.Close()
		r.ahead, r.acct = nil, nil
	}
}
