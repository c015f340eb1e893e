package sql

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// The groups of a query that don't fit into memory are written to a file, ordered by their keys' hashes, with the states
// of their aggregates, and forgotten. A later row of such a group makes it again. At the end the runs are merged: the
// states of a group are joined in the order in which they were written, and the group has the place of its first row.

// spillGroups lets the groups of the query itself be written to files when there is no more memory for them.
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

// writeGroups writes the groups that are in memory to a run.
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

// forget lets the groups go. Those that come get later places.
func (s *groupSet) forget() {
	clear(s.list)
	clear(s.by)
	s.list, s.size, s.told = s.list[:0], 0, 0
}

// compareGroupKeys is an order of groups in which equal keys are neighbours.
func compareGroupKeys(a, b *group) int {
	if c := cmp.Compare(a.hash, b.hash); c != 0 {
		return c
	}
	for i := range a.keys {
		x, y := a.keys[i], b.keys[i]
		if sameValue(x, y) {
			continue
		}
		if c := value.CompareCosmos(x, y); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(x.Kind(), y.Kind()), bytes.Compare(x.Bytes(), y.Bytes()))
	}
	return 0
}

// appendGroup appends the encoding of a group: hash, place, keys, sort keys, states.
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
		dst = g.aggs[i].append(dst)
	}
	return dst
}

// readGroup reads what appendGroup has written.
func (cq *cquery) readGroup(b []byte) (*group, error) {
	r := stored{b: b}
	g := &group{hash: r.uint64(), at: int64(r.uvarint())}
	g.keys = r.values(uint64(len(cq.keys)))
	g.order = r.values(r.uvarint())
	g.aggs = make([]aggState, len(cq.group.aggs))
	for i := range g.aggs {
		g.aggs[i].read(&r)
	}
	if r.bad {
		return nil, status.New(status.Corruption, "A group in a temporary file is damaged.")
	}
	return g, nil
}

// joinGroups adds what later rows have made of a group.
func (cq *cquery) joinGroups(a, b *group) (*group, error) {
	a.at = min(a.at, b.at)
	for i, spec := range cq.group.aggs {
		s := &a.aggs[i]
		if spec.fn.join(s, &b.aggs[i]); s.over {
			return nil, errOverList(spec.fn)
		}
	}
	return a, nil
}

// clone returns a group with memory of its own, and how much that is.
func (g *group) clone() (*group, int) {
	c := &group{hash: g.hash, at: g.at, keys: cloneAll(g.keys), order: cloneAll(g.order), aggs: slices.Clone(g.aggs)}
	n := groupSize + stateSize*len(c.aggs) + (len(c.keys)+len(c.order))*valueSize
	for i := range c.aggs {
		s := &c.aggs[i]
		s.best, s.packed = s.best.Clone(), s.packed.Clone()
		n += s.held() + bytesOf(s.packed)
	}
	for _, vs := range [][]value.Value{c.keys, c.order} {
		for _, v := range vs {
			n += bytesOf(v)
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

// append appends the encoding of a state: flags, count, sum, size, best, list.
func (s *aggState) append(dst []byte) []byte {
	dst = append(dst, flagOf(s.bad))
	dst = binary.AppendVarint(dst, s.count)
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(s.sum))
	dst = binary.AppendUvarint(dst, uint64(s.size))
	dst = value.AppendTyped(dst, s.best)
	if s.list.Len() > 0 {
		s.packed = s.list.Array()
	}
	return value.AppendTyped(dst, s.packed)
}

// read reads what append has written.
func (s *aggState) read(r *stored) {
	s.bad = r.byte() != 0
	s.count = r.varint()
	s.sum = math.Float64frombits(r.uint64())
	s.size = int(r.uvarint())
	s.best = r.value()
	s.packed = r.value()
}

func flagOf(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// joinCounts, joinSums, joinBest and joinLists add the state of later rows to a state.
func joinCounts(s, t *aggState) { s.count += t.count }

func joinSums(s, t *aggState) {
	s.bad = s.bad || t.bad
	s.count, s.sum = s.count+t.count, s.sum+t.sum
}

// joinBest is for MIN and MAX, of which sign tells which.
func joinBest(sign int) func(s, t *aggState) {
	return func(s, t *aggState) {
		s.bad = s.bad || t.bad
		s.extreme(t.best, sign)
	}
}

// joinLists is for MAKELIST and MAKESET: add is theirs.
func joinLists(add func(s *aggState, v value.Value)) func(s, t *aggState) {
	return func(s, t *aggState) {
		s.unpack(add)
		for it := t.packed.Iter(); it.Next(); {
			add(s, it.Value())
		}
	}
}

// unpack makes a list again of one that was read.
func (s *aggState) unpack(add func(s *aggState, v value.Value)) {
	list := s.packed
	if !list.IsDefined() {
		return
	}
	s.packed, s.size = value.Value{}, 0
	for it := list.Iter(); it.Next(); {
		add(s, it.Value())
	}
}

// stored takes bytes apart; bad is set when they end early.
type stored struct {
	b   []byte
	bad bool
}

func (r *stored) fail() { r.bad, r.b = true, nil }

func (r *stored) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *stored) uint64() uint64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	n := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return n
}

func (r *stored) uvarint() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *stored) varint() int64 {
	n, k := binary.Varint(r.b)
	if k <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *stored) value() value.Value {
	v, rest, ok := value.ReadTyped(r.b)
	if !ok {
		r.fail()
		return value.Value{}
	}
	r.b = rest
	return v
}

// values reads n values, of which each has a byte at least.
func (r *stored) values(n uint64) []value.Value {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	vs := make([]value.Value, n)
	for i := range vs {
		vs[i] = r.value()
	}
	return vs
}
