// Package kv is the storage interface: ordered keys and values of bytes. Everything above it sees only these types. The
// engines are memkv, pebblekv and tikvkv; all of them pass the suite of kvtest.
//
// Rules that every engine and every caller keeps:
//
//  1. Keys sort by bytes.Compare. No engine has its own order.
//  2. Values are never empty: TiKV refuses empty values.
//  3. Every scan has both bounds.
//  4. A Write is atomic: all of its operations, or none.
//  5. Write returns when the batch is visible to new snapshots; Commit.Wait returns when it is durable. Durability is
//     in commit order: when Wait of one Commit has returned, every Commit made before it is durable too.
//  6. Only the errors of this package come out of an engine (see Err*).
//  7. A read ends with the ctx that it was made for: Engine.Get with its own, the reads of a Snapshot and of its
//     iterators with the ctx of the Snapshot. So a Snapshot belongs to one request, or to one step of background work,
//     which passes the ctx of its group. A transaction of several requests reads for each with its own ctx (With). An
//     engine whose reads don't wait need not check the ctx. An engine that cancels a read returns ErrUnavailable, which
//     wraps the error of the ctx.
//  8. Any read may fail with ErrUnavailable, and Snapshot too. Callers use no part of a failed read.
//
// The ctx is given once for a Snapshot and not with each read, because all reads of one snapshot belong together. A
// page of rows would pass the same ctx thousands of times.
//
// There are no snapshots of a chosen version and no watermark: the core assigns LSNs itself.
package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// The closed set of errors that an engine returns. Test with errors.Is.
var (
	ErrNotFound       = errors.New("kv: not found")           // Get of an absent key
	ErrConflict       = errors.New("kv: precondition failed") // see *PreconditionError for the index
	ErrTooLarge       = errors.New("kv: key, value or batch above the engine's limit")
	ErrSnapshotTooOld = errors.New("kv: snapshot too old") // take a new one and go on by key
	ErrUnavailable    = errors.New("kv: unavailable")      // definitely not applied
	ErrUnknownOutcome = errors.New("kv: unknown outcome")  // may or may not be applied: re-read before answering
	ErrClosed         = errors.New("kv: closed")
	ErrCorruption     = errors.New("kv: corruption")
	ErrContract       = errors.New("kv: caller broke the contract") // a bug in Orrery
	// definitely not applied; batches that free space may go on
	ErrFull = errors.New("kv: no room for new data")
)

// PreconditionError is ErrConflict with the index of the precondition that did not hold.
type PreconditionError struct{ Index int }

// Error implements error.
func (e *PreconditionError) Error() string { return ErrConflict.Error() }

// Is makes errors.Is(err, ErrConflict) true.
func (e *PreconditionError) Is(target error) bool { return target == ErrConflict }

// Limits of an engine, in bytes. Callers ask the engine for them.
//
// They are above the largest item, so callers split nothing. An engine whose store takes less at a time splits values
// itself.
type Limits struct {
	Key   int // longest key
	Value int // longest value; a longer one is refused with ErrTooLarge
	Batch int // all keys and values of one Write
}

// CheckBatch returns ErrTooLarge when the batch is above the limits, and ErrContract for an empty key or value. Engines
// call it first in Write.
func (l Limits) CheckBatch(b *Batch) error {
	if len(b.buf) > l.Batch {
		return fmt.Errorf("%w: batch of %d bytes, limit %d", ErrTooLarge, len(b.buf), l.Batch)
	}
	for i := range b.ends {
		s := &b.ends[i]
		if n := s.val - s.key; n == 0 || n > l.Key {
			return badLength("key", n, l.Key)
		}
		if s.end < 0 {
			continue
		}
		if n := s.end - s.val; n == 0 || n > l.Value {
			return badLength("value", n, l.Value)
		}
	}
	return nil
}

func badLength(what string, n, limit int) error {
	if n == 0 {
		return fmt.Errorf("%w: empty %s", ErrContract, what)
	}
	return fmt.Errorf("%w: %s of %d bytes, limit %d", ErrTooLarge, what, n, limit)
}

