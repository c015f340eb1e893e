package spill

import (
	"container/heap"
	"context"
	"iter"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
)

// Merged gives the elements of several runs in order. It is not safe for concurrent use.
//
// Example: run 0 (the oldest) has 1 and 4, run 1 has 2 and 4. The heap holds one head for each run. Next gives 1, then
// 2, and then both 4: as one element if the Codec has a Merge function, else the one of run 0 first.
type Merged[T any] struct {
	c     *Codec[T]
	acct  *budget.Account
	held  int64
	heads []*head[T] // a heap: the least element is first; of equal ones that of the oldest run
	out   []*head[T]
}

// head is the current element of a run.
type head[T any] struct {
	age int // 0 is the oldest run
	r   reader
	x   T
}

// move goes to the next element of the run. It returns false at the end.
func (h *head[T]) move(c *Codec[T]) (bool, error) {
	rec, err := h.r.next()
	if rec == nil || err != nil {
		return false, err
	}
	h.x, err = c.Decode(rec)
	return err == nil, err
}

func (m *Merged[T]) init() error {
	all := m.heads
	m.heads = nil
	for _, h := range all {
		switch ok, err := h.move(m.c); {
		case err != nil:
			return err
		case ok:
			m.heads = append(m.heads, h)
		}
	}
	heap.Init((*heads[T])(m))
	return nil
}

// Next returns the next element. It is valid until the next call. ok is false at the end. A damaged run is Corruption.
func (m *Merged[T]) Next() (x T, ok bool, err error) {
	for _, h := range m.out {
		more, err := h.move(m.c)
		if err != nil {
			return x, false, err
		}
		if more {
			heap.Push((*heads[T])(m), h)
		}
	}
	m.out = m.out[:0]
	if len(m.heads) == 0 {
		return x, false, nil
	}
	x = m.pop()
	for m.c.Merge != nil && len(m.heads) > 0 && m.c.Compare(m.heads[0].x, x) == 0 {
		if x, err = m.c.Merge(x, m.pop()); err != nil {
			return x, false, err
		}
	}
	return x, true, nil
}

// pop returns the least element. Its run moves on when the element isn't needed any more.
func (m *Merged[T]) pop() T {
	h := heap.Pop((*heads[T])(m)).(*head[T])
	m.out = append(m.out, h)
	return h.x
}

// all gives all elements, and then the error that ended them, if any.
func (m *Merged[T]) all() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			x, ok, err := m.Next()
			if !ok && err == nil || !yield(x, err) || err != nil {
				return
			}
		}
	}
}

// close returns the memory of the buffers.
func (m *Merged[T]) close() {
	m.acct.GiveBuffer(m.held)
	m.held, m.heads, m.out = 0, nil, nil
}

// Close returns the memory of the buffers. The runs stay.
func (m *Merged[T]) Close() {
	if m != nil {
		m.close()
	}
}

// heads implements heap.Interface.
type heads[T any] Merged[T]

func (h *heads[T]) Len() int { return len(h.heads) }

func (h *heads[T]) Less(i, j int) bool {
	a, b := h.heads[i], h.heads[j]
	if c := h.c.Compare(a.x, b.x); c != 0 {
		return c < 0
	}
	return a.age < b.age
}

func (h *heads[T]) Swap(i, j int) { h.heads[i], h.heads[j] = h.heads[j], h.heads[i] }

func (h *heads[T]) Push(x any) { h.heads = append(h.heads, x.(*head[T])) }

func (h *heads[T]) Pop() any {
	n := len(h.heads) - 1
	x := h.heads[n]
	h.heads = h.heads[:n]
	return x
}

// expired is the error of a context that has ended.
func expired(ctx context.Context) error {
	return status.Wrap(status.Timeout, ctx.Err(), "The query took too long.")
}
