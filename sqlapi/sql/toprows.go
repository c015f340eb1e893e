package sql

import (
	"container/heap"
	"encoding/binary"
	"slices"

	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
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

// rowRuns are the rows of a sort that were written to files because the memory was used up. Each run has the best rows
// of its part of the input, as many as are wanted, so the best rows of all are among them.
type rowRuns struct {
	codec spill.Codec[sortedRow]
	runs  *spill.Runs[sortedRow] // nil: nothing was written
}

// newRuns returns where the rows to sort may be written; nil when they must stay in memory.
func (cq *cquery) newRuns(f *frame) *rowRuns {
	if !cq.once || cq.grouped || len(cq.order) == 0 || f.space == nil || f.bud == nil {
		return nil
	}
	f.spills()
	return &rowRuns{codec: spill.Codec[sortedRow]{Append: appendRow, Decode: cq.readRow, Compare: cq.compareRows}}
}

func (cq *cquery) compareRows(a, b sortedRow) int {
	switch {
	case cq.rowBefore(&a, &b):
		return -1
	case cq.rowBefore(&b, &a):
		return 1
	}
	return 0
}

// appendRow appends the encoding of a row: index (uvarint), value, sort keys.
func appendRow(dst []byte, r sortedRow) []byte {
	dst = value.AppendTyped(binary.AppendUvarint(dst, uint64(r.at)), r.val)
	for _, k := range r.keys {
		dst = value.AppendTyped(dst, k)
	}
	return dst
}

// readRow decodes a row that appendRow has written.
func (cq *cquery) readRow(b []byte) (sortedRow, error) {
	s := funcs.Stored{B: b}
	r := sortedRow{at: int(s.Uvarint()), val: s.Value()}
	if r.keys = s.Values(uint64(len(cq.order))); s.Bad {
		return r, status.New(status.Corruption, "A row in a temporary file is damaged.")
	}
	return r, nil
}

// writeRows writes the rows to sort to a new run.
func (st *subState) writeRows(f *frame) error {
	if st.rowRuns == nil || len(st.sorted) == 0 {
		return nil
	}
	if st.rowRuns.runs == nil {
		st.rowRuns.runs = spill.NewRuns(f.space, f.acct, st.rowRuns.codec)
	}
	slices.SortFunc(st.sorted, st.rowRuns.codec.Compare)
	err := st.rowRuns.runs.Write(f.done, slices.Values(st.sorted))
	clear(st.sorted)
	st.sorted = st.sorted[:0]
	f.acct.Shrink(st.held)
	st.held = 0
	return err
}

// finishWritten passes the rows of all runs to sink, in their order. It returns false when no further row is wanted.
func (cq *cquery) finishWritten(f *frame, sink func(f *frame, v value.Value) bool) bool {
	st := &f.subs[cq.id]
	err := st.writeRows(f)
	if err != nil {
		f.fail(err)
		return false
	}
	rows, err := st.rowRuns.runs.Merge(f.done)
	if err != nil {
		f.fail(err)
		return false
	}
	defer rows.Close()
	for f.step() {
		r, ok, err := rows.Next()
		if err != nil {
			f.fail(err)
		}
		if !ok || err != nil {
			return err == nil
		}
		if !cq.emit(f, r.val, sink) {
			return false
		}
	}
	return false
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
