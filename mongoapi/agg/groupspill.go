package agg

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Groups that don't fit into memory are written to a temporary file as a run: sorted by the hashes of their keys, with
// the states of their accumulators. Then they are removed from memory. A later document of such a group creates the
// group again. At the end the runs are merged. The states of one group are joined in the order in which they were
// written. The merged groups are in the order of hashes, not of first documents. $group promises no order.
//
// Example: {$group: {_id: "$k", n: {$sum: 1}}}, memory for two groups, documents with the keys a, b, a, c, b:
//
//	a, b, a   in memory: a (n 2), b (n 1)
//	c         too much: run 1 = {a: 2}, {b: 1} in the order of hashes; in memory: c (n 1)
//	b         in memory: c (n 1), b (n 1), created again
//	end       run 2 = {c: 1}, {b: 1} in the order of hashes
//	merge     a (n 2), b (n 2), c (n 1) in the order of hashes

// spill writes all groups in memory to a new run.
func (g *grouper) spill() error {
	if len(g.all) == 0 {
		return nil
	}
	if g.runs == nil {
		g.runs = spill.NewRuns(g.mem.space, g.mem.mem, spill.Codec[*groupState]{
			Append: appendGroup, Decode: g.readGroup, Compare: compareGroups, Merge: g.join})
		g.mem.closes(g.runs.Close)
	}
	slices.SortFunc(g.all, compareGroups)
	err := g.runs.Write(g.mem.ctx, func(yield func(*groupState, error) bool) {
		for _, st := range g.all {
			if !yield(st, nil) {
				return
			}
		}
	})
	clear(g.all)
	clear(g.at)
	g.all = g.all[:0]
	g.mem.forget()
	return err
}

// merge returns the groups of all runs.
func (g *grouper) merge() (Iter, error) {
	if err := g.spill(); err != nil {
		return nil, err
	}
	g.at, g.all = nil, nil
	rows, err := g.runs.Merge(g.mem.ctx)
	if err != nil {
		return nil, err
	}
	return &mergedIter[*groupState]{rows, func(st *groupState) (value.Value, error) {
		if err := g.load(st); err != nil {
			return value.Undef(), err
		}
		return g.doc(st), nil
	}}, nil
}

func compareGroups(a, b *groupState) int {
	if c := cmp.Compare(a.hash, b.hash); c != 0 {
		return c
	}
	return value.CompareBSON(a.key, b.key)
}

// appendGroup appends the encoding of a group: hash, key, states.
func appendGroup(dst []byte, st *groupState) []byte {
	dst = value.AppendTyped(binary.BigEndian.AppendUint64(dst, st.hash), st.key)
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
func (g *grouper) readGroup(b []byte) (*groupState, error) {
	bad := status.New(status.Corruption, "A group in a temporary file is damaged.")
	if len(b) < 8 {
		return nil, bad
	}
	st := &groupState{hash: binary.BigEndian.Uint64(b), states: make([]value.Value, len(g.accs))}
	var ok bool
	if st.key, b, ok = value.ReadTyped(b[8:]); !ok {
		return nil, bad
	}
	for i := range st.states {
		if st.states[i], b, ok = value.ReadTyped(b); !ok {
			return nil, bad
		}
	}
	return st, nil
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

// join adds to group a the same group b of later documents.
func (g *grouper) join(a, b *groupState) (*groupState, error) {
	if err := g.load(a); err != nil {
		return nil, err
	}
	for i, acc := range a.accs {
		if err := acc.Join(b.states[i]); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// groupsIter returns the groups in memory, and drops each group after it was returned.
type groupsIter struct {
	g *grouper
	i int
}

// Next implements Iter.
func (s *groupsIter) Next() (value.Value, bool, error) {
	if s.i == len(s.g.all) {
		return value.Undef(), false, nil
	}
	st := s.g.all[s.i]
	s.g.all[s.i] = nil
	s.i++
	return s.g.doc(st), true, nil
}

// Close implements Iter.
func (s *groupsIter) Close() { s.g.all, s.i = nil, 0 }

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
