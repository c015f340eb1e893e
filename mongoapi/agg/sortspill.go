package agg

import (
	"slices"

	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// sorting is the state of a $sort that the store can't execute. Documents that don't fit into memory are written to a
// temporary file as a sorted run. At the end the runs are merged.
//
// Example: sort by a, memory for two documents, input a = 3, 1, 2: run 1 = 1, 3 and run 2 = 2. The merge returns 1, 2,
// 3.
type sorting struct {
	o       order.Order
	limit   int // 0: all documents are wanted
	mem     *hold
	charged int // of mem for what is in memory
	in      *order.Sorter
	runs    *spill.Runs[sortRow] // nil: nothing was written to files
}

// sortRow is a document and its sort keys. The keys point into the document.
type sortRow struct {
	doc  value.Value
	keys []value.Value
}

// sorted sorts all documents of src. With an empty order it holds them in the order in which they come, and reads src
// completely before it returns the first one.
func sorted(x *Exec, src Iter, what string, o order.Order) Iter {
	return firstSorted(x, src, what, o, 0)
}

// firstSorted is sorted if only the first documents are wanted; 0: all. It holds about that many.
func firstSorted(x *Exec, src Iter, what string, o order.Order, limit int64) Iter {
	if limit > maxFirst {
		limit = 0
	}
	return lazyFrom(x, src, what, func(src Iter, h *hold) (Iter, error) {
		s, err := fill(src, h, collated(x, o), int(limit))
		if err != nil {
			return nil, err
		}
		return s.docs()
	})
}

// maxFirst is the largest number of first documents for which a sort holds fewer than all.
const maxFirst = 1 << 20

// collated returns an order with strings compared as in the command.
func collated(x *Exec, o order.Order) order.Order {
	if c := x.Env.Run.Collation(); c != nil {
		return slices.Clone(o).With(c)
	}
	return o
}

// fill reads all documents of src. It holds the first ones at least; 0: all.
func fill(src Iter, h *hold, o order.Order, limit int) (*sorting, error) {
	s := &sorting{o: o, limit: limit, mem: h, in: o.NewSorter(limit, memoryLimit)}
	if h.spills(s.spill) {
		s.in = o.NewSorter(limit, 0)
	}
	for {
		d, ok, err := src.Next()
		if !ok || err != nil {
			return s, err
		}
		if err := s.in.Add(d); err != nil {
			return nil, err
		}
		more := s.in.Held() - s.charged
		s.charged += more // before take, which may spill
		if err := h.take(more); err != nil {
			return nil, err
		}
	}
}

// spill writes all documents in memory to a new run.
func (s *sorting) spill() error {
	docs := s.in.Docs()
	if len(docs) == 0 {
		return nil
	}
	if s.runs == nil {
		s.runs = spill.NewRuns(s.mem.space, s.mem.mem, spill.Codec[sortRow]{
			Append:  func(dst []byte, r sortRow) []byte { return append(dst, r.doc.Bytes()...) },
			Decode:  s.read,
			Compare: func(a, b sortRow) int { return s.o.Compare(a.keys, b.keys) },
		})
		s.mem.closes(s.runs.Close)
	}
	err := s.runs.Write(s.mem.ctx, func(yield func(sortRow) bool) {
		for _, d := range docs {
			if !yield(sortRow{doc: d}) {
				return
			}
		}
	})
	s.in, s.charged = s.o.NewSorter(s.limit, 0), 0
	s.mem.forget()
	return err
}

func (s *sorting) read(b []byte) (sortRow, error) {
	d := value.ObjectOf(b)
	if len(b) < 5 {
		return sortRow{}, status.New(status.Corruption, "A document in a temporary file is damaged.")
	}
	return sortRow{d, s.o.Keys(d)}, nil
}

// docs returns the documents in order.
func (s *sorting) docs() (Iter, error) {
	if s.runs == nil {
		return NewSlice(s.in.Docs()), nil
	}
	if err := s.spill(); err != nil {
		return nil, err
	}
	rows, err := s.runs.Merge(s.mem.ctx)
	if err != nil {
		return nil, err
	}
	return &mergedIter[sortRow]{rows, func(r sortRow) (value.Value, error) { return r.doc, nil }}, nil
}
