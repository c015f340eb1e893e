package memkv

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/tidwall/btree"
)

// snapshot is a tree that is never changed.
type snapshot struct {
	tree   *tree
	closed atomic.Bool
}

func (s *snapshot) open() (*tree, error) {
	if s.closed.Load() {
		return nil, kv.ErrClosed
	}
	return s.tree, nil
}

// Get implements kv.Snapshot.
func (s *snapshot) Get(dst, key []byte) ([]byte, error) {
	t, err := s.open()
	if err != nil {
		return dst, err
	}
	return get(t, dst, key)
}

// GetMany implements kv.Snapshot.
func (s *snapshot) GetMany(v *kv.Values, keys [][]byte) error { return v.Fill(keys, s.Get) }

// Has implements kv.Snapshot.
func (s *snapshot) Has(key []byte) (bool, error) {
	t, err := s.open()
	if err != nil {
		return false, err
	}
	_, ok := t.Get(entry{key: key})
	return ok, nil
}

// Iter implements kv.Snapshot.
func (s *snapshot) Iter(lo, hi []byte) (kv.Iterator, error) {
	t, err := s.open()
	if err != nil {
		return nil, err
	}
	if len(lo) == 0 || len(hi) == 0 {
		return nil, fmt.Errorf("%w: an iterator needs both bounds", kv.ErrContract)
	}
	it := &iterator{it: t.Iter()}
	it.Reset(lo, hi)
	return it, nil
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() error {
	if s.closed.Swap(true) {
		return kv.ErrClosed
	}
	return nil
}

// iterator walks the entries within [lo, hi). at is its position.
type iterator struct {
	it     btree.IterG[entry]
	lo, hi []byte
	at     position
	cur    entry
	err    error
}

type position uint8

const (
	fresh  position = iota // before any positioning
	onKey                  // cur is the entry
	before                 // moved before the first entry
	after                  // moved past the last entry
	shut                   // closed
)

// Reset implements kv.Iterator.
func (i *iterator) Reset(lo, hi []byte) {
	if i.at == shut {
		return
	}
	i.lo, i.hi = append(i.lo[:0], lo...), append(i.hi[:0], hi...)
	i.at, i.cur = fresh, entry{}
	if len(lo) == 0 || len(hi) == 0 {
		i.err = fmt.Errorf("%w: an iterator needs both bounds", kv.ErrContract)
	}
}

// take accepts the tree iterator's position if it is inside the bounds. Otherwise the position becomes off.
func (i *iterator) take(ok bool, off position) bool {
	if ok {
		i.cur = i.it.Item()
		ok = bytes.Compare(i.cur.key, i.lo) >= 0 && bytes.Compare(i.cur.key, i.hi) < 0
	}
	if !ok {
		i.at, i.cur = off, entry{}
		return false
	}
	i.at = onKey
	return true
}

func (i *iterator) usable() bool { return i.at != shut && i.err == nil }

// First implements kv.Iterator.
func (i *iterator) First() bool { return i.SeekGE(i.lo) }

// Last implements kv.Iterator.
func (i *iterator) Last() bool { return i.SeekLT(i.hi) }

// SeekGE implements kv.Iterator.
func (i *iterator) SeekGE(key []byte) bool {
	if !i.usable() {
		return false
	}
	if bytes.Compare(key, i.lo) < 0 {
		key = i.lo
	}
	return i.take(i.it.Seek(entry{key: key}), after)
}

// SeekLT implements kv.Iterator.
func (i *iterator) SeekLT(key []byte) bool {
	if !i.usable() {
		return false
	}
	if bytes.Compare(key, i.hi) > 0 {
		key = i.hi
	}
	if i.it.Seek(entry{key: key}) {
		return i.take(i.it.Prev(), before)
	}
	return i.take(i.it.Last(), before)
}

// Next implements kv.Iterator.
func (i *iterator) Next() bool {
	switch i.at {
	case onKey:
		return i.take(i.it.Next(), after)
	case fresh, before:
		return i.First()
	}
	return false
}

// Prev implements kv.Iterator.
func (i *iterator) Prev() bool {
	switch i.at {
	case onKey:
		return i.take(i.it.Prev(), before)
	case fresh, after:
		return i.Last()
	}
	return false
}

// Key implements kv.Iterator.
func (i *iterator) Key() []byte { return i.cur.key }

// Value implements kv.Iterator.
func (i *iterator) Value() []byte { return i.cur.val }

// Ahead implements kv.Iterator. In memory there is nothing to read ahead.
func (i *iterator) Ahead(int) {}

// Err implements kv.Iterator.
func (i *iterator) Err() error { return i.err }

// Close implements kv.Iterator.
func (i *iterator) Close() error {
	if i.at == shut {
		return kv.ErrClosed
	}
	i.at, i.cur = shut, entry{}
	return nil
}
