package sql

import (
	"container/heap"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// sortedRow is a row of a sub-query with ORDER BY.
type sortedRow struct {
	keys []value.Value
	val  value.Value
	at   int // which row it is: equal rows keep their order
}

// size is what a row takes.
func (r *sortedRow) size() int {
	n := rowSize + funcs.BytesOf(r.val)
	for i := range r.keys {
		n += funcs.ValueSize + funcs.BytesOf(r.keys[i])
	}
	return n
}

// rowBefore is the total order of the rows of a sub-query.
func (cq *cquery) rowBefore(a, b *sortedRow) bool {
	switch {
	case cq.before(a.keys, b.keys):
		return true
	case cq.before(b.keys, a.keys):
		return false
	}
	return a.at < b.at
}

// wanted is how many rows of a sort are given or skipped; -1: all. DISTINCT may want any number for one that it gives.
func (cq *cquery) wanted(st *subState) int64 {
	if st.left < 0 || cq.q.Distinct {
		return -1
	}
	return st.skip + st.left
}

// passed reports whether a row comes behind all that are wanted, of which there are enough.
func (cq *cquery) passed(st *subState, r *sortedRow) bool {
	n := cq.wanted(st)
	return n == 0 || n > 0 && int64(len(st.sorted)) >= n && !cq.rowBefore(r, &st.sorted[0])
}

// keep adds a row to those that are sorted; where only the first ones are wanted, in the place of the last of them.
func (cq *cquery) keep(f *frame, st *subState, r sortedRow) {
	n := cq.wanted(st)
	h := rowHeap{cq, &st.sorted}
	switch {
	case n < 0:
		st.sorted = append(st.sorted, r)
	case int64(len(st.sorted)) < n:
		heap.Push(h, r)
	default:
		old := int64(st.sorted[0].size())
		f.acct.Shrink(old)
		st.held -= old
		st.sorted[0] = r
		heap.Fix(h, 0)
	}
}

// rowHeap has the last of the wanted rows on top.
type rowHeap struct {
	cq   *cquery
	list *[]sortedRow
}

func (h rowHeap) Len() int           { return len(*h.list) }
func (h rowHeap) Less(i, j int) bool { return h.cq.rowBefore(&(*h.list)[j], &(*h.list)[i]) }
func (h rowHeap) Swap(i, j int)      { (*h.list)[i], (*h.list)[j] = (*h.list)[j], (*h.list)[i] }
func (h rowHeap) Push(x any)         { *h.list = append(*h.list, x.(sortedRow)) }
func (h rowHeap) Pop() any {
	l := *h.list
	*h.list = l[:len(l)-1]
	return l[len(l)-1]
}
