// Package memkv is the in-memory engine: a copy-on-write B-tree whose copies are the snapshots. It keeps nothing on
// disk; tests and `orrery demo` run on it.
package memkv

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/tidwall/btree"
)

// Limits are those of the disk engine, so that what works in memory works on disk.
var limits = kv.Limits{Key: 4 << 10, Value: 64 << 20, Batch: 128 << 20}

// entry is one key; its slices are never changed after they went into the tree, because snapshots share them.
type entry struct{ key, val []byte }

type tree = btree.BTreeG[entry]

func less(a, b entry) bool { return bytes.Compare(a.key, b.key) < 0 }

// Engine implements kv.Engine. Invariants:
//
//  1. tree is changed only while mu is held for writing.
//  2. snap is nil, or a copy of tree that is never changed. Each change of tree sets it to nil, and the next Snapshot
//     copies again. So all snapshots between two writes cost one copy.
//
// Example: two Snapshots share one copy of the tree. A Write changes tree and sets snap to nil. The two Snapshots still
// read the old copy. A third Snapshot makes another one.
type Engine struct {
	mu     sync.RWMutex
	tree   *tree
	snap   *tree
	closed bool
}

var _ kv.Engine = (*Engine)(nil)

// New returns an empty engine.
func New() *Engine {
	return &Engine{tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

// Fork returns an engine with the present content. It takes constant time: from then on each of both copies the parts
// of the tree that it changes. A closed engine has no content.
func (e *Engine) Fork() *Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := New()
	if !e.closed {
		f.tree = e.tree.Copy()
	}
	return f
}

// Limits implements kv.Engine.
func (e *Engine) Limits() kv.Limits { return limits }

// Remote implements kv.Engine.
func (e *Engine) Remote() bool { return false }

// Shared implements kv.Engine.
func (e *Engine) Shared() bool { return false }

// Snapshot implements kv.Engine. It never waits.
func (e *Engine) Snapshot(context.Context) (kv.Snapshot, error) {
	t, err := e.present()
	if err != nil {
		return nil, err
	}
	return &snapshot{tree: t}, nil
}

// present returns an immutable tree with the current state.
func (e *Engine) present() (*tree, error) {
	e.mu.RLock()
	t, closed := e.snap, e.closed
	e.mu.RUnlock()
	if closed {
		return nil, kv.ErrClosed
	}
	if t != nil {
		return t, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, kv.ErrClosed
	}
	if e.snap == nil {
		e.snap = e.tree.Copy()
	}
	return e.snap, nil
}

// Get implements kv.Engine. It never waits.
func (e *Engine) Get(_ context.Context, dst, key []byte) ([]byte, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return dst, kv.ErrClosed
	}
	return get(e.tree, dst, key)
}

// get appends the value of a key to dst.
func get(t *tree, dst, key []byte) ([]byte, error) {
	it, ok := t.Get(entry{key: key})
	if !ok {
		return dst, kv.ErrNotFound
	}
	return append(dst, it.val...), nil
}

// committed is the Commit of an engine without durability: its Wait returns at once.
type committed struct{}

func (committed) Wait() error { return nil }

// Write implements kv.Engine.
func (e *Engine) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	if err := limits.CheckBatch(b); err != nil {
		return nil, err
	}
	if err := e.apply(b, pre); err != nil {
		return nil, err
	}
	return committed{}, nil
}

// apply checks the preconditions and applies the batch.
func (e *Engine) apply(b *kv.Batch, pre []kv.Precondition) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return kv.ErrClosed
	}
	for i := range pre {
		it, ok := e.tree.Get(entry{key: pre[i].Key})
		if !pre[i].Holds(it.val, ok) {
			return &kv.PreconditionError{Index: i}
		}
	}
	e.snap = nil
	for i, n := 0, b.Len(); i < n; i++ {
		op := b.Op(i)
		if op.Delete {
			e.tree.Delete(entry{key: op.Key})
			continue
		}
		buf := make([]byte, len(op.Key)+len(op.Value))
		copy(buf, op.Key)
		copy(buf[len(op.Key):], op.Value)
		e.tree.Set(entry{key: buf[:len(op.Key):len(op.Key)], val: buf[len(op.Key):]})
	}
	return nil
}

// DropRange implements kv.Engine.
func (e *Engine) DropRange(ctx context.Context, lo, hi []byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	if len(lo) == 0 || len(hi) == 0 {
		return fmt.Errorf("%w: a range needs both bounds", kv.ErrContract)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return kv.ErrClosed
	}
	var keys []entry
	e.tree.Ascend(entry{key: lo}, func(it entry) bool {
		if bytes.Compare(it.key, hi) >= 0 {
			return false
		}
		keys = append(keys, it)
		return true
	})
	e.snap = nil
	for _, k := range keys {
		e.tree.Delete(k)
	}
	return nil
}

// walk calls f with the entries of [lo, hi) in order until it returns false.
func (e *Engine) walk(lo, hi []byte, f func(entry) bool) error {
	if len(lo) == 0 || len(hi) == 0 {
		return fmt.Errorf("%w: a range needs both bounds", kv.ErrContract)
	}
	t, err := e.present()
	if err != nil {
		return err
	}
	t.Ascend(entry{key: lo}, func(it entry) bool { return bytes.Compare(it.key, hi) < 0 && f(it) })
	return nil
}

// Size implements kv.Engine; here it is exact.
func (e *Engine) Size(lo, hi []byte) (uint64, error) {
	var n uint64
	err := e.walk(lo, hi, func(it entry) bool { n += uint64(len(it.key) + len(it.val)); return true })
	return n, err
}

// SplitPoints implements kv.Engine.
func (e *Engine) SplitPoints(lo, hi []byte, target uint64) ([][]byte, error) {
	var cuts [][]byte
	var n uint64
	err := e.walk(lo, hi, func(it entry) bool {
		if target > 0 && n >= target {
			cuts, n = append(cuts, bytes.Clone(it.key)), 0
		}
		n += uint64(len(it.key) + len(it.val))
		return true
	})
	return cuts, err
}

// Close implements kv.Engine. Snapshots that are still open stay readable.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return kv.ErrClosed
	}
	e.closed, e.tree, e.snap = true, nil, nil
	return nil
}
