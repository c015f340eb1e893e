package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Checked wraps an engine for tests. It panics when the engine or its caller breaks the contract of this package: an
// error outside the closed set, keys out of order or bounds, empty values, exceeded limits, use after Close, a snapshot
// or iterator left open at Close. It also overwrites the bytes of Key and Value at the next positioning, so that a
// caller that kept them is found.
func Checked(e Engine) Engine { return &checked{Engine: e} }

// closedSet are the errors that may come out of an engine.
var closedSet = []error{ErrNotFound, ErrConflict, ErrTooLarge, ErrSnapshotTooOld, ErrUnavailable, ErrUnknownOutcome,
	ErrClosed, ErrCorruption, ErrContract, ErrFull}

func checkErr(op string, err error) error {
	if err == nil {
		return nil
	}
	for _, c := range closedSet {
		if errors.Is(err, c) {
			return err
		}
	}
	panic(fmt.Sprintf("kv contract: %s returned an error outside the closed set: %v", op, err))
}

func broken(format string, args ...any) { panic("kv contract: " + fmt.Sprintf(format, args...)) }

func checkRange(op string, lo, hi []byte) {
	if len(lo) == 0 || len(hi) == 0 {
		broken("%s without both bounds", op)
	}
}

type checked struct {
	Engine
	open atomic.Int64 // snapshots, iterators and prepared batches
}

func (c *checked) Snapshot(ctx context.Context) (Snapshot, error) {
	s, err := c.Engine.Snapshot(ctx)
	return c.checkSnapshot("Engine.Snapshot", s, err)
}

// Hold implements Holder.
func (c *checked) Hold(ctx context.Context, keys ...[]byte) (Snapshot, error) {
	if len(keys) == 0 || slices.ContainsFunc(keys, func(key []byte) bool { return len(key) == 0 }) {
		broken("Hold of an empty key")
	}
	s, err := Hold(ctx, c.Engine, keys...)
	return c.checkSnapshot("Hold", s, err)
}

func (c *checked) checkSnapshot(op string, s Snapshot, err error) (Snapshot, error) {
	if (s == nil) == (err == nil) {
		broken("%s returned %v and error %v", op, s, err)
	}
	if err != nil {
		return nil, checkErr(op, err)
	}
	c.open.Add(1)
	return &checkedSnapshot{c, s, new(snapshotUse)}, nil
}

func (c *checked) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	v, err := c.Engine.Get(ctx, dst, key)
	return checkGet("Engine.Get", dst, v, err)
}

// GetNewest implements NewestReader. On an engine that isn't one it reads in a snapshot.
func (c *checked) GetNewest(ctx context.Context, v *Values, keys [][]byte) error {
	for i := range v.mem {
		v.mem[i] = 0xcc
	}
	return checkMany("GetNewest", v, keys, GetNewest(ctx, c.Engine, v, keys))
}

// checkGet checks what a Get returned that appends to dst.
func checkGet(op string, dst, v []byte, err error) ([]byte, error) {
	switch {
	case !bytes.HasPrefix(v, dst):
		broken("%s lost what was there before", op)
	case err == nil && len(v) == len(dst):
		broken("%s returned an empty value", op)
	case err != nil && len(v) != len(dst):
		broken("%s returned a value and an error", op)
	}
	return v, checkErr(op, err)
}

func (c *checked) Write(ctx context.Context, b *Batch, pre []Precondition) (Commit, error) {
	c.checkBatch(b)
	checkPre(pre)
	w, err := c.Engine.Write(ctx, b, pre)
	return c.checkWrite(w, err, len(pre))
}

func (c *checked) checkBatch(b *Batch) {
	if errors.Is(c.Limits().CheckBatch(b), ErrContract) {
		broken("Write of an empty key or value")
	}
	times := map[string]int{}
	for i := range b.Len() {
		times[string(b.Op(i).Key)]++
	}
	for i := range b.Len() {
		if op := b.Op(i); op.Open && times[string(op.Key)] > 1 {
			broken("PutOpen of key %x, on which there is another operation", op.Key)
		}
	}
}

func checkPre(pre []Precondition) {
	for i := range pre {
		if len(pre[i].Key) == 0 || pre[i].Expect > Equal || (pre[i].Expect == Equal) != (len(pre[i].Value) > 0) {
			broken("precondition %d is malformed: %+v", i, pre[i])
		}
	}
}

func (c *checked) checkWrite(w Commit, err error, pre int) (Commit, error) {
	var pe *PreconditionError
	if errors.As(err, &pe) && (pe.Index < 0 || pe.Index >= pre) {
		broken("precondition index %d of %d", pe.Index, pre)
	}
	if (w == nil) == (err == nil) {
		broken("Write returned commit %v and error %v", w, err)
	}
	if f, ok := w.(Follower); ok {
		w = checkedFollower{f, c}
	}
	return w, checkErr("Write", err)
}

