package sql

import (
	"container/heap"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// sortedRow is a row of a sub-query with ORDER BY. If TOP or LIMIT bounds the rows, only the best ones are held.
//
// Example: ORDER BY x with LIMIT 2 over the values 5, 1, 4, 2. The heap holds 5; then 5, 1. 4 comes before 5, the last
// held row, and replaces it: 4, 1. 2 replaces 4. The result is 1, 2.
type sortedRow struct {
	keys []value.Value
	val  value.Value
	at   int // index of the row; rows with equal keys keep their order
}

// size returns the memory of a row in bytes.
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

// wanted returns how many rows of a sort are returned or skipped; -1: all. For DISTINCT it is all, because any number
// of equal rows gives one result.
func (cq *cquery) wanted(st *subState) int64 {
	if st.left < 0 || cq.q.Distinct {
		return -1
	}
	return st.skip + st.left
}

// passed reports whether a row isn't wanted, because enough rows come before it.
func (cq *cquery) passed(st *subState, r *sortedRow) bool {
	n := cq.wanted(st)
	return n == 0 || n > 0 && int64(len(st.sorted)) >= n && !cq.rowBefore(r, &st.sorted[0])
}

// keep adds a row to the rows to sort. When there are as many rows as wanted, it replaces the last of them.
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

// rowHeap is a heap with the last of the wanted rows on top.
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
