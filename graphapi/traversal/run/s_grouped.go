package run

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// The groups of group() and groupCount() that don't fit into memory are written to temporary files as a run, in the
// order of their keys' bytes, and removed from memory. A later traverser of such a group begins it again. At the end
// the runs are merged: counts are added, lists joined in the order of their runs. The groups are then sorted a second
// time, by the place at which each was found first. So the result has the order that it has in memory.
//
// Example: groupCount() with memory for two groups, and the values b, a, b, c, a:
//
//	b, a, b   in memory: b (place 0, count 2), a (place 1, count 1)
//	c         too much: run 1 = a (1, 1), b (0, 2); in memory: c (2, 1)
//	a         in memory: c, and a (place 3, count 1)
//	end       run 2 = a (3, 1), c (2, 1)
//	merge     a (1, 2), b (0, 2), c (2, 1); by place: b 2, a 2, c 1

// groupStep is group() or groupCount() of the request's traversal. Of groups that were written, its result is a map
// only if a step needs one. If unfold() follows, it gives the entries one by one. If nothing follows, the client's map
// is read while it is sent.
type groupStep struct {
	base
	proto   *grouper
	unfolds bool // unfold() follows
	last    bool // it is the last step, and its result is sent to a client
	done    bool
	end     *trav // the last one of the input, while entries are given
	rest    *spill.Sorter[groupEntry]
}

// groupRow is a group in a file.
type groupRow struct {
	bytes string // of the key
	place int64
	key   any
	acc   groupAcc
}

// groupEntry is a finished group.
type groupEntry struct {
	place int64
	k, v  any
}

// mergeable is a reducer whose accumulations of two parts of its input can be joined.
type mergeable interface {
	reducer
	appendTo(c *carrier, dst []byte) []byte
	read(r *record)
	// merge adds the accumulation of the same kind over the input that follows.
	merge(b reducer) error
}

// canWrite reports whether the groups can be written to files.
func (g *grouper) canWrite(x *exec) bool {
	if g.fast == nil {
		return true
	}
	_, ok := g.fast().(mergeable)
	return ok
}

func (s *groupStep) next(x *exec) (*trav, error) {
	if s.rest != nil {
		return s.entry(x)
	}
	if s.done {
		return nil, nil
	}
	g := s.proto.fresh()
	last, err := readAll(x, s.prev, g)
	if err != nil {
		return nil, err
	}
	s.done = true
	if g.runs == nil {
		v, _, err := g.result(x)
		if err == nil {
			err = weigh(v)
		}
		if err != nil {
			return nil, err
		}
		return reduced(x, v, last), nil
	}
	rest, n, err := g.merged(x)
	switch {
	case err != nil:
		return nil, err
	case s.unfolds && !x.paths:
		s.rest, s.end = rest, last
		return s.entry(x)
	case s.last && x.lazy:
		return reduced(x, lazyMap(x, rest, n), last), nil
	}
	m := gvalue.NewMap(n)
	for {
		e, ok, err := rest.Next()
		if err != nil {
			return nil, x.cause(err)
		}
		if !ok {
			break
		}
		if err := x.mem.grow(1, entrySize+sizeOf(e.k)+sizeOf(e.v)); err != nil {
			return nil, err
		}
		m.Append(e.k, e.v)
	}
	if err := weigh(m); err != nil {
		return nil, err
	}
	return reduced(x, m, last), nil
}

// entry gives the next entry to unfold(), which passes it on.
func (s *groupStep) entry(x *exec) (*trav, error) {
	e, ok, err := s.rest.Next()
	if err != nil {
		return nil, x.cause(err)
	}
	if !ok {
		s.rest.Close()
		s.rest = nil
		return nil, nil
	}
	return reduced(x, &mapEntry{e.k, e.v}, s.end), nil
}

