package sql

import (
	"reflect"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// GROUP BY, DISTINCT and the sorts of sub-queries gather rows in memory. That memory is charged to the budget that all
// requests share. It is returned when the query or sub-query starts again, and when the execution ends.
//
// Example: ARRAY(SELECT DISTINCT VALUE t FROM t IN c.tags) charges each distinct tag (charge). For the next item the
// sub-query starts again and returns that memory (drop).
//
// What is gathered by a query that runs once for each execution is written to files when the memory is used up. These
// are the outermost query, and the sub-queries that are its first source.

// maxGathered is the most memory in bytes that one execution may gather when requests share no budget.
const maxGathered = 64 << 20

// Sizes in bytes of a gathered group, a distinct row and a row to sort, without the values that they point to.
var (
	groupSize    = int(reflect.TypeFor[spill.Group[group]]().Size()) + funcs.MapEntry + 2*funcs.PointerSize
	distinctSize = int(reflect.TypeFor[spill.Group[distinctRow]]().Size()) + funcs.MapEntry + 2*funcs.PointerSize
	rowSize      = int(reflect.TypeFor[sortedRow]().Size()) * 2
)

// set is what a query gathers by keys, S for each key: groups or distinct rows.
type set[S any] struct {
	spill.Groups[S]
	files bool // it may be written to files
	size  int  // bytes of what is in memory
	held  int  // the part of size that is charged
}

// newSet returns an empty set. once says that its query runs once in this execution.
func newSet[S any](f *frame, k *spill.Keyed[S], once bool) set[S] {
	if once = once && f.space != nil && f.bud != nil; !once {
		return set[S]{Groups: *spill.NewGroups(nil, nil, k)}
	}
	f.spills()
	return set[S]{Groups: *spill.NewGroups(f.space, f.acct, k), files: true}
}

// charge charges by how much the set has grown since the last call. It can write the set to a file.
func (s *set[S]) charge(f *frame) {
	n := s.size - s.held
	if n <= 0 {
		return
	}
	if err := f.account().Grow(int64(n)); err != nil {
		f.fail(err)
		return
	}
	s.held += n
}

// write writes what is in memory to a file, if that is allowed.
func (s *set[S]) write(f *frame) error {
	if !s.files {
		return nil
	}
	err := s.Write(f.done)
	s.drop(f)
	return err
}

// drop returns the memory of the set, which is no longer used.
func (s *set[S]) drop(f *frame) {
	f.acct.Shrink(int64(s.held))
	s.size, s.held = 0, 0
}

// spills makes the account write what the execution has gathered to files when the memory is used up.
func (f *frame) spills() {
	acct := f.account()
	acct.Spills()
	acct.OnSpill(func() {
		for i := 0; i < len(f.subs) && f.err == nil; i++ {
			if err := f.subs[i].write(f); err != nil {
				f.fail(err)
			}
		}
	})
}

// write writes what a query has gathered to files.
func (st *subState) write(f *frame) error {
	if st.groups != nil {
		if err := st.groups.write(f); err != nil {
			return err
		}
	}
	if st.seen != nil {
		if err := st.seen.write(f); err != nil {
			return err
		}
	}
	if st.ready != nil {
		if err := st.ready.write(f.done); err != nil {
			return err
		}
	}
	return st.writeRows(f)
}

// hold charges n bytes for a state. The execution fails when the budget doesn't allow them.
func (f *frame) hold(st *subState, n int) {
	if n == 0 {
		return
	}
	if err := f.account().Grow(int64(n)); err != nil {
		f.fail(err)
		return
	}
	st.held += int64(n)
}

// account returns the account for the memory that the execution gathers.
func (f *frame) account() *budget.Account {
	if f.acct == nil {
		if f.bud == nil {
			f.bud = budget.New(maxGathered, 0)
		}
		f.acct = f.bud.Open("group, sort or set of distinct rows")
	}
	return f.acct
}

// handOver returns the account, for what is kept between pages. All else that was gathered is removed.
func (f *frame) handOver() *budget.Account {
	for i := range f.subs {
		f.drop(&f.subs[i])
	}
	acct := f.acct
	f.acct = nil
	acct.OnSpill(nil)
	acct.Rest()
	return acct
}

// drop removes what a state has gathered, and returns its memory to the budget.
func (f *frame) drop(st *subState) {
	if st.groups != nil {
		st.groups.drop(f)
	}
	if st.seen != nil {
		st.seen.drop(f)
	}
	f.acct.Shrink(st.held)
	st.held = 0
	st.close()
}

// reuse takes over empty sets of an earlier run of the same query.
func (st *subState) reuse(groups *groupSet, seen *distinctSet) {
	if groups != nil {
		groups.Reset()
	}
	if seen != nil {
		seen.Reset()
	}
	st.groups, st.seen = groups, seen
}

// close removes the files of a state.
func (st *subState) close() {
	if st.groups != nil {
		st.groups.Close()
	}
	if st.seen != nil {
		st.seen.Close()
	}
	if st.ready != nil {
		st.ready.Close()
	}
	if st.rowRuns != nil {
		st.rowRuns.runs.Close()
	}
	st.groups, st.seen, st.ready, st.rowRuns = nil, nil, nil, nil
}

// checked wraps the comparison of a sort. Once the execution's context has ended it reports all elements as equal, so
// that the sort ends soon.
func (f *frame) checked(less func(i, j int) bool) func(i, j int) bool {
	n := 0
	return func(i, j int) bool {
		if n++; n&8191 == 0 {
			f.cancelled()
		}
		return f.err == nil && less(i, j)
	}
}

// cancelled makes the execution fail when its context has ended.
func (f *frame) cancelled() {
	if f.done != nil {
		if err := f.done.Err(); err != nil {
			f.fail(err)
		}
	}
}
