package sql

import (
	"reflect"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// GROUP BY, DISTINCT and the sorts of sub-queries gather rows in memory. That memory is charged to the budget that all
// requests share. It is returned when the query or sub-query starts again, and when the execution ends.
//
// Example: ARRAY(SELECT DISTINCT VALUE t FROM t IN c.tags) charges each distinct tag (hold). For the next item the
// sub-query starts again and returns that memory (drop).

// maxGathered is the most memory in bytes that one execution may gather when requests share no budget.
const maxGathered = 64 << 20

// Sizes in bytes of a gathered group and a gathered row, without the values that they point to.
var (
	groupSize = int(reflect.TypeFor[group]().Size()) + funcs.MapEntry + 2*funcs.PointerSize
	rowSize   = int(reflect.TypeFor[sortedRow]().Size()) * 2
)

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

// drop returns the memory that a state holds to the budget.
func (f *frame) drop(st *subState) {
	f.acct.Shrink(st.held)
	st.held = 0
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