// lazyMap is a map of n entries, which are read when it is written.
func lazyMap(x *exec, rest *spill.Sorter[groupEntry], n int) *gvalue.LazyMap {
	return &gvalue.LazyMap{Len: n, Each: func(f func(e gvalue.Entry) error) error {
		for {
			e, ok, err := rest.Next()
			if err != nil {
				return x.cause(err)
			}
			if !ok {
				return nil
			}
			if err := x.tick(); err != nil {
				return err
			}
			if err := f(gvalue.Entry{Key: x.outward(e.k), Value: x.outward(e.v)}); err != nil {
				return err
			}
		}
	}}
}

func (s *groupStep) reset() {
	s.done, s.rest, s.end = false, nil, nil
}

func (s *groupStep) nextRound() { s.reset() }

// write writes the groups in memory to a run.
func (g *grouper) write() error {
	if len(g.keys) == 0 {
		return nil
	}
	x := g.mem.x
	if g.runs == nil {
		g.runs = spill.NewRuns(x.files.space, g.mem.acct, spill.Codec[*groupRow]{Append: g.appendRow, Decode: g.readRow,
			Compare: func(a, b *groupRow) int { return strings.Compare(a.bytes, b.bytes) }, Merge: g.mergeRows})
		g.mem.files = append(g.mem.files, g.runs)
	}
	type keyed struct {
		bytes string
		at    int
	}
	order := make([]keyed, 0, len(g.keys))
	for k, i := range g.index {
		order = append(order, keyed{k, i})
	}
	slices.SortFunc(order, func(a, b keyed) int { return strings.Compare(a.bytes, b.bytes) })
	row := &groupRow{}
	err := g.runs.Write(x.ctx, func(yield func(*groupRow) bool) {
		for _, o := range order {
			*row = groupRow{o.bytes, g.found + int64(o.at), g.keys[o.at], g.accs[o.at]}
			if !yield(row) {
				return
			}
		}
	})
	n := len(g.keys)
	g.found += int64(n)
	g.keys, g.accs, g.index = nil, nil, map[string]int{}
	if err != nil {
		return err
	}
	return g.mem.wrote(n, g.runs.Bytes())
}

// appendRow appends a group: its key's bytes, its place, its key, its accumulation.
func (g *grouper) appendRow(dst []byte, r *groupRow) []byte {
	c := g.mem.x.carrier()
	c.els = c.els[:0]
	dst = append(binary.AppendUvarint(dst, uint64(len(r.bytes))), r.bytes...)
	dst = c.appendValue(binary.AppendUvarint(dst, uint64(r.place)), r.key, false)
	switch {
	case g.count:
		return binary.AppendUvarint(dst, uint64(r.acc.n))
	case g.fast != nil:
		return r.acc.r.(mergeable).appendTo(c, dst)
	case g.fold:
		dst = binary.AppendUvarint(dst, uint64(len(r.acc.l)))
		for _, v := range r.acc.l {
			c.els = c.els[:0]
			dst = c.appendValue(dst, v, false)
		}
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.acc.ts)))
	for _, t := range r.acc.ts {
		dst = c.appendTrav(dst, t)
	}
	return dst
}

func (g *grouper) readRow(b []byte) (*groupRow, error) {
	c := g.mem.x.carrier()
	c.els = c.els[:0]
	r := record{c: c, b: b}
	row := &groupRow{bytes: r.text(), place: int64(r.uvarint())}
	row.key = r.value()
	switch {
	case g.count:
		row.acc.n = int64(r.uvarint())
	case g.fast != nil:
		m := g.fast().(mergeable)
		m.read(&r)
		row.acc.r = m
	case g.fold:
		n := r.count()
		row.acc.l = make([]any, 0, n)
		for range n {
			c.els = c.els[:0]
			row.acc.l = append(row.acc.l, r.value())
		}
	default:
		n := r.count()
		row.acc.ts = make([]*trav, 0, n)
		for range n {
			c.els = c.els[:0]
			row.acc.ts = append(row.acc.ts, r.trav())
		}
	}
	if r.bad || len(r.b) > 0 {
		return nil, damagedRecord()
	}
	return row, nil
}

