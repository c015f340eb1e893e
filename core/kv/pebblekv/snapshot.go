package pebblekv

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/orrerydb/orrery/core/kv"
)

// snapshot implements kv.Snapshot.
type snapshot struct {
	e      *Engine
	snap   *pebble.Snapshot
	from   uint64 // see work
	tick   uint64 // see values
	closed atomic.Bool
	gets   atomic.Int32
	// prober is one idle iterator for Has and Get. Who uses it swaps in nil, so concurrent callers make their own.
	prober atomic.Pointer[pebble.Iterator]
}

// Snapshot implements kv.Engine. Neither it nor its reads check the ctx, because they wait for nothing but the disk.
func (e *Engine) Snapshot(context.Context) (kv.Snapshot, error) {
	if !e.gate.enter() {
		return nil, kv.ErrClosed
	}
	return &snapshot{e: e, from: e.work.events.Load(), tick: e.values.snapshot(), snap: e.db.NewSnapshot()}, nil
}

func (s *snapshot) usable() bool { return !s.closed.Load() }

// getsByIterator is the number of the first Get of a snapshot that uses an iterator. Making the iterator costs as much
// as two Gets; a seek with it costs half of a Get.
const getsByIterator = 3

// Get implements kv.Snapshot.
func (s *snapshot) Get(dst, key []byte) ([]byte, error) {
	if !s.usable() {
		return dst, kv.ErrClosed
	}
	return s.e.values.get(dst, key, s.tick, s.stored)
}

// stored appends the value of a key in the store to dst.
func (s *snapshot) stored(dst, key []byte) ([]byte, error) {
	if s.gets.Add(1) >= getsByIterator {
		v, ok, err := s.seek(dst, key, true)
		if err == nil && !ok {
			err = kv.ErrNotFound
		}
		return v, err
	}
	return s.get(dst, key)
}

// get appends the value of a key in the store to dst, without an iterator.
func (s *snapshot) get(dst, key []byte) ([]byte, error) {
	v, closer, err := s.snap.Get(key)
	if err != nil {
		return dst, translate(err)
	}
	return appendValue(dst, v), translate(closer.Close())
}

// appendValue appends v to dst. If dst is nil the result has no spare capacity, because it may be kept.
func appendValue(dst, v []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, len(v))
	}
	return append(dst, v...)
}

// GetMany implements kv.Snapshot. It uses cached values, but caches none: many values that are read together are read
// once, and would displace those that are read again.
func (s *snapshot) GetMany(v *kv.Values, keys [][]byte) error {
	r := manyReader{s: s}
	err := v.Fill(keys, func(dst, key []byte) ([]byte, error) {
		if !s.usable() {
			return dst, kv.ErrClosed
		}
		return s.e.values.look(dst, key, s.tick, r.stored)
	})
	if cerr := s.giveBack(r.it); err == nil && cerr != nil {
		v.Reset()
		err = translate(cerr)
	}
	return err
}

// manyReader reads the store for one GetMany. It keeps its iterator from key to key: seeks to ascending keys go on in
// the table where the last one was.
type manyReader struct {
	s  *snapshot
	it *pebble.Iterator
}

// stored does what snapshot.stored does.
func (r *manyReader) stored(dst, key []byte) ([]byte, error) {
	if r.it == nil {
		if r.s.gets.Add(1) < getsByIterator {
			return r.s.get(dst, key)
		}
		var err error
		if r.it, err = r.s.borrow(nil); err != nil {
			return dst, translate(err)
		}
	}
	v, ok, err := found(r.it, dst, key, true)
	if err == nil && !ok {
		err = kv.ErrNotFound
	}
	return v, translate(err)
}

// Has implements kv.Snapshot.
func (s *snapshot) Has(key []byte) (bool, error) {
	if !s.usable() {
		return false, kv.ErrClosed
	}
	_, ok, err := s.seek(nil, key, false)
	return ok, err
}

// seek looks up key with the snapshot's prober. With wantValue it appends the value to dst.
func (s *snapshot) seek(dst, key []byte, wantValue bool) (v []byte, ok bool, err error) {
	options := &probeOptions
	if wantValue {
		// Get expects the key to exist: its callers have it from an index in the same snapshot
		options = nil
	}
	it, err := s.borrow(options)
	if err != nil {
		return dst, false, translate(err)
	}
	if v, ok, err = found(it, dst, key, wantValue); err != nil {
		_ = it.Close()
	} else {
		err = s.giveBack(it)
	}
	return v, ok, translate(err)
}

// borrow returns the snapshot's idle iterator, or a new one with these options. giveBack takes it back.
func (s *snapshot) borrow(o *pebble.IterOptions) (*pebble.Iterator, error) {
	if it := s.prober.Swap(nil); it != nil {
		return it, nil
	}
	return s.snap.NewIter(o)
}

