package sql

import (
	"cmp"
	"context"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
)

// groupRows gives the groups of a query in the order of ORDER BY, else in that of their first rows. It is kept between
// two pages (spill.Kept), so it holds nothing of the execution that made it.
type groupRows struct {
	acct  *budget.Account
	list  []*group // in memory
	at    int
	held  int64                 // by list
	files *spill.Sorter[*group] // instead of list
	space *spill.Space
	cq    *cquery
	ahead *group
	stats exec.Stats
	last  uint64 // hash of the keys of the group that was given last
	left  int64  // of TOP or LIMIT
}

// groupRows ends the gathering of groups. The frame's account is theirs then.
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

// mergedGroups gives the groups of all runs, sorted once more: the runs are in the order of keys.
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

// codec is that of groups in the order in which they are given.
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

// addAll adds merged groups to a sort, with the values of their ORDER BY.
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

// peek returns the next group, nil at the end. It lives until the group behind it is asked for.
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

// next goes to the group behind the one that peek has returned.
func (r *groupRows) next() {
	r.last = r.ahead.hash
	r.ahead = nil
	r.at++
}

// seek goes behind the group whose keys have a hash, and reports whether there is one; else it stays at the beginning.
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

// shelve makes what is held small enough to be kept: at most so many bytes.
func (r *groupRows) shelve(ctx context.Context, most int64) error {
	r.acct.Rest()
	if r.space == nil || r.Held() <= most {
		return nil
	}
	if r.files == nil {
		rest := r.list[r.at:]
		for i, g := range rest { // their order is known
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