// mergeRows joins two parts of a group. It fails if one group is larger than a request may hold.
func (g *grouper) mergeRows(a, b *groupRow) (*groupRow, error) {
	a.place = min(a.place, b.place)
	var err error
	switch {
	case g.count:
		a.acc.n, err = addCount(a.acc.n, b.acc.n)
	case g.fast != nil:
		err = a.acc.r.(mergeable).merge(b.acc.r)
	case g.fold:
		a.acc.l = append(a.acc.l, b.acc.l...)
		err = g.mem.x.room(sizeOfList(a.acc.l))
	default:
		a.acc.ts = append(a.acc.ts, b.acc.ts...)
		err = g.mem.x.room(int64(len(a.acc.ts)) * (travSize + elementSize))
	}
	return a, err
}

// merged returns the finished groups in the order in which they were found, and their number. They are in memory or in
// files.
func (g *grouper) merged(x *exec) (out *spill.Sorter[groupEntry], n int, err error) {
	if err := g.mem.flush(); err != nil {
		return nil, 0, err
	}
	rows, err := g.runs.Merge(x.ctx)
	if err != nil {
		return nil, 0, x.cause(err)
	}
	defer rows.Close()
	c := x.carrier()
	out = spill.NewSorter(x.ctx, x.files.space, g.mem.acct, spill.Codec[groupEntry]{
		Append: func(dst []byte, e groupEntry) []byte {
			c.els = c.els[:0]
			return c.appendValue(c.appendValue(binary.AppendUvarint(dst, uint64(e.place)), e.k, false), e.v, false)
		},
		Decode: func(b []byte) (e groupEntry, err error) {
			c.els = c.els[:0]
			r := record{c: c, b: b}
			e.place, e.k = int64(r.uvarint()), r.value()
			if e.v = r.value(); r.bad || len(r.b) > 0 {
				err = damagedRecord()
			}
			return e, err
		},
		Compare: func(a, b groupEntry) int { return cmp.Compare(a.place, b.place) },
	})
	g.mem.files = append(g.mem.files, out)
	for {
		row, ok, err := rows.Next()
		if err != nil {
			return nil, 0, x.cause(err)
		}
		if !ok {
			break
		}
		if err := x.tick(); err != nil {
			return nil, 0, err
		}
		v, has, err := g.valueOf(x, &row.acc)
		if err == nil {
			err = weigh(v)
		}
		if err != nil {
			return nil, 0, err
		}
		if has {
			if err := out.Add(groupEntry{row.place, row.key, v}, entrySize+int(sizeOf(row.key)+sizeOf(v))); err != nil {
				return nil, 0, x.cause(err)
			}
			n++
		}
	}
	rows.Close()
	g.runs.Close()
	if err := out.End(x.ctx); err != nil {
		return nil, 0, x.cause(err)
	}
	return out, n, c.err
}

func (r *countReducer) appendTo(_ *carrier, dst []byte) []byte {
	return binary.AppendUvarint(dst, uint64(r.n))
}

func (r *countReducer) read(rec *record) { r.n = int64(rec.uvarint()) }

func (r *countReducer) merge(b reducer) (err error) {
	r.n, err = addCount(r.n, b.(*countReducer).n)
	return err
}

func (r *aggReducer) appendTo(c *carrier, dst []byte) []byte {
	if !r.any {
		return append(dst, 0)
	}
	return c.appendValue(binary.AppendUvarint(append(dst, 1), uint64(r.n)), r.acc, false)
}

func (r *aggReducer) read(rec *record) {
	if r.any = rec.byte() == 1; r.any {
		r.n, r.acc = int64(rec.uvarint()), rec.value()
	}
}

func (r *aggReducer) merge(other reducer) (err error) {
	b := other.(*aggReducer)
	switch {
	case !b.any:
		return nil
	case !r.any:
		*r = *b
		return nil
	}
	if r.n, err = addCount(r.n, b.n); err != nil {
		return err
	}
	r.acc, err = combineAgg(r.op, r.acc, b.acc)
	return err
}