// checkedFollower counts the snapshot that it gives.
type checkedFollower struct {
	Follower
	c *checked
}

func (f checkedFollower) After(ctx context.Context) (Snapshot, time.Time) {
	s, at := f.Follower.After(ctx)
	if s == nil {
		return nil, at
	}
	f.c.open.Add(1)
	return &checkedSnapshot{f.c, s, new(snapshotUse)}, at
}

// Prepare implements Preparer.
func (c *checked) Prepare(b *Batch, room int) (Prepared, error) {
	c.checkBatch(b)
	p, err := Prepare(c.Engine, b, room)
	if (p == nil) == (err == nil) {
		broken("Prepare returned %v and error %v", p, err)
	}
	if err != nil {
		return nil, checkErr("Prepare", err)
	}
	c.open.Add(1)
	return &checkedPrepared{c: c, p: p, b: b, n: b.Len()}, nil
}

// checkedPrepared counts as open until it is written or discarded.
type checkedPrepared struct {
	c    *checked
	p    Prepared
	b    *Batch
	n    int // operations of b
	over bool
}

func (p *checkedPrepared) live(op string) {
	if p.over {
		broken("%s of a batch that was written or discarded", op)
	}
	if p.b.Len() != p.n {
		broken("a batch was changed after Prepare")
	}
}

func (p *checkedPrepared) Patch(i int, head []byte) {
	p.live("Patch")
	if op := p.b.Op(i); !op.Open || len(head) > len(op.Value) {
		broken("a patch of %d bytes on a value of %d, open %v", len(head), len(op.Value), op.Open)
	}
	p.p.Patch(i, head)
}

func (p *checkedPrepared) On(s Snapshot) {
	p.live("On")
	of := s.(*checkedSnapshot)
	of.live("On")
	p.p.On(of.s)
}

func (p *checkedPrepared) end(op string) {
	p.live(op)
	p.over = true
	p.c.open.Add(-1)
}

func (p *checkedPrepared) Write(ctx context.Context, late *Batch, pre []Precondition) (Commit, error) {
	p.end("Write")
	p.c.checkBatch(late)
	checkPre(pre)
	w, err := p.p.Write(ctx, late, pre)
	return p.c.checkWrite(w, err, len(pre))
}

func (p *checkedPrepared) Discard() {
	p.end("Discard")
	p.p.Discard()
}

func (c *checked) DropRange(ctx context.Context, lo, hi []byte) error {
	checkRange("DropRange", lo, hi)
	return checkErr("DropRange", c.Engine.DropRange(ctx, lo, hi))
}

func (c *checked) Size(lo, hi []byte) (uint64, error) {
	checkRange("Size", lo, hi)
	n, err := c.Engine.Size(lo, hi)
	return n, checkErr("Size", err)
}

func (c *checked) SplitPoints(lo, hi []byte, target uint64) ([][]byte, error) {
	checkRange("SplitPoints", lo, hi)
	cuts, err := c.Engine.SplitPoints(lo, hi, target)
	prev := lo
	for _, k := range cuts {
		if bytes.Compare(k, prev) <= 0 || bytes.Compare(k, hi) >= 0 {
			broken("split point %x is not in order inside (%x, %x)", k, prev, hi)
		}
		prev = k
	}
	return cuts, checkErr("SplitPoints", err)
}

func (c *checked) Checkpoint(ctx context.Context, dir string) error {
	return checkErr("Checkpoint", c.Engine.Checkpoint(ctx, dir))
}

func (c *checked) Close() error {
	if n := c.open.Load(); n != 0 {
		broken("Close with %d snapshots, iterators or prepared batches open", n)
	}
	return checkErr("Close", c.Engine.Close())
}

type checkedSnapshot struct {
	c *checked
	s Snapshot
	*snapshotUse
}

// snapshotUse is what a snapshot has in common with those that With makes of it.
type snapshotUse struct {
	closed atomic.Bool
	iters  atomic.Int64
}

// With implements Lasting.
func (s *checkedSnapshot) With(ctx context.Context) Snapshot {
	s.live("With")
	return &checkedSnapshot{s.c, With(ctx, s.s), s.snapshotUse}
}

func (s *checkedSnapshot) live(op string) {
	if s.closed.Load() {
		broken("%s on a closed snapshot", op)
	}
}

func (s *checkedSnapshot) Get(dst, key []byte) ([]byte, error) {
	s.live("Get")
	v, err := s.s.Get(dst, key)
	return checkGet("Snapshot.Get", dst, v, err)
}

// GetMany reads into its own memory. So a caller that keeps the values of an earlier call finds them overwritten.
func (s *checkedSnapshot) GetMany(v *Values, keys [][]byte) error {
	s.live("GetMany")
	for i := range v.mem {
		v.mem[i] = 0xcc
	}
	return checkMany("GetMany", v, keys, s.s.GetMany(v, keys))
}

