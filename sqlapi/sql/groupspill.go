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

// Groups that don't fit into memory are written to temporary files with the states of their aggregates (spill.Groups).
// This file tells how a group is written, read and merged.

// keyedGroups returns how the groups of a query are written.
func (cq *cquery) keyedGroups() *spill.Keyed[group] {
	return &spill.Keyed[group]{Compare: compareGroups, Append: appendGroup, Decode: cq.readGroup, Merge: cq.joinGroups}
}

// compareGroups orders groups of equal hashes by their keys.
func compareGroups(a, b *group) int {
	for i := range a.keys {
		if c := compareKeys(a.keys[i], b.keys[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compareKeys is an order of values in which those that are the Same are equal, and no others.
func compareKeys(x, y value.Value) int {
	if funcs.Same(x, y) {
		return 0
	}
	if c := value.CompareCosmos(x, y); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(x.Kind(), y.Kind()), bytes.Compare(x.Bytes(), y.Bytes()))
}

// appendGroup appends the encoding of a group: keys, number of sort keys (uvarint), sort keys, states.
func appendGroup(dst []byte, g *group) []byte {
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
func (cq *cquery) readGroup(b []byte, g *group) error {
	r := funcs.Stored{B: b}
	g.keys = r.Values(uint64(len(cq.keys)))
	g.order = r.Values(r.Uvarint())
	g.aggs = make([]funcs.State, len(cq.group.aggs))
	for i := range g.aggs {
		g.aggs[i].Read(&r)
	}
	if r.Bad {
		return status.New(status.Corruption, "A group in a temporary file is damaged.")
	}
	return nil
}

// joinGroups adds to a group a the same group b of later rows.
func (cq *cquery) joinGroups(a, b *group) error {
	for i, spec := range cq.group.aggs {
		s := &a.aggs[i]
		if spec.fn.Join(s, &b.aggs[i]); s.Full() {
			return spec.fn.Overflow()
		}
	}
	return nil
}

// clone returns a deep copy of a group and its size in bytes.
func (g *group) clone() (group, int) {
	c := group{keys: cloneAll(g.keys), order: cloneAll(g.order), aggs: slices.Clone(g.aggs)}
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
