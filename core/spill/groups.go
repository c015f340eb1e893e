package spill

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/orrerydb/orrery/core/budget"
)

// Group is one group: what a language keeps of it (its key and the states of its accumulators), the hash of its key,
// and its place in the order in which the groups were found.
type Group[S any] struct {
	Hash  uint64
	Place int64
	State S
	next  *Group[S] // with the same hash
}

// Next returns the next group in memory with the same hash, nil at the end.
func (g *Group[S]) Next() *Group[S] { return g.next }

// Keyed describes the groups of a language.
type Keyed[S any] struct {
	// Compare orders groups of equal hashes by their keys. It returns 0 for the same group.
	Compare func(a, b *S) int
	// Append appends the encoding of a group's key and states.
	Append func(dst []byte, s *S) []byte
	// Decode reads an encoding into s, which may point into b afterwards.
	Decode func(b []byte, s *S) error
	// Merge adds the same group b of later rows to a. b is valid until it returns.
	Merge func(a, b *S) error
}

// Groups finds groups by their keys. Groups that don't fit into memory are written to a temporary file as a run: sorted
// by the hashes of their keys. Then they are removed from memory. A later row of such a group creates the group again.
// At the end all runs are merged. The states of one group are merged in the order in which they were written. The
// merged group has the place of its first row. The user accounts for the memory of groups. Groups is not safe for
// concurrent use.
//
// Example: COUNT by key, with memory for two groups and the keys a, b, a, c, b:
//
//	rows a, b, a   in memory: a (place 0, count 2), b (place 1, count 1)
//	row  c         too much: run 1 = {a: 0, 2}, {b: 1, 1} in the order of hashes; in memory: c (place 2, count 1)
//	row  b         in memory: c, and b (place 3, count 1)
//	end            run 2 = {b: 3, 1}, {c: 2, 1}
//	merge          a (place 0, count 2), b (place 1, count 2), c (place 2, count 1), in the order of hashes
type Groups[S any] struct {
	s    *Space
	acct *budget.Account
	k    *Keyed[S]
	list []*Group[S] // those in memory, in the order in which they were found
	by   map[uint64]*Group[S]
	at   int64 // the place of the next group
	runs *Runs[*Group[S]]
}

// NewGroups returns an empty Groups. Without a Space Write must not be called. The memory of merge buffers is charged
// to acct, as that of Runs is.
func NewGroups[S any](s *Space, acct *budget.Account, k *Keyed[S]) *Groups[S] {
	return &Groups[S]{s: s, acct: acct, k: k}
}

// Find returns the first group in memory with a hash, nil if there is none. The others follow with Next.
func (g *Groups[S]) Find(hash uint64) *Group[S] { return g.by[hash] }

// Add creates a group. The caller has seen that there is none with its key.
func (g *Groups[S]) Add(hash uint64) *Group[S] {
	x := &Group[S]{Hash: hash, Place: g.at}
	if g.by == nil {
		g.by, g.list = map[uint64]*Group[S]{}, make([]*Group[S], 0, 4)
	}
	x.next = g.by[hash]
	g.by[hash] = x
	g.list = append(g.list, x)
	g.at++
	return x
}

// Found returns how many groups were found. A group counts again if it was found again after it was written.
func (g *Groups[S]) Found() int64 { return g.at }

// List returns the groups in memory, in the order in which they were found.
func (g *Groups[S]) List() []*Group[S] { return g.list }

// TakeList removes the groups in memory and returns them, in the order in which they were found.
func (g *Groups[S]) TakeList() []*Group[S] {
	list := g.list
	g.list, g.by = nil, nil
	return list
}

// Written reports whether groups were written to files.
func (g *Groups[S]) Written() bool { return g.runs != nil }

// fewGroups is the number of groups up to which Reset keeps the map: to clear a large one costs more than a new one.
const fewGroups = 64

// Reset removes all groups, which were never written. The next one gets place 0.
func (g *Groups[S]) Reset() {
	if len(g.list) > fewGroups {
		g.by, g.list = nil, nil
	}
	clear(g.by)
	clear(g.list)
	g.list, g.at = g.list[:0], 0
}

// Write writes the groups in memory to a new run and removes them from memory. The caller then returns their memory.
func (g *Groups[S]) Write(ctx context.Context) error {
	if len(g.list) == 0 {
		return nil
	}
	if g.runs == nil {
		c := g.k.Sorted(g.k.compare)
		c.Merge = g.k.merge
		g.runs = NewRuns(g.s, g.acct, c)
	}
	slices.SortFunc(g.list, g.k.compare)
	err := g.runs.Write(ctx, slices.Values(g.list))
	clear(g.list)
	clear(g.by)
	g.list = g.list[:0]
	return err
}

// Merge writes the groups in memory, and returns those of all runs in the order of hashes. Nothing may be added
// afterwards.
func (g *Groups[S]) Merge(ctx context.Context) (*Merged[*Group[S]], error) {
	if err := g.Write(ctx); err != nil {
		return nil, err
	}
	g.list, g.by = nil, nil
	return g.runs.Merge(ctx)
}

// Close removes the files.
func (g *Groups[S]) Close() {
	if g != nil {
		g.runs.Close()
		g.runs = nil
	}
}

// Sorted returns a codec for a sort of groups. The encoding of a group: hash (8 bytes), place (uvarint), key and
// states.
func (k *Keyed[S]) Sorted(compare func(a, b *Group[S]) int) Codec[*Group[S]] {
	return Codec[*Group[S]]{
		Append: func(dst []byte, g *Group[S]) []byte {
			dst = binary.BigEndian.AppendUint64(dst, g.Hash)
			return k.Append(binary.AppendUvarint(dst, uint64(g.Place)), &g.State)
		},
		Decode:  k.read,
		Compare: compare,
	}
}

func (k *Keyed[S]) read(b []byte) (*Group[S], error) {
	if len(b) < 9 {
		return nil, damaged("a group is too short")
	}
	place, n := binary.Uvarint(b[8:])
	if n <= 0 {
		return nil, damaged("a group has no place")
	}
	g := &Group[S]{Hash: binary.BigEndian.Uint64(b), Place: int64(place)}
	return g, k.Decode(b[8+n:], &g.State)
}

// compare orders groups by the hashes of their keys, then by the keys.
func (k *Keyed[S]) compare(a, b *Group[S]) int {
	if c := cmp.Compare(a.Hash, b.Hash); c != 0 {
		return c
	}
	return k.Compare(&a.State, &b.State)
}

func (k *Keyed[S]) merge(a, b *Group[S]) (*Group[S], error) {
	a.Place = min(a.Place, b.Place)
	return a, k.Merge(&a.State, &b.State)
}
