package agg

import (
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Groups that don't fit into memory are written to temporary files with the states of their accumulators
// (spill.Groups). The merged groups are in the order of hashes, not of first documents. $group promises no order.

// keyed returns how groups are written.
func (g *grouper) keyed() *spill.Keyed[groupState] {
	return &spill.Keyed[groupState]{
		Compare: func(a, b *groupState) int { return g.coll.Compare(a.key, b.key) },
		Append:  appendGroup,
		Decode:  g.readGroup,
		Merge:   g.join,
	}
}

// spill writes all groups in memory to a new run.
func (g *grouper) spill() error {
	err := g.all.Write(g.mem.ctx)
	g.mem.forget()
	return err
}

// merge returns the groups of all runs.
func (g *grouper) merge() (Iter, error) {
	if err := g.spill(); err != nil {
		return nil, err
	}
	rows, err := g.all.Merge(g.mem.ctx)
	if err != nil {
		return nil, err
	}
	return &mergedIter[*spill.Group[groupState]]{rows, func(x *spill.Group[groupState]) (value.Value, error) {
		if err := g.load(&x.State); err != nil {
			return value.Undef(), err
		}
		return g.doc(&x.State)
	}}, nil
}

// appendGroup appends the encoding of a group: key, states.
func appendGroup(dst []byte, st *groupState) []byte {
	dst = value.AppendTyped(dst, st.key)
	if st.accs == nil {
		for _, s := range st.states {
			dst = value.AppendTyped(dst, s)
		}
		return dst
	}
	for _, a := range st.accs {
		dst = value.AppendTyped(dst, a.State())
	}
	return dst
}

// readGroup decodes a group that appendGroup has written.
func (g *grouper) readGroup(b []byte, st *groupState) error {
	bad := status.New(status.Corruption, "A group in a temporary file is damaged.")
	st.states = make([]value.Value, len(g.accs))
	var ok bool
	if st.key, b, ok = value.ReadTyped(b); !ok {
		return bad
	}
	for i := range st.states {
		if st.states[i], b, ok = value.ReadTyped(b); !ok {
			return bad
		}
	}
	return nil
}

// load creates the accumulators of a group that was read from a run.
func (g *grouper) load(st *groupState) error {
	if st.accs != nil {
		return nil
	}
	accs := g.fresh()
	for i, a := range accs {
		if err := a.Join(st.states[i]); err != nil {
			return err
		}
	}
	st.accs, st.states, st.key = accs, nil, st.key.Clone()
	return nil
}

// join adds to group a the same group b of later documents. The states that it builds are charged until the next group
// is joined. They can't be written to a file, so a group that is too large is refused.
func (g *grouper) join(a, b *groupState) error {
	if a.accs == nil { // a new group
		g.joined.Shrink(int64(g.size))
		g.size = 0
	}
	if err := g.load(a); err != nil {
		return err
	}
	size := 0
	for i, acc := range a.accs {
		if err := acc.Join(b.states[i]); err != nil {
			return err
		}
		size += acc.Size()
	}
	grown := size - g.size
	if g.size = size; grown <= 0 {
		return nil
	}
	err := g.joined.Grow(int64(grown))
	switch {
	case err != nil && size <= budget.Floor:
		g.joined.Take(int64(grown))
		return nil
	case status.Is(err, status.MemoryLimit):
		return merr.New(merr.ExceededMemoryLimit, "$group used too much memory for one group and cannot spill it to "+
			"disk: %s", status.From(err).Msg)
	}
	return err
}

// groupsIter returns the groups in memory, and drops each group after it was returned.
type groupsIter struct {
	g    *grouper
	rest []*spill.Group[groupState]
}

// Next implements Iter.
func (s *groupsIter) Next() (value.Value, bool, error) {
	if len(s.rest) == 0 {
		return value.Undef(), false, nil
	}
	st := s.rest[0]
	s.rest[0] = nil
	s.rest = s.rest[1:]
	d, err := s.g.doc(&st.State)
	return d, err == nil, err
}

// Close implements Iter.
func (s *groupsIter) Close() { s.rest = nil }

// mergedIter returns the documents that are built from the merged elements of runs.
type mergedIter[T any] struct {
	rows *spill.Merged[T]
	doc  func(T) (value.Value, error)
}

// Next implements Iter.
func (m *mergedIter[T]) Next() (value.Value, bool, error) {
	x, ok, err := m.rows.Next()
	if !ok || err != nil {
		return value.Undef(), false, err
	}
	d, err := m.doc(x)
	return d, err == nil, err
}

// Close implements Iter.
func (m *mergedIter[T]) Close() { m.rows.Close() }