// Engine is an ordered key-value store. Safe for concurrent use.
type Engine interface {
	// Snapshot returns a consistent view of everything visible now. All of its reads end with ctx (rule 7). Close it
	// soon: the engine can't free old data while it is open.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Get appends the current value of a key to dst. It returns dst and ErrNotFound when the key is absent, and dst
	// with any other error. The result belongs to the caller.
	Get(ctx context.Context, dst, key []byte) ([]byte, error)
	// Remote reports whether reads go over a network. Then reading many keys at once costs about as much as reading
	// one, and readers should read ahead.
	Remote() bool
	// Shared reports whether other processes may write to the store. Then a commit is visible only once it is durable,
	// and a caller that keeps anything of the store in memory must expect that it is old.
	Shared() bool
	// Write checks the preconditions and applies the batch, both in one atomic step. The caller may Reset the batch and
	// use it again when Write has returned and its Commit's Wait has returned. On error nothing is applied, except with
	// ErrUnknownOutcome.
	Write(ctx context.Context, b *Batch, pre []Precondition) (Commit, error)
	// DropRange removes [lo, hi) outside of any transaction. It is idempotent. The caller guarantees that the range is
	// never used again.
	DropRange(ctx context.Context, lo, hi []byte) error
	// Size estimates the bytes stored in [lo, hi). The estimate may be minutes old.
	Size(lo, hi []byte) (uint64, error)
	// SplitPoints returns keys that divide [lo, hi) into parts of about target bytes. It may return none.
	SplitPoints(lo, hi []byte, target uint64) ([][]byte, error)
	// Checkpoint writes a consistent copy of the store to dir, which must not exist.
	Checkpoint(ctx context.Context, dir string) error
	// Limits returns what the engine accepts.
	Limits() Limits
	// Close releases the store. Everything that Wait has acknowledged is kept. Close snapshots and iterators first.
	// Calls after Close fail with ErrClosed.
	Close() error
}

// Commit is a batch that is visible and on its way to being durable.
type Commit interface {
	// Wait returns when the batch is durable. It may be called by several goroutines and more than once.
	Wait() error
}

// Snapshot is a consistent view. Safe for concurrent use; its iterators are not.
type Snapshot interface {
	// Get appends the value of a key to dst. It returns dst and ErrNotFound when the key is absent, and dst with any
	// other error. The result belongs to the caller.
	Get(dst, key []byte) ([]byte, error)
	// GetMany reads keys into v, in one round trip if the engine is behind a network. The keys may be in any order, and
	// may repeat. An absent key is no error: see Values.At. After an error v is empty.
	GetMany(v *Values, keys [][]byte) error
	// Has reports whether key is present. For an absent key it costs a filter look-up. Use it for checks of existence
	// and uniqueness.
	Has(key []byte) (bool, error)
	// Iter returns an iterator over [lo, hi), positioned before the first key. Both bounds are required; lo >= hi is an
	// empty range. The caller may reuse the bounds after Iter returns.
	Iter(lo, hi []byte) (Iterator, error)
	Close() error
}

// Lasting is a Snapshot whose reads end with a ctx, and that several requests can read.
type Lasting interface {
	Snapshot
	// With returns the same snapshot with another ctx, with which its reads end. Closing it closes both.
	With(ctx context.Context) Snapshot
}

// With returns s as a snapshot whose reads end with ctx. On an engine whose reads don't wait it is s.
func With(ctx context.Context, s Snapshot) Snapshot {
	if l, ok := s.(Lasting); ok {
		return l.With(ctx)
	}
	return s
}

// Health is the health of an engine.
type Health struct {
	State  State
	Reason string // a sentence for the operator; "" when all is well
}

// State is how much an engine can do now. A greater value is worse.
type State uint8

// The states of an engine.
const (
	Well     State = iota
	Damaged        // some stored bytes can't be read; everything else works
	Full           // new data is refused with ErrFull
	ReadOnly       // all writes are refused
	Stalled        // the disk doesn't answer: writes are refused with ErrUnavailable
)

// Monitored is an Engine that reports its health.
type Monitored interface {
	// Health returns the worst current problem. It is fast and never blocks.
	Health() Health
}