// giveBack keeps an iterator for the next reader, or closes it if there is one already, or if it has failed. it may be
// nil.
func (s *snapshot) giveBack(it *pebble.Iterator) error {
	if it == nil || it.Error() == nil && s.prober.CompareAndSwap(nil, it) {
		return nil
	}
	if s.e.work.since(s.from) && s.e.gate.enter() {
		s.e.closing.add(used{e: s.e, it: it}) // the error was returned by the read
		return nil
	}
	return it.Close()
}

// found moves an iterator to a key and reports whether the key is present. With wantValue it appends the value to dst.
func found(it *pebble.Iterator, dst, key []byte, wantValue bool) (v []byte, ok bool, err error) {
	if ok, err = probe(it, key); !ok || err != nil || !wantValue {
		return dst, ok, err
	}
	stored, err := it.ValueAndErr()
	if err != nil {
		return dst, true, err
	}
	return appendValue(dst, stored), true, nil
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() error {
	if s.closed.Swap(true) {
		return kv.ErrClosed
	}
	last := used{e: s.e, it: s.prober.Swap(nil), snap: s.snap}
	if s.e.work.since(s.from) {
		s.e.closing.add(last)
		return nil
	}
	return last.close()
}

// Iter implements kv.Snapshot.
func (s *snapshot) Iter(lo, hi []byte) (kv.Iterator, error) {
	if !s.usable() {
		return nil, kv.ErrClosed
	}
	if len(lo) == 0 || len(hi) == 0 {
		return nil, errBounds
	}
	if !s.e.gate.enter() {
		return nil, kv.ErrClosed
	}
	if bytes.Compare(lo, hi) > 0 {
		hi = lo
	}
	it, err := s.snap.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		s.e.gate.leave()
		return nil, translate(err)
	}
	return &iterator{e: s.e, from: s.from, it: it}, nil
}

var errBounds = fmt.Errorf("%w: an iterator needs both bounds", kv.ErrContract)

// iterator implements kv.Iterator. at is its position. It gives the cases before any positioning and past an end the
// behaviour of the interface, independent of Pebble's.
type iterator struct {
	e    *Engine
	it   *pebble.Iterator
	from uint64 // see work; it is the snapshot's, so it may be earlier than the iterator
	at   position
	err  error
}

type position uint8

const (
	fresh  position = iota // before any positioning
	onKey                  // on a key
	before                 // moved before the first key
	after                  // moved past the last key
	shut                   // closed
)

func (i *iterator) move(ok bool, off position) bool {
	if ok {
		i.at = onKey
	} else {
		i.at = off
	}
	return ok
}

func (i *iterator) usable() bool { return i.at != shut && i.err == nil }

// First implements kv.Iterator.
func (i *iterator) First() bool { return i.usable() && i.move(i.it.First(), after) }

// Last implements kv.Iterator.
func (i *iterator) Last() bool { return i.usable() && i.move(i.it.Last(), before) }

// SeekGE implements kv.Iterator.
func (i *iterator) SeekGE(key []byte) bool { return i.usable() && i.move(i.it.SeekGE(key), after) }

// SeekLT implements kv.Iterator.
func (i *iterator) SeekLT(key []byte) bool { return i.usable() && i.move(i.it.SeekLT(key), before) }

// Next implements kv.Iterator.
func (i *iterator) Next() bool {
	switch i.at {
	case onKey:
		return i.move(i.it.Next(), after)
	case fresh, before:
		return i.First()
	}
	return false
}

// Prev implements kv.Iterator.
func (i *iterator) Prev() bool {
	switch i.at {
	case onKey:
		return i.move(i.it.Prev(), before)
	case fresh, after:
		return i.Last()
	}
	return false
}

// Key implements kv.Iterator.
func (i *iterator) Key() []byte {
	if i.at != onKey {
		return nil
	}
	return i.it.Key()
}

// Value implements kv.Iterator.
func (i *iterator) Value() []byte {
	if i.at != onKey {
		return nil
	}
	return i.it.Value()
}

// Reset implements kv.Iterator.
func (i *iterator) Reset(lo, hi []byte) {
	if i.at == shut {
		return
	}
	i.at = fresh
	if len(lo) == 0 || len(hi) == 0 {
		i.err = errBounds
		return
	}
	if bytes.Compare(lo, hi) > 0 {
		hi = lo
	}
	i.it.SetBounds(lo, hi)
}

// Ahead implements kv.Iterator. Pebble itself reads ahead when it detects a scan.
func (i *iterator) Ahead(int) {}

// Err implements kv.Iterator.
func (i *iterator) Err() error {
	if i.err != nil || i.at == shut {
		return i.err
	}
	return translate(i.it.Error())
}

// Close implements kv.Iterator.
func (i *iterator) Close() error {
	if i.at == shut {
		return kv.ErrClosed
	}
	i.err = i.Err()
	i.at = shut
	last := used{e: i.e, it: i.it}
	if i.e.work.since(i.from) {
		i.e.closing.add(last)
		return i.err
	}
	return last.close()
}
