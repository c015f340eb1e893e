package pebblekv

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
)

// tablePart is a readable part of a table: keys from lo on and before hi; nil: no bound. first is its first key.
type tablePart struct {
	bounds
	name  string
	first []byte
}

// table finds the readable parts of a table: runs of blocks between those that can't be read.
func (s *Salvage) table(t liveTable) (err error) {
	end := t.hi
	if end != nil {
		end = append(bytes.Clone(end), 0)
	}
	defer func() {
		if r := recover(); r != nil {
			s.lose(t.name, fmt.Sprintf("the table can't be read: %v", r), t.lo, end)
		}
	}()
	r, err := openTable(s.ctx, s.fs, s.fs.PathJoin(s.dir, t.name))
	if err != nil {
		s.lose(t.name, fmt.Sprintf("the table can't be opened: %v", err), t.lo, end)
		return s.ctx.Err()
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := s.deletedRanges(r); err != nil {
		s.lose(t.name, fmt.Sprintf("its deleted ranges can't be read: %v", err), nil, nil)
	}
	l, err := r.Layout()
	if err != nil || !l.Format.BlockColumnar() { // read on until it fails
		s.part(t.name, r, bounds{})
		if err != nil {
			s.lose(t.name, fmt.Sprintf("the index of the table can't be read: %v", err), t.lo, end)
		}
		return s.ctx.Err()
	}
	for _, lim := range s.readable(t, r, l) {
		s.part(t.name, r, lim)
	}
	return s.ctx.Err()
}

// bounds are those of a run of readable blocks: keys from lo on and before hi; nil: no bound.
type bounds struct{ lo, hi []byte }

// readable reads all data blocks of a table. It returns the runs between the unreadable blocks, and reports those as
// lost.
func (s *Salvage) readable(t liveTable, r *sstable.Reader, l *sstable.Layout) (out []bounds) {
	var lo []byte // lower bound of the current run
	before := t.lo
	whole, good := true, 0
	n := 0
	for _, h := range l.Index {
		_ = tableBlock{sstable.NamedBlockHandle{Handle: h}}.read(s.ctx, r, func(data []byte) {
			var it colblk.IndexIter
			if err := it.Init(pebble.DefaultComparer, data, sstable.NoTransforms); err != nil {
				return
			}
			for ok := it.First(); ok && n < len(l.Data); ok = it.Next() {
				after := append(bytes.Clone(it.Separator()), 0) // greater than every key of the block
				err := tableBlock{sstable.NamedBlockHandle{Handle: l.Data[n].Handle}}.read(s.ctx, r, nil)
				n++
				if err == nil {
					good++
				} else {
					if good > 0 {
						out = append(out, bounds{lo, before})
					}
					s.lose(t.name, fmt.Sprintf("a data block can't be read: %v", err), before, after)
					whole, good, lo = false, 0, after
				}
				before = after
			}
		})
	}
	if whole {
		return []bounds{{}}
	}
	if good > 0 {
		out = append(out, bounds{lo, nil})
	}
	return out
}

// deletedRanges reads the range deletions of a table.
func (s *Salvage) deletedRanges(r *sstable.Reader) error {
	it, err := r.NewRawRangeDelIter(s.ctx, sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return err
	}
	defer it.Close()
	sp, err := it.First()
	for ; err == nil && sp != nil; sp, err = it.Next() {
		for _, k := range sp.Keys {
			s.drops = append(s.drops, span{bytes.Clone(sp.Start), bytes.Clone(sp.End), uint64(k.SeqNum())})
		}
	}
	return err
}

// part adds a part of a table, unless it has no keys.
func (s *Salvage) part(name string, r *sstable.Reader, b bounds) {
	p := tablePart{bounds: b, name: name}
	u := s.iterate(p, r)
	if u == nil {
		return
	}
	if u.move(b.lo, true) {
		p.first = bytes.Clone(u.cur.key)
		s.parts = append(s.parts, p)
	}
	_ = u.it.Close()
}

// iterate returns an iterator over a part of a table; nil: it can't be read.
func (s *Salvage) iterate(p tablePart, r *sstable.Reader) *run {
	it, err := r.NewIter(sstable.NoTransforms, p.lo, p.hi, sstable.TableBlobContext{})
	if err != nil {
		s.lose(p.name, fmt.Sprintf("the table can't be read: %v", err), p.lo, p.hi)
		return nil
	}
	return &run{s: s, name: p.name, it: it, r: r}
}

// run is an open part of a table. It is a source.
type run struct {
	s    *Salvage
	name string
	r    *sstable.Reader
	it   sstable.Iterator
	cur  version
}

// run opens a part of a table at its first key; nil: it can't be read any more.
func (s *Salvage) run(p tablePart) source {
	r, err := openTable(s.ctx, s.fs, s.fs.PathJoin(s.dir, p.name))
	if err != nil {
		s.lose(p.name, fmt.Sprintf("the table can't be opened: %v", err), p.first, p.hi)
		return nil
	}
	u := s.iterate(p, r)
	if u != nil && u.move(p.first, true) {
		return u
	}
	if u != nil {
		_ = u.it.Close()
	}
	_ = r.Close()
	return nil
}

// Close implements io.Closer. Unreadable parts have been reported.
func (u *run) Close() error {
	_ = u.it.Close()
	return u.r.Close()
}

func (u *run) at() *version { return &u.cur }

func (u *run) next() bool { return u.move(nil, false) }

// none returns the zero value of f's result type. That type is internal to Pebble, so it can't be named here.
func none[T any](func() T) (zero T) { return zero }

// move makes the next key of the table the present version. With begin it seeks the first key from lo on.
func (u *run) move(lo []byte, begin bool) bool {
	//lint:ignore SA4006 its type has no name here
	kv := none(u.it.Next)
	if begin {
		kv = u.it.SeekGE(lo, 0)
	} else {
		kv = u.it.Next()
	}
	if kv == nil {
		if err := u.it.Error(); err != nil {
			u.s.lose(u.name, fmt.Sprintf("the part after a key can't be read: %v", err), bytes.Clone(u.cur.key), nil)
		}
		return false
	}
	u.cur.key = append(u.cur.key[:0], kv.K.UserKey...)
	u.cur.seq = uint64(kv.SeqNum())
	switch kv.Kind() {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
		u.cur.deleted = false
		val, _, err := kv.Value(nil)
		if err != nil {
			u.s.lose(u.name, fmt.Sprintf("a value can't be read: %v", err), bytes.Clone(u.cur.key),
				append(bytes.Clone(u.cur.key), 0))
			u.cur.deleted = true
		}
		u.cur.val = append(u.cur.val[:0], val...)
	default:
		u.cur.deleted = true
	}
	return true
}
