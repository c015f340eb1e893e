package spill

import (
	"context"
	"iter"

	"github.com/orrerydb/orrery/core/budget"
)

// Codec describes how elements are stored and ordered.
type Codec[T any] struct {
	// Append appends the encoding of an element.
	Append func(dst []byte, x T) []byte
	// Decode reads an encoding. Its result may point into b.
	Decode func(b []byte) (T, error)
	// Compare is the order of the elements in each run.
	Compare func(a, b T) int
	// Merge joins two elements that compare equal into one; a is from the older run. It may change and return a. The
	// elements are valid until it returns, so its result must not point into b. nil = equal elements stay separate, and
	// the one of the older run comes first.
	Merge func(a, b T) (T, error)
}

// Limits of one merge: the number of runs, and the bytes that their blocks may have together. The second limit matters
// for records that are much larger than a block.
const (
	maxFanIn   = 32
	mergeBytes = 8 << 20
)

// Runs holds the runs that one sort or group has written. Runs of one age form a level. Write writes runs of level 0.
// maxFanIn runs of a level are merged into one run of the next level. So n runs are read and written again log32(n)
// times, and no merge reads more than maxFanIn runs.
//
// Each level is one file, which is cleared when its runs are merged. Runs is not safe for concurrent use.
//
// Example: 70 runs are written. Twice, 32 runs of level 0 become one run of level 1. At the end 2 runs of level 1 and 6
// of level 0 are merged while they are read.
type Runs[T any] struct {
	s       *Space
	c       Codec[T]
	acct    *budget.Account
	levels  []level // a higher level has older runs
	w       writer
	rec     []byte
	largest int   // the length of the largest record
	n       int64 // elements that Write has written
}

type level struct {
	f    *file
	runs []run
}

// NewRuns returns an empty Runs. The memory of its buffers is charged to acct, even beyond its share: at most about a
// megabyte, or a few records if these are larger.
func NewRuns[T any](s *Space, acct *budget.Account, c Codec[T]) *Runs[T] {
	return &Runs[T]{s: s, acct: acct, c: c}
}

// Len returns the number of elements that were written.
func (r *Runs[T]) Len() int64 { return r.n }

// Bytes returns the size of the files.
func (r *Runs[T]) Bytes() (n int64) {
	for i := range r.levels {
		if r.levels[i].f != nil {
			n += r.levels[i].f.size
		}
	}
	return n
}

// Write writes elements as one run. They must come in the order of Codec.Compare. It fails with StoreFull when there is
// no room, and with Timeout when ctx ends.
func (r *Runs[T]) Write(ctx context.Context, rows iter.Seq[T]) error {
	n, err := r.write(ctx, 0, func(yield func(T, error) bool) {
		for x := range rows {
			if !yield(x, nil) {
				return
			}
		}
	})
	r.n += n
	if err != nil {
		return err
	}
	return r.compact(ctx)
}

// ctxSteps is the number of records that are written between two checks of the context.
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

// fanIn returns the number of runs that are merged at a time.
func (r *Runs[T]) fanIn() int {
	return max(2, min(maxFanIn, mergeBytes/max(r.largest, blockSize)))
}

// compact merges the runs of each level that has fanIn runs.
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

// lift merges all runs of a level into one run of the next level.
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

// Merge returns the elements of all runs in order. Nothing may be written afterwards.
func (r *Runs[T]) Merge(ctx context.Context) (*Merged[T], error) {
	for lv := 0; r.count() > r.fanIn() && lv < len(r.levels)-1; lv++ {
		if err := r.lift(ctx, lv); err != nil {
			return nil, err
		}
	}
	r.w, r.rec = writer{}, nil
	return r.merge(len(r.levels)-1, 0)
}

// count returns the number of runs.
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
	r.acct.TakeBuffer(m.held)
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