// checkMany checks what a read of several keys returned.
func checkMany(op string, v *Values, keys [][]byte, err error) error {
	switch n := v.Len(); {
	case err != nil && n > 0:
		broken("%s returned values and an error", op)
	case err == nil && (n > len(keys) || n == 0 && len(keys) > 0):
		broken("%s read %d of %d keys", op, n, len(keys))
	case err == nil && n < len(keys) && (v.Most == 0 || v.Bytes() < v.Most):
		broken("%s read %d of %d keys and %d bytes, and may read %d", op, n, len(keys), v.Bytes(), v.Most)
	}
	return checkErr(op, err)
}

func (s *checkedSnapshot) Has(key []byte) (bool, error) {
	s.live("Has")
	ok, err := s.s.Has(key)
	return ok, checkErr("Has", err)
}

func (s *checkedSnapshot) Iter(lo, hi []byte) (Iterator, error) {
	s.live("Iter")
	checkRange("Iter", lo, hi)
	it, err := s.s.Iter(lo, hi)
	if err != nil {
		return nil, checkErr("Iter", err)
	}
	s.c.open.Add(1)
	s.iters.Add(1)
	return &checkedIterator{s: s, it: it, lo: bytes.Clone(lo), hi: bytes.Clone(hi)}, nil
}

func (s *checkedSnapshot) Close() error {
	if s.closed.Swap(true) {
		broken("snapshot closed twice")
	}
	if n := s.iters.Load(); n != 0 {
		broken("snapshot closed with %d iterators open", n)
	}
	s.c.open.Add(-1)
	return checkErr("Snapshot.Close", s.s.Close())
}

type checkedIterator struct {
	s        *checkedSnapshot
	it       Iterator
	lo, hi   []byte
	key, val []byte
	on       bool
	closed   bool
}

// moved checks the iterator's position and takes fresh copies of key and value. ge and lt, when not nil, are the bounds
// that the call guarantees for the key: ge <= key < lt.
func (i *checkedIterator) moved(ok bool, ge, lt []byte) bool {
	if i.closed {
		broken("iterator used after Close")
	}
	for _, b := range [][]byte{i.key, i.val} {
		for j := range b {
			b[j] = 0xcc
		}
	}
	i.key, i.val, i.on = nil, nil, ok
	if !ok {
		return false
	}
	i.key, i.val = bytes.Clone(i.it.Key()), bytes.Clone(i.it.Value())
	switch {
	case bytes.Compare(i.key, i.lo) < 0 || bytes.Compare(i.key, i.hi) >= 0:
		broken("key %x outside [%x, %x)", i.key, i.lo, i.hi)
	case ge != nil && bytes.Compare(i.key, ge) < 0, lt != nil && bytes.Compare(i.key, lt) >= 0:
		broken("key %x on the wrong side of %x%x", i.key, ge, lt)
	case len(i.val) == 0:
		broken("empty value at %x", i.key)
	}
	return true
}

func (i *checkedIterator) First() bool { return i.moved(i.it.First(), i.lo, nil) }
func (i *checkedIterator) Last() bool  { return i.moved(i.it.Last(), nil, i.hi) }
func (i *checkedIterator) SeekGE(key []byte) bool {
	return i.moved(i.it.SeekGE(key), key, nil)
}
func (i *checkedIterator) SeekLT(key []byte) bool {
	return i.moved(i.it.SeekLT(key), nil, key)
}

func (i *checkedIterator) Next() bool {
	var above []byte
	if i.on {
		above = append(bytes.Clone(i.key), 0) // the least key above
	}
	return i.moved(i.it.Next(), above, nil)
}

func (i *checkedIterator) Prev() bool {
	var below []byte
	if i.on {
		below = bytes.Clone(i.key)
	}
	return i.moved(i.it.Prev(), nil, below)
}

func (i *checkedIterator) Key() []byte {
	if !i.on {
		broken("Key of an iterator that stands on none")
	}
	return i.key
}

func (i *checkedIterator) Value() []byte {
	if !i.on {
		broken("Value of an iterator that stands on no key")
	}
	return i.val
}

func (i *checkedIterator) Reset(lo, hi []byte) {
	checkRange("Reset", lo, hi)
	i.moved(false, nil, nil)
	i.lo, i.hi = bytes.Clone(lo), bytes.Clone(hi)
	i.it.Reset(lo, hi)
}

func (i *checkedIterator) Ahead(n int) {
	if n < 0 {
		broken("Ahead of %d keys", n)
	}
	i.it.Ahead(n)
}

func (i *checkedIterator) Err() error { return checkErr("Iterator.Err", i.it.Err()) }

func (i *checkedIterator) Close() error {
	if i.closed {
		broken("iterator closed twice")
	}
	i.moved(false, nil, nil)
	i.closed = true
	i.s.iters.Add(-1)
	i.s.c.open.Add(-1)
	return checkErr("Iterator.Close", i.it.Close())
}
