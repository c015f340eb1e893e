package sql

import (
	"cmp"
	"context"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
)

// groupRows returns the groups of a query in the order of ORDER BY, or without one in the order of their first rows. It
// can be kept between two pages (spill.Kept), so it must not refer to the execution that made it.
//
// Example: SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city with pages of 100 rows. Page 1 reads all items, returns
// the first 100 groups with peek and next, and keeps the others. Page 2 takes the kept groups and reads no item. If
// they were dropped in the meantime, page 2 groups all items again and seeks the group that page 1 returned last.
type groupRows struct {
	acct  *budget.Account
	list  []*group // groups in memory
	at    int
	held  int64                 // bytes that list takes
	files *spill.Sorter[*group] // instead of list
	space *spill.Space
	cq    *cquery
	ahead *group
	stats exec.Stats
	last  uint64 // hash of the keys of the last group that was returned
	left  int64  // rows of TOP or LIMIT still to return
}

// groupRows ends the gathering of groups and returns them. It takes over the frame's account.
func (cq *cquery) groupRows(f *frame) (*groupRows, error) {
	st := &f.subs[cq.id]
	cq.oneGroup(st)
	cq.holdOrder(f)
	if f.err != nil {
		return nil, f.err
	}
	if f.runs != nil {
		return cq.mergedGroups(f)
	}
	f.acct.OnSpill(nil)
	r := &groupRows{list: cq.sortGroups(f), held: st.held, space: f.space, cq: cq}
	if f.err != nil {
		return nil, f.err
	}
	r.acct, f.acct, st.held, st.groups = f.acct, nil, 0, nil
	return r, nil
}

// mergedGroups returns the groups of all runs. The runs are in the order of keys, so the merged groups are sorted
// again.
func (cq *cquery) mergedGroups(f *frame) (*groupRows, error) {
	if err := cq.writeGroups(f); err != nil {
		return nil, err
	}
	st := &f.subs[cq.id]
	st.groups = nil
	merged, err := f.runs.Merge(f.done)
	if err != nil {
		return nil, err
	}
	defer merged.Close()
	r := &groupRows{acct: f.acct, space: f.space, cq: cq}
	r.files = spill.NewSorter(f.done, f.space, f.acct, cq.codec())
	f.acct = nil
	if err := cq.addAll(f, r.files, merged); err != nil {
		r.Close()
		return nil, err
	}
	merged.Close()
	f.runs.Close()
	f.runs = nil
	if err := r.files.End(f.done); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// codec returns the codec that sorts groups in the order in which they are returned.
func (cq *cquery) codec() spill.Codec[*group] {
	return spill.Codec[*group]{Append: cq.appendGroup, Decode: cq.readGroup, Compare: func(a, b *group) int {
		switch {
		case cq.before(a.order, b.order):
			return -1
		case cq.before(b.order, a.order):
			return 1
		}
		return cmp.Compare(a.at, b.at)
	}}
}

// addAll adds merged groups to a sort, each with its values of the ORDER BY expressions.
func (cq *cquery) addAll(f *frame, to *spill.Sorter[*group], from *spill.Merged[*group]) error {
	st := &f.subs[cq.id]
	for n := 1; ; n++ {
		g, ok, err := from.Next()
		if !ok || err != nil {
			return err
		}
		if n&1023 == 0 {
			f.cancelled()
		}
		g.order = make([]value.Value, len(cq.order))
		st.group = g
		for i, k := range cq.order {
			g.order[i] = k(f)
		}
		if f.err != nil {
			return f.err
		}
		own, bytes := g.clone()
		if err := to.Add(own, bytes); err != nil {
			return err
		}
	}
}

// peek returns the next group, nil at the end. The group is valid until the peek after next.
func (r *groupRows) peek() (*group, error) {
	if r.ahead != nil {
		return r.ahead, nil
	}
	if r.files == nil {
		if r.at < len(r.list) {
			r.ahead = r.list[r.at]
		}
		return r.ahead, nil
	}
	g, ok, err := r.files.Next()
	if ok {
		r.ahead = g
	}
	return r.ahead, err
}

// next moves past the group that peek has returned.
func (r *groupRows) next() {
	r.last = r.ahead.hash
	r.ahead = nil
	r.at++
}

// seek moves past the group whose keys have the given hash and reports true. If there is no such group it stays at the
// beginning and reports false.
func (r *groupRows) seek(ctx context.Context, hash uint64) (found bool, err error) {
	for !found {
		g, err := r.peek()
		if err != nil {
			return false, err
		}
		if g == nil {
			break
		}
		r.next()
		found = g.hash == hash
	}
	if !found {
		r.at = 0
		if r.files != nil {
			err = r.files.End(ctx)
		}
	}
	return found, err
}

// shelve prepares the groups for being kept between pages. It writes them to a file when they take more than most bytes
// of memory and files are allowed.
func (r *groupRows) shelve(ctx context.Context, most int64) error {
	r.acct.Rest()
	if r.space == nil || r.Held() <= most {
		return nil
	}
	if r.files == nil {
		rest := r.list[r.at:]
		for i, g := range rest { // they are sorted already, so their place is the sort key
			g.at, g.order = int64(i), nil
		}
		r.files = spill.Sorted(ctx, r.space, r.acct, spill.Codec[*group]{Append: r.cq.appendGroup,
			Decode: r.cq.readGroup, Compare: func(a, b *group) int { return cmp.Compare(a.at, b.at) }}, rest, r.held)
		r.list, r.held, r.ahead = nil, 0, nil
	}
	return r.files.Spill(ctx)
}

// Held implements spill.State.
func (r *groupRows) Held() int64 {
	if r.files != nil {
		return r.files.Held()
	}
	return r.held
}

// Close implements spill.State.
func (r *groupRows) Close() {
	r.files.Close()
	r.acct.Close()
	r.files, r.list, r.ahead, r.acct = nil, nil, nil, nil
}