// Iterator walks keys in order within its bounds. Not safe for concurrent use.
//
// Key and Value are valid until the next positioning call; callers must not modify them.
type Iterator interface {
	// First, Last, SeekGE (first key >= key), SeekLT (last key < key), Next and Prev position the iterator and report
	// whether it is on a key. Before any positioning Next acts as First, and Prev as Last. After the end Prev returns
	// to the last key. Before the beginning Next returns to the first key.
	First() bool
	Last() bool
	SeekGE(key []byte) bool
	SeekLT(key []byte) bool
	Next() bool
	Prev() bool
	Key() []byte
	Value() []byte
	// Reset gives the iterator new bounds and positions it before the first key. It costs less than a new iterator. The
	// caller may reuse the bounds after Reset returns.
	Reset(lo, hi []byte)
	// Ahead is the number of keys that the reader will probably take, from the next positioning on, in either
	// direction; 0 = unknown. It is a hint: an engine over a network uses it to choose how many keys it reads at a
	// time. The hint doesn't change the keys.
	Ahead(n int)
	Err() error
	Close() error
}

// Precondition is a condition on one key. Write checks it in the same atomic step as it applies the batch.
type Precondition struct {
	Key    []byte
	Expect Expect
	Value  []byte // with Equal
}

// Expect is the state of its key that a Precondition requires.
type Expect uint8

// The kinds of precondition.
const (
	Absent  Expect = iota // the key doesn't exist
	Present               // the key exists, with any value
	Equal                 // the key exists with exactly Value
)

// Holds reports whether the key's current value satisfies p. present says whether the key exists. Engines use it.
func (p *Precondition) Holds(value []byte, present bool) bool {
	switch p.Expect {
	case Absent:
		return !present
	case Present:
		return present
	case Equal:
		return present && bytes.Equal(value, p.Value)
	}
	return false
}

// Op is one operation of a Batch.
type Op struct {
	Key    []byte
	Value  []byte // nil with Delete
	Delete bool
	Open   bool // of PutOpen
}

// Batch collects the operations of one Write. A later operation on a key replaces an earlier one. Keys and values are
// copied, so the arguments may be reused after a call returns. The zero value is an empty batch. Not safe for
// concurrent use.
type Batch struct {
	buf  []byte
	ends []span

	// Frees says that the batch removes more than it adds, as a delete does. An engine that refuses new data with
	// ErrFull still accepts it while there is any space. Reset sets it to false.
	Frees bool

	// Background says that no request waits for the batch. While an engine is behind its writers, it lets other batches
	// go before it. Reset sets it to false.
	Background bool

	// Followed says that the caller expects to write to some of the keys again at once: see Follower. Reset sets it to
	// false.
	Followed bool
}

// span is one operation: buf[key:val] is the key, buf[val:end] the value. For a delete end is < 0.
type span struct {
	key, val, end int
	open          bool
}

// Put stores value under key. Value must not be empty.
func (b *Batch) Put(key, value []byte) { b.put(key, value, false) }

// PutOpen is Put of a value whose first bytes Prepared.Patch may still change. It must be the only operation of the
// batch on key.
func (b *Batch) PutOpen(key, value []byte) { b.put(key, value, true) }

//go:noinline // called from many places, see decision 41
func (b *Batch) put(key, value []byte, open bool) {
	k := len(b.buf)
	b.buf = append(b.buf, key...)
	v := len(b.buf)
	b.buf = append(b.buf, value...)
	b.ends = append(b.ends, span{k, v, len(b.buf), open})
}

// Delete removes key; an absent key is no error.
//
//go:noinline // called from many places, see decision 41
func (b *Batch) Delete(key []byte) {
	k := len(b.buf)
	b.buf = append(b.buf, key...)
	b.ends = append(b.ends, span{key: k, val: len(b.buf), end: -1})
}

// Len returns the number of operations.
func (b *Batch) Len() int { return len(b.ends) }

// Size returns the bytes of all keys and values.
func (b *Batch) Size() int { return len(b.buf) }

// Op returns the i-th operation; its slices point into the batch.
func (b *Batch) Op(i int) Op {
	s := b.ends[i]
	if s.end < 0 {
		return Op{Key: b.buf[s.key:s.val:s.val], Delete: true}
	}
	return Op{Key: b.buf[s.key:s.val:s.val], Value: b.buf[s.val:s.end:s.end], Open: s.open}
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { *b = Batch{buf: b.buf[:0], ends: b.ends[:0]} }
