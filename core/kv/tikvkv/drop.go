package tikvkv

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	tikverr "github.com/tikv/client-go/v2/error"
	"github.com/tikv/client-go/v2/tikv"
)

// dropKeys is the number of keys that one transaction of DropRange or Sweep removes.
const dropKeys = 1024

// DropRange implements kv.Engine. It removes the keys with transactions of dropKeys keys each, so older snapshots still
// read them. TiKV could also remove the files below a range at once. That takes the range from older snapshots, and not
// every store does it.
func (e *Engine) DropRange(ctx context.Context, lo, hi []byte) error {
	if err := e.open(ctx); err != nil {
		return err
	}
	if empty, err := bothBounds(lo, hi); err != nil || empty {
		return err
	}
	if err := e.drop(ctx, e.data(lo), e.data(hi)); err != nil {
		return err
	}
	plo, phi := e.parts(lo, hi)
	return e.drop(ctx, plo, phi)
}

// Remove removes the store: all keys of its keyspace, and then its identity. No process may use the store any more, and
// this engine can only be closed. After an error a part is removed, and Remove may be called again.
func (e *Engine) Remove(ctx context.Context) error {
	if err := e.open(ctx); err != nil {
		return err
	}
	lo, hi := e.all()
	if err := e.drop(ctx, append(e.identity(), 0), hi); err != nil {
		return err
	}
	return e.drop(ctx, lo, hi)
}

// drop removes the stored keys of [lo, hi).
func (e *Engine) drop(ctx context.Context, lo, hi []byte) error {
	for {
		keys, end, err := e.storedKeys(ctx, lo, hi, dropKeys)
		if err != nil {
			return err
		}
		if err := e.remove(ctx, keys); err != nil || end {
			return err
		}
		lo = append(keys[len(keys)-1], 0)
	}
}

// storedKeys returns the first n stored keys of [lo, hi), as they are now.
func (e *Engine) storedKeys(ctx context.Context, lo, hi []byte, n int) (keys [][]byte, end bool, err error) {
	within, cancel := e.bound(ctx)
	defer cancel()
	ts, err := e.timestamp(within)
	if err != nil {
		return nil, false, e.fail(ctx, err)
	}
	pairs, end, err := e.scan(ctx, ts, lo, hi, n, false, true)
	for _, p := range pairs {
		keys = append(keys, bytes.Clone(p.key))
	}
	return keys, end, err
}

// remove deletes stored keys in one transaction, which is repeated if another one writes to them. What it has removed
// may be removed again, so an unknown outcome is repeated too.
func (e *Engine) remove(ctx context.Context, keys [][]byte) error {
	if len(keys) == 0 {
		return nil
	}
	within, cancel := e.bound(ctx)
	defer cancel()
	for {
		ts, err := e.timestamp(within)
		if err != nil {
			return e.fail(ctx, err)
		}
		tx, err := e.store.Begin(tikv.WithStartTS(ts))
		if err != nil {
			return e.fail(ctx, err)
		}
		tx.SetDiskFullOpt(kvrpcpb.DiskFullOpt_AllowedOnAlmostFull)
		for _, key := range keys {
			if err := tx.Delete(key); err != nil {
				return e.fail(ctx, err)
			}
		}
		err = tx.Commit(within)
		if err == nil || !conflicts(err) && !tikverr.IsErrorUndetermined(err) {
			return e.fail(ctx, err)
		}
		if !pause(within, time.Millisecond) {
			return e.fail(ctx, err)
		}
	}
}

// Sweep removes parts of large values that were replaced or deleted. It reads the keys of all parts, so it is for
// background work. It returns how many parts it has removed.
//
// No pointer can name such a part again: the transaction with the part's timestamp has written the only pointer to it,
// and that one is gone.
func (e *Engine) Sweep(ctx context.Context) (removed int, err error) {
	if err := e.open(ctx); err != nil {
		return 0, err
	}
	lo := append([]byte(e.prefix), spaceParts)
	hi := append([]byte(e.prefix), spaceParts+1)
	for {
		n, last, err := e.sweepFrom(ctx, lo, hi)
		removed += n
		if err != nil || last == nil {
			return removed, err
		}
		lo = append(last, 0)
	}
}

// sweepFrom looks at the first parts of [lo, hi). last is the last one that it has looked at; nil if it was the last of
// all.
func (e *Engine) sweepFrom(ctx context.Context, lo, hi []byte) (removed int, last []byte, err error) {
	s, err := e.Snapshot(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer s.Close()
	snap := s.(*snapshot)
	pairs, end, err := e.scan(ctx, snap.ts, lo, hi, dropKeys, false, true)
	if err != nil {
		return 0, nil, err
	}
	var unnamed [][]byte
	var key []byte   // whose pointer is named
	var named uint64 // the timestamp of the pointer that is stored under key; 0: none
	for _, p := range pairs {
		k, ts, err := e.splitPart(p.key)
		if err != nil {
			return 0, nil, err
		}
		if key == nil || !bytes.Equal(k, key) {
			key = k
			if named, err = snap.pointerAt(k); err != nil {
				return 0, nil, err
			}
		}
		if ts != named {
			unnamed = append(unnamed, bytes.Clone(p.key))
		}
	}
	if err := e.remove(ctx, unnamed); err != nil {
		return 0, nil, err
	}
	if !end {
		last = bytes.Clone(pairs[len(pairs)-1].key)
	}
	return len(unnamed), last, nil
}

// pointerAt returns the timestamp of the pointer that is stored under a key; 0 if there is none.
func (s *snapshot) pointerAt(key []byte) (uint64, error) {
	stored, err := s.stored(key)
	if errors.Is(err, kv.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, p, err := decode(stored)
	return p.ts, err
}
