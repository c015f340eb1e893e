package tikvkv

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"github.com/orrerydb/orrery/core/kv"
)

const (
	firstScan = 16      // keys of an iterator's first batch, if the reader gave no hint
	maxScan   = 512     // keys of any batch
	scanBytes = 4 << 20 // bytes of a batch, by the average of the batch before
)

// iterator walks batches of keys. Invariants:
//
//  1. rows are all keys in [from, to), in ascending order, whatever the direction in which they were read.
//  2. If at is onKey, the position is rows[i].
//
// Example: First reads 16 keys. Next takes them one by one, then reads the 32 after them. A SeekGE or a Prev within the
// batch reads nothing.
type iterator struct {
	s        *snapshot
	lo, hi   []byte
	ahead    int
	batch    int // keys of the next batch
	rows     []row
	from, to []byte
	i        int
	at       position
	err      error
}

// row is one key and its stored value.
type row struct{ key, stored, val []byte }

type position uint8

const (
	fresh  position = iota // before any positioning
	onKey                  // on rows[i]
	before                 // moved before the first key
	after                  // moved past the last key
	shut                   // closed
)

// Iter implements kv.Snapshot.
func (s *snapshot) Iter(lo, hi []byte) (kv.Iterator, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	it := &iterator{s: s}
	it.Reset(lo, hi)
	return it, it.err
}

// Reset implements kv.Iterator.
func (it *iterator) Reset(lo, hi []byte) {
	if it.at == shut {
		return
	}
	it.lo, it.hi = append(it.lo[:0], lo...), append(it.hi[:0], hi...)
	it.at, it.rows, it.from, it.to, it.err = fresh, nil, nil, nil, nil
	if len(lo) == 0 || len(hi) == 0 {
		it.err = fmt.Errorf("%w: an iterator needs both bounds", kv.ErrContract)
	}
}

// Ahead implements kv.Iterator.
func (it *iterator) Ahead(n int) { it.ahead = n }

// First implements kv.Iterator.
func (it *iterator) First() bool { return it.SeekGE(it.lo) }

// Last implements kv.Iterator.
func (it *iterator) Last() bool { return it.SeekLT(it.hi) }

// SeekGE implements kv.Iterator.
func (it *iterator) SeekGE(key []byte) bool {
	if it.at == shut || it.err != nil {
		return false
	}
	if bytes.Compare(key, it.lo) < 0 {
		key = it.lo
	}
	it.batch = it.first()
	return it.forward(key)
}

// SeekLT implements kv.Iterator.
func (it *iterator) SeekLT(key []byte) bool {
	if it.at == shut || it.err != nil {
		return false
	}
	if bytes.Compare(key, it.hi) > 0 {
		key = it.hi
	}
	it.batch = it.first()
	return it.back(key)
}

// Next implements kv.Iterator.
func (it *iterator) Next() bool {
	switch {
	case it.err != nil:
		return false
	case it.at == onKey && it.i+1 < len(it.rows):
		return it.stand(it.i + 1)
	case it.at == onKey:
		return it.forward(it.to)
	case it.at == fresh, it.at == before:
		return it.First()
	}
	return false
}

// Prev implements kv.Iterator.
func (it *iterator) Prev() bool {
	switch {
	case it.err != nil:
		return false
	case it.at == onKey && it.i > 0:
		return it.stand(it.i - 1)
	case it.at == onKey:
		return it.back(it.from)
	case it.at == fresh, it.at == after:
		return it.Last()
	}
	return false
}

// first is the size of the first batch after a seek.
func (it *iterator) first() int {
	if it.ahead > 0 {
		return min(it.ahead, maxScan)
	}
	return firstScan
}

// forward moves to the first key >= key, which is within the bounds or at their end.
func (it *iterator) forward(key []byte) bool {
	if bytes.Compare(key, it.hi) >= 0 {
		return it.off(after)
	}
	if it.covers(key) {
		i := sort.Search(len(it.rows), func(i int) bool { return bytes.Compare(it.rows[i].key, key) >= 0 })
		if i < len(it.rows) {
			return it.stand(i)
		}
		return it.forward(it.to)
	}
	if !it.fetch(key, it.hi, false) {
		return false
	}
	if len(it.rows) == 0 {
		return it.off(after)
	}
	return it.stand(0)
}

// back moves to the last key < key, which is within the bounds or at their end.
func (it *iterator) back(key []byte) bool {
	if bytes.Compare(key, it.lo) <= 0 {
		return it.off(before)
	}
	if it.rows != nil && bytes.Compare(it.from, key) < 0 && bytes.Compare(key, it.to) <= 0 {
		i := sort.Search(len(it.rows), func(i int) bool { return bytes.Compare(it.rows[i].key, key) >= 0 })
		if i > 0 {
			return it.stand(i - 1)
		}
		return it.back(it.from)
	}
	if !it.fetch(it.lo, key, true) {
		return false
	}
	if len(it.rows) == 0 {
		return it.off(before)
	}
	return it.stand(len(it.rows) - 1)
}

func (it *iterator) covers(key []byte) bool {
	return it.rows != nil && bytes.Compare(it.from, key) <= 0 && bytes.Compare(key, it.to) < 0
}

// fetch reads the next batch: the first keys of [lo, hi), or the last.
func (it *iterator) fetch(lo, hi []byte, reverse bool) bool {
	it.rows = nil
	if it.err = it.s.open(); it.err != nil {
		return it.off(fresh)
	}
	l := &it.s.e.layout
	pairs, end, err := it.s.e.scan(it.s.ctx, it.s.ts, l.data(lo), l.data(hi), it.batch, reverse, false)
	if it.err = err; err != nil {
		return it.off(fresh)
	}
	if reverse {
		slices.Reverse(pairs)
	}
	it.from, it.to = bytes.Clone(lo), bytes.Clone(hi)
	it.rows = make([]row, len(pairs))
	size := 0
	for i, p := range pairs {
		it.rows[i] = row{key: l.key(p.key), stored: p.val}
		size += len(p.key) + len(p.val)
	}
	if !end && reverse {
		it.from = it.rows[0].key
	} else if !end {
		it.to = append(bytes.Clone(it.rows[len(it.rows)-1].key), 0) // the least key above
	}
	it.batch = min(2*it.batch, maxScan)
	if size > 0 {
		it.batch = max(min(it.batch, scanBytes*len(pairs)/size), 1)
	}
	return true
}

// stand moves to rows[i], and reads its value if that is a large one.
func (it *iterator) stand(i int) bool {
	r := &it.rows[i]
	if r.val == nil {
		if r.val, _, it.err = decode(r.stored); it.err == nil && r.val == nil {
			r.val, it.err = it.s.value(nil, r.key, r.stored)
		}
		if it.err != nil {
			return it.off(fresh)
		}
	}
	it.i, it.at = i, onKey
	return true
}

func (it *iterator) off(at position) bool {
	it.at = at
	return false
}

// Key implements kv.Iterator.
func (it *iterator) Key() []byte {
	if it.at != onKey {
		return nil
	}
	return it.rows[it.i].key
}

// Value implements kv.Iterator.
func (it *iterator) Value() []byte {
	if it.at != onKey {
		return nil
	}
	return it.rows[it.i].val
}

// Err implements kv.Iterator.
func (it *iterator) Err() error { return it.err }

// Close implements kv.Iterator.
func (it *iterator) Close() error {
	if it.at == shut {
		return kv.ErrClosed
	}
	it.at, it.rows = shut, nil
	return nil
}
