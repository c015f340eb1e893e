package sql

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// Groups that don't fit into memory are written to a temporary file as a run: sorted by the hashes of their keys, with
// the states of their aggregates. Then they are removed from memory. A later row of such a group creates the group
// again. At the end all runs are merged. The states of one group are joined in the order in which they were written.
// The merged group has the place of its first row.
//
// Example: SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k, with memory for two groups and the keys a, b, a, c, b:
//
//	rows a, b, a   in memory: a (place 0, count 2), b (place 1, count 1)
//	row  c         too much: run 1 = {a: 0, 2}, {b: 1, 1}, {c: 2, 1}, in the order of hashes; nothing in memory
//	row  b         in memory: b (place 3, count 1)
//	end            run 2 = {b: 3, 1}
//	merge          a (place 0, count 2), b (place 1, count 2), c (place 2, count 1)

// spillGroups enables the writing of the outermost query's groups to files when the memory budget is used up.
func (cq *cquery) spillGroups(f *frame) {
	if f.space == nil || f.bud == nil {
		return
	}
	acct := f.account()
	acct.Spills()
	acct.OnSpill(func() {
		if f.err == nil {
			if err := cq.writeGroups(f); err != nil {
				f.fail(err)
			}
		}
	})
}

// writeGroups writes the groups in memory to a new run and removes them from memory.
func (cq *cquery) writeGroups(f *frame) error {
	st := &f.subs[cq.id]
	set := st.groups
	if len(set.list) == 0 {
		return nil
	}
	if f.runs == nil {
		f.runs = spill.NewRuns(f.space, f.acct, spill.Codec[*group]{
			Append: cq.appendGroup, Decode: cq.readGroup, Compare: compareGroupKeys, Merge: cq.joinGroups})
	}
	slices.SortFunc(set.list, compareGroupKeys)
	err := f.runs.Write(f.done, func(yield func(*group, error) bool) {
		for _, g := range set.list {
			if !yield(g, nil) {
				return
			}
		}
	})
	set.forget()
	f.drop(st)
	return err
}

// forget removes all groups from memory. Groups that are created afterwards get later places.
func (s *groupSet) forget() {
	clear(s.list)
	clear(s.by)
	s.list, s.size, s.told = s.list[:0], 0, 0
}

// compareGroupKeys orders groups by the hashes of their keys, then by the keys. Groups with equal keys are neighbours.
func compareGroupKeys(a, b *group) int {
	if c := cmp.Compare(a.hash, b.hash); c != 0 {
		return c
	}
	for i := range a.keys {
		x, y := a.keys[i], b.keys[i]
		if funcs.Same(x, y) {
			continue
		}
		if c := value.CompareCosmos(x, y); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(x.Kind(), y.Kind()), bytes.Compare(x.Bytes(), y.Bytes()))
	}
	return 0
}

// appendGroup appends the encoding of a group: hash (8 bytes), place (uvarint), keys, number of sort keys (uvarint),
// sort keys, states.
func (cq *cquery) appendGroup(dst []byte, g *group) []byte {
	dst = binary.BigEndian.AppendUint64(dst, g.hash)
	dst = binary.AppendUvarint(dst, uint64(g.at))
	for _, k := range g.keys {
		dst = value.AppendTyped(dst, k)
	}
	dst = binary.AppendUvarint(dst, uint64(len(g.order)))
	for _, k := range g.order {
		dst = value.AppendTyped(dst, k)
	}
	for i := range g.aggs {
		dst = g.aggs[i].Append(dst)
	}
	return dst
}

// readGroup decodes a group that appendGroup has written.
func (cq *cquery) readGroup(b []byte) (*group, error) {
	r := funcs.Stored{B: b}
	g := &group{hash: r.Uint64(), at: int64(r.Uvarint())}
	g.keys = r.Values(uint64(len(cq.keys)))
	g.order = r.Values(r.Uvarint())
	g.aggs = make([]funcs.State, len(cq.group.aggs))
	for i := range g.aggs {
		g.aggs[i].Read(&r)
	}
	if r.Bad {
		return nil, status.New(status.Corruption, "A group in a temporary file is damaged.")
	}
	return g, nil
}

// joinGroups adds to a group a the same group b of later rows.
func (cq *cquery) joinGroups(a, b *group) (*group, error) {
	a.at = min(a.at, b.at)
	for i, spec := range cq.group.aggs {
		s := &a.aggs[i]
		if spec.fn.Join(s, &b.aggs[i]); s.Full() {
			return nil, spec.fn.Overflow()
		}
	}
	return a, nil
}

// clone returns a deep copy of a group and its size in bytes.
func (g *group) clone() (*group, int) {
	c := &group{hash: g.hash, at: g.at, keys: cloneAll(g.keys), order: cloneAll(g.order), aggs: slices.Clone(g.aggs)}
	n := groupSize + funcs.StateSize*len(c.aggs) + (len(c.keys)+len(c.order))*funcs.ValueSize
	for i := range c.aggs {
		s := &c.aggs[i]
		n += s.Own()
	}
	for _, vs := range [][]value.Value{c.keys, c.order} {
		for _, v := range vs {
			n += funcs.BytesOf(v)
		}
	}
	return c, n
}

func cloneAll(vs []value.Value) []value.Value {
	out := make([]value.Value, len(vs))
	for i := range vs {
		out[i] = vs[i].Clone()
	}
	return out
}
