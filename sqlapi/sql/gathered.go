package sql

import (
	"reflect"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// What is gathered by GROUP BY, DISTINCT and the sorts of sub-queries is charged to the budget of all requests when
// it is gathered, and given back when its query or sub-query begins anew and when the execution ends.

// maxGathered is what one execution may gather where requests share no budget, in bytes.
const maxGathered = 64 << 20

// What gathered things take beside the bytes that they point to.
var (
	groupSize = int(reflect.TypeFor[group]().Size()) + funcs.MapEntry + 2*funcs.PointerSize
	rowSize   = int(reflect.TypeFor[sortedRow]().Size()) * 2
)

// hold charges n bytes for a state; the execution fails when there is no room for them.
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

// account is that of what the execution gathers.
func (f *frame) account() *budget.Account {
	if f.acct == nil {
		if f.bud == nil {
			f.bud = budget.New(maxGathered, 0)
		}
		f.acct = f.bud.Open("group, sort or set of distinct rows")
	}
	return f.acct
}

// drop gives back what a state holds.
func (f *frame) drop(st *subState) {
	f.acct.Shrink(st.held)
	st.held = 0
}

// checked wraps a comparison of a sort so that the sort ends soon after the execution's context: all is equal from
// then on.
func (f *frame) checked(less func(i, j int) bool) func(i, j int) bool {
	n := 0
	return func(i, j int) bool {
		if n++; n&8191 == 0 {
			f.cancelled()
		}
		return f.err == nil && less(i, j)
	}
}

// cancelled ends the execution when its context has ended.
func (f *frame) cancelled() {
	if f.done != nil {
		if err := f.done.Err(); err != nil {
			f.fail(err)
		}
	}
}
