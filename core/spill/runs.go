package spill

import (
	"context"
	"iter"

	"github.com/orrerydb/orrery/core/budget"
)

// Codec says how elements are stored and ordered.
type Codec[T any] struct {
	// Append appends the encoding of an element.
	Append func(dst []byte, x T) []byte
	// Decode reads an encoding. What it returns may point into b.
	Decode func(b []byte) (T, error)
	// Compare is the order of the elements in each run.
	Compare func(a, b T) int
	// Merge makes one element of two that compare equal, a of an older run than b. It may change a and return it. The
	// elements live until it returns, so what it returns must not point into b. nil = equal elements stay apart, those
	// of the older run first.
	Merge func(a, b T) (T, error)
}

// How many runs are merged at a time, and how many bytes their blocks may have together. The second bound is for
// records that are much larger than a block.
const (
	maxFanIn   = 32
	mergeBytes = 8 << 20
)

// Runs are the runs that one sort or group has written. Runs of one age are a level: level 0 is what Write has
// written; maxFanIn runs of a level are merged into one of the next. So n runs are read and written again log32(n)
// times, and no merge reads more than maxFanIn of them.
//
// Each level is one file, which is cleared when its runs are merged. Not safe for concurrent use.
type Runs[T any] struct {
	s       *Space
	c       Codec[T]
	acct    *budget.Account
	levels  []level // a higher level has older runs
	w       writer
	rec     []byte
	largest int   // record
	n       int64 // elements that Write has written
}

type level struct {
	f    *file
	runs []run
}

// NewRuns returns an empty Runs. What its buffers take is charged to acct, also beyond its share: at most about a
// megabyte, or some records where these are larger.
func NewRuns[T any](s *Space, acct *budget.Account, c Codec[T]) *Runs[T] {
	return &Runs[T]{s: s, acct: acct, c: c}
}

// Len is how many elements were written.
func (r *Runs[T]) Len() int64 { return r.n }

// Bytes is how many bytes the files have.
func (r *Runs[T]) Bytes() (n int64) {
	for i := range r.levels {
		if r.levels[i].f != nil {
			n += r.levels[i].f.size
		}
	}
	return n
}

// Write writes elements, which come in the order of Codec.Compare, as one run. It fails with StoreFull when there is no
// room, with Timeout when ctx ends, and with the error that rows gives.
func (r *Runs[T]) Write(ctx context.Context, rows iter.Seq2[T, error]) error {
	n, err := r.write(ctx, 0, rows)
	r.n += n
	if err != nil {
		return err
	}
	return r.compact(ctx)
}

// ctxSteps is how many records are written between two looks at the context.
const ctxSteps = 1024

func (r *Runs[T]) write(ctx context.Context, lv int, rows iter.Seq2[T, error]) (n int64, err error) {
	f, err := r.file(lv)
	if err != nil {
		return 0, err
	}
	r.w.begin(f)
	for x, err := range rows {
		if err != nil {
			return n, err
		}
		if n++; n%ctxSteps == 0 && ctx.Err() != nil {
			return n, expired(ctx)
		}
		r.rec = r.c.Append(r.rec[:0], x)
		r.largest = max(r.largest, len(r.rec))
		if err := r.w.add(r.rec); err != nil {
			return n, err
		}
	}
	one, err := r.w.end()
	if err == nil && one.to > one.from {
		r.levels[lv].runs = append(r.levels[lv].runs, one)
	}
	return n, err
}

// file returns the file of a level.
func (r *Runs[T]) file(lv int) (*file, error) {
	for len(r.levels) <= lv {
		r.levels = append(r.levels, level{})
	}
	l := &r.levels[lv]
	if l.f == nil {
		var err error
		if l.f, err = r.s.create(); err != nil {
			return nil, err
		}
	}
	return l.f, nil
}

// fanIn is how many runs are merged at a time.
func (r *Runs[T]) fanIn() int {
	return max(2, min(maxFanIn, mergeBytes/max(r.largest, blockSize)))
}

// compact merges the runs of each level that has as many as are merged at a time.
func (r *Runs[T]) compact(ctx context.Context) error {
	for lv := 0; lv < len(r.levels); lv++ {
		if len(r.levels[lv].runs) < r.fanIn() {
			continue
		}
		if err := r.lift(ctx, lv); err != nil {
			return err
		}
	}
	return nil
}

// lift merges all runs of a level into one of the next.
func (r *Runs[T]) lift(ctx context.Context, lv int) error {
	if len(r.levels[lv].runs) == 0 {
		return nil
	}
	m, err := r.merge(lv, lv)
	if err != nil {
		return err
	}
	_, err = r.write(ctx, lv+1, m.all())
	m.close()
	if err != nil {
		return err
	}
	r.levels[lv].runs = nil
	return r.levels[lv].f.clear()
}

// Merge returns the elements of all runs in order. Nothing may be written any more.
func (r *Runs[T]) Merge(ctx context.Context) (*Merged[T], error) {
	for lv := 0; r.count() > r.fanIn() && lv < len(r.levels)-1; lv++ {
		if err := r.lift(ctx, lv); err != nil {
			return nil, err
		}
	}
	r.w, r.rec = writer{}, nil
	return r.merge(len(r.levels)-1, 0)
}

// count is how many runs there are.
func (r *Runs[T]) count() (n int) {
	for i := range r.levels {
		n += len(r.levels[i].runs)
	}
	return n
}

// merge merges the runs of the levels from..to, the older level first.
func (r *Runs[T]) merge(from, to int) (*Merged[T], error) {
	m := &Merged[T]{c: &r.c, acct: r.acct}
	for lv := from; lv >= to; lv-- {
		for _, one := range r.levels[lv].runs {
			h := &head[T]{age: len(m.heads), r: reader{f: r.levels[lv].f, at: one.from, to: one.to}}
			m.heads = append(m.heads, h)
		}
	}
	m.held = int64(len(m.heads)) * int64(max(blockSize, r.largest))
	r.acct.Take(m.held)
	if err := m.init(); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// Close removes the files. It may be called more than once.
func (r *Runs[T]) Close() {
	if r == nil {
		return
	}
	for i := range r.levels {
		if f := r.levels[i].f; f != nil {
			f.close()
		}
	}
	r.levels = nil
}
