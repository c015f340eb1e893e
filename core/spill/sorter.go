package spill

import (
	"context"
	"slices"

	"github.com/orrerydb/orrery/core/budget"
)

// Sorter sorts elements: in memory while its account has room, else in files. Equal elements keep the order in which
// they were added. It is not safe for concurrent use.
type Sorter[T any] struct {
	ctx  context.Context
	s    *Space
	acct *budget.Account
	c    Codec[T]
	list []T
	held int64 // bytes of list
	runs *Runs[T]
	rows *Merged[T]
	at   int
	err  error
}

// NewSorter returns an empty Sorter. Without a Space, and without a budget, all elements stay in memory. It owns acct
// while elements are added.
func NewSorter[T any](ctx context.Context, s *Space, acct *budget.Account, c Codec[T]) *Sorter[T] {
	out := &Sorter[T]{ctx: ctx, s: s, acct: acct, c: c}
	if s != nil && acct != nil {
		acct.Spills()
		acct.OnSpill(out.spill)
	} else {
		acct.OnSpill(nil)
	}
	return out
}

// Sorted returns a Sorter of elements that are already sorted. They have been charged to acct with that number of
// bytes.
func Sorted[T any](ctx context.Context, s *Space, acct *budget.Account, c Codec[T], list []T, held int64) *Sorter[T] {
	return &Sorter[T]{ctx: ctx, s: s, acct: acct, c: c, list: list, held: held}
}

// Add adds an element that takes that number of bytes. It fails with StoreFull when there is no room in memory or on
// the disk, with MemoryLimit or TooManyRequests when there is no Space, and with Timeout when the context has ended.
func (s *Sorter[T]) Add(x T, bytes int) error {
	if err := s.acct.Grow(int64(bytes)); err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	s.list, s.held = append(s.list, x), s.held+int64(bytes)
	return nil
}

// spill writes the list to a run.
func (s *Sorter[T]) spill() {
	if len(s.list) == 0 || s.err != nil {
		return
	}
	if s.runs == nil {
		s.runs = NewRuns(s.s, s.acct, s.c)
	}
	s.sort()
	s.err = s.runs.Write(s.ctx, slices.Values(s.list))
	clear(s.list)
	s.list = s.list[:0]
	s.acct.Shrink(s.held)
	s.held = 0
}

func (s *Sorter[T]) sort() { slices.SortStableFunc(s.list, s.c.Compare) }

// Spill writes the elements in memory to files. It may be called after the last Add. Elements that Next has given are
// not given again.
func (s *Sorter[T]) Spill(ctx context.Context) error {
	if s.rows != nil || s.s == nil || s.acct == nil {
		return nil
	}
	s.ctx, s.list = ctx, slices.Delete(s.list, 0, s.at)
	if s.at = 0; len(s.list) == 0 {
		return nil
	}
	if s.spill(); s.err != nil {
		return s.err
	}
	return s.merge(ctx)
}

// End sorts the elements. It may be called again to begin with the first element again, unless Spill was called.
func (s *Sorter[T]) End(ctx context.Context) error {
	s.ctx, s.at = ctx, 0
	s.rows.Close()
	s.rows = nil
	if s.runs == nil {
		s.sort()
		s.acct.OnSpill(nil)
		return s.err
	}
	if s.spill(); s.err != nil {
		return s.err
	}
	s.acct.OnSpill(nil)
	return s.merge(ctx)
}

func (s *Sorter[T]) merge(ctx context.Context) error {
	s.rows, s.err = s.runs.Merge(ctx)
	return s.err
}

// Next returns the next element after End. It is valid until the next call. ok is false at the end.
func (s *Sorter[T]) Next() (x T, ok bool, err error) {
	if s.rows != nil {
		return s.rows.Next()
	}
	if s.at >= len(s.list) {
		return x, false, nil
	}
	s.at++
	return s.list[s.at-1], true, nil
}

// Held returns the number of bytes that the elements in memory take.
func (s *Sorter[T]) Held() int64 { return s.held }

// Close removes the files and returns the memory.
func (s *Sorter[T]) Close() {
	if s == nil {
		return
	}
	s.rows.Close()
	s.runs.Close()
	s.acct.OnSpill(nil)
	s.acct.Shrink(s.held)
	s.rows, s.runs, s.list, s.held = nil, nil, nil, 0
}
