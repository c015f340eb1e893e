// Package kv is the storage seam: ordered bytes, small and low. Everything above it sees only these types; engines live
// in memkv, pebblekv and, later, tikvkv, and all of them pass the suite of kvtest.
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
//     iterators with the one that the Snapshot was made with. So a Snapshot belongs to one request, or to one step of
//     background work, which passes the ctx of its group. An engine whose reads don't wait need not look at it. One
//     that gives a read up returns ErrUnavailable, which wraps the error of the ctx.
//  8. Any read may fail with ErrUnavailable, and Snapshot too. Nothing of a failed read is used.
//
// The ctx is given once for a Snapshot and not with each read, because all reads of one belong together: an iterator's
// Next has no place for it, and a page of rows would pass the same ctx thousands of times.
//
// There are no snapshots of a chosen version and no watermark: LSNs are the core's own.
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
	ErrContract       = errors.New("kv: caller broke the contract") // a fault of ours
	// definitely not applied; batches that free space may go on
	ErrFull = errors.New("kv: no room for new data")
)

// PreconditionError is ErrConflict with the index of the precondition that did not hold.
type PreconditionError struct{ Index int }

// Error implements error.
func (e *PreconditionError) Error() string { return ErrConflict.Error() }

// Is makes errors.Is(err, ErrConflict) true.
func (e *PreconditionError) Is(target error) bool { return target == ErrConflict }

// Limits of an engine, in bytes; callers ask and never guess them from a name.
//
// No engine splits values. An item above Value is to be stored in parts, under keys of its own kind, by the store:
// docs/formats.md says how. Both engines take larger values than the largest item, so nothing is split today.
type Limits struct {
	Key   int // longest key
	Value int // longest value; a longer one is refused with ErrTooLarge
	Batch int // all keys and values of one Write
}

// CheckBatch returns ErrTooLarge when the batch is above the limits and ErrContract for an empty key or value. Engines
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
	// soon: a long-lived one holds space back.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Get appends the value of a key at the present state to dst, as that of a Snapshot would. It returns dst and
	// ErrNotFound when the key is absent, and dst with any other error. What it returns is the caller's.
	Get(ctx context.Context, dst, key []byte) ([]byte, error)
	// Remote reports whether reads go over a network: then one read of many keys costs about as much as one of a
	// single key, and a reader does better to read ahead than to wait for each key.
	Remote() bool
	// Write checks the preconditions and applies the batch atomically with the check. The batch may be Reset and used
	// again once Write has returned and its Commit's Wait has returned. On error nothing is applied, except with
	// ErrUnknownOutcome.
	Write(ctx context.Context, b *Batch, pre []Precondition) (Commit, error)
	// DropRange removes [lo, hi) outside of any transaction. It is idempotent. The caller guarantees that the range is
	// never used again.
	DropRange(ctx context.Context, lo, hi []byte) error
	// Size estimates the bytes stored in [lo, hi); it may be minutes old.
	Size(lo, hi []byte) (uint64, error)
	// SplitPoints returns keys that cut [lo, hi) into parts of about target bytes; it may return none.
	SplitPoints(lo, hi []byte, target uint64) ([][]byte, error)
	// Checkpoint writes a consistent copy of the store to dir, which must not exist.
	Checkpoint(ctx context.Context, dir string) error
	// Limits returns what the engine accepts.
	Limits() Limits
	// Close releases the store; everything acknowledged by Wait is kept. Close snapshots and iterators first. What is
	// called afterwards fails with ErrClosed.
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
	// other error. What it returns is the caller's.
	Get(dst, key []byte) ([]byte, error)
	// GetMany reads keys into v, in one round trip where the engine is behind a network. The keys may come in any
	// order, and more than once. An absent key is no error: v tells it. After an error v holds nothing.
	GetMany(v *Values, keys [][]byte) error
	// Has reports whether key is present, at the cost of a filter look-up when it is absent (use it for existence and
	// uniqueness checks).
	Has(key []byte) (bool, error)
	// Iter returns an iterator over [lo, hi), both required (lo >= hi is an empty range), positioned before the first
	// key. The bounds may be reused by the caller after Iter returns.
	Iter(lo, hi []byte) (Iterator, error)
	Close() error
}

// Health is the health of an engine.
type Health struct {
	State  State
	Reason string // a sentence for the operator; "" when all is well
}

// State is how much an engine can do now. The worse is the greater.
type State uint8

// The states of an engine.
const (
	Well     State = iota
	Damaged        // some stored bytes can't be read; everything else goes on
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
	// whether it stands on a key. Next before any positioning acts as First, Prev as Last; an iterator that ran off one
	// end turns back with the opposite call.
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
	// Ahead says how many keys the reader will probably take, beginning with the next positioning, in either direction;
	// 0 = unknown. It is a hint: an engine over a network uses it to decide how many keys it reads at a time. The keys
	// are the same for any hint.
	Ahead(n int)
	Err() error
	Close() error
}

// Precondition is checked atomically with the Write that carries it.
type Precondition struct {
	Key    []byte
	Expect Expect
	Value  []byte // with Equal
}

// Expect says what a Precondition wants of its key.
type Expect uint8

// The kinds of precondition.
const (
	Absent  Expect = iota // the key is not there
	Present               // the key is there, with any value
	Equal                 // the key is there with exactly Value
)

// Holds reports whether p is satisfied by its key's present value; present says whether the key exists. Engines use it.
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

// Batch collects the operations of one Write; a later operation on a key wins over an earlier one. Keys and values are
// copied in, so the arguments may be reused after a call returns. The zero value is an empty batch. Not safe for
// concurrent use.
type Batch struct {
	buf  []byte
	ends []span

	// Frees says that the batch removes more than it adds, as a delete's does. An engine that refuses new data with
	// ErrFull takes it as long as there is any room at all. Reset keeps it false.
	Frees bool
}

// span is one operation: buf[key:val] is the key, buf[val:end] the value; end < 0: delete.
type span struct {
	key, val, end int
	open          bool
}

// Put stores value under key. Value must not be empty.
func (b *Batch) Put(key, value []byte) { b.put(key, value, false) }

// PutOpen is Put of a value whose first bytes Prepared.Patch may still change. No other operation of the batch may be
// on key.
func (b *Batch) PutOpen(key, value []byte) { b.put(key, value, true) }

func (b *Batch) put(key, value []byte, open bool) {
	k := len(b.buf)
	b.buf = append(b.buf, key...)
	v := len(b.buf)
	b.buf = append(b.buf, value...)
	b.ends = append(b.ends, span{k, v, len(b.buf), open})
}

// Delete removes key; an absent key is no error.
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
func (b *Batch) Reset() { b.buf, b.ends, b.Frees = b.buf[:0], b.ends[:0], false }
