package tikvkv

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	clientkv "github.com/tikv/client-go/v2/kv"
	"github.com/tikv/client-go/v2/tikv"
)

// A transaction that is decided at its commit loses against whoever commits between its timestamp and its locks. Of
// several processes that write to one key all the time, the slowest may lose one race after the other. Such a writer
// takes a lock first (a pessimistic one, as TiKV's protocol calls it), and reads what it decides on when it has it. The
// store lets those who wait for the lock take turns. A commit that finds the lock in its first phase has lost a race.
//
// The lock lives for lockLife from the request for it, as the locks of a commit do. So a process that is killed with
// such a lock holds others up for no longer than one that is killed in a commit. The client looks whether a lock has
// ended when the store has let it wait in vain, so it waits for holdLook at a time.
//
// Example: A, B and C write to one key. A has lost a race. It asks for the lock while B commits, and gets it then. C
// finds the lock in its commit, which is a lost race, and asks for it, too. Meanwhile A has read and committed.

// holdLook is the longest time for which a store lets a request wait for a lock.
const holdLook = lockLife / 4

// heldError is the error of a commit that has found one of its keys held by somebody who goes on.
type heldError struct {
	key []byte // as stored
	error
}

func (e *heldError) Unwrap() error { return e.error }

// heldAt returns the index of the precondition whose key is held according to err; -1: there is none.
func (e *Engine) heldAt(err error, pre []kv.Precondition) int {
	var held *heldError
	if !errors.As(err, &held) {
		return -1
	}
	return slices.IndexFunc(pre, func(p kv.Precondition) bool { return bytes.Equal(e.data(p.Key), held.key) })
}

// held is a snapshot whose transaction has the locks of keys.
type held struct {
	*snapshot
	tx atomic.Pointer[tikv.KVTxn] // nil: a write has it, or it has ended
}

// Hold implements kv.Holder.
func (e *Engine) Hold(ctx context.Context, keys ...[]byte) (kv.Snapshot, error) {
	if err := e.open(ctx); err != nil {
		return nil, err
	}
	within, cancel := e.bound(ctx)
	defer cancel()
	names := make([][]byte, len(keys))
	for i, key := range keys {
		names[i] = e.data(key)
	}
	slices.SortFunc(names, bytes.Compare)
	for {
		h, err := e.hold(within, names)
		if err == nil {
			h.ctx = ctx
			return h, nil
		}
		if !conflicts(err) || within.Err() != nil {
			return nil, e.fail(ctx, err)
		}
		// The key was written after the timestamp, mostly by whoever had the lock.
	}
}

// hold takes one lock after the other: if each writer takes them in this order, none waits for one that waits for it.
func (e *Engine) hold(ctx context.Context, names [][]byte) (*held, error) {
	s, err := e.now(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := s.begin()
	if err != nil {
		return nil, err
	}
	tx.SetPessimistic(true)
	tx.SetRPCInterceptor(lockTTL{s.taken, lockLife})
	for _, name := range names {
		if err := tx.LockKeys(ctx, clientkv.NewLockCtx(s.ts, clientkv.LockAlwaysWait, time.Now()), name); err != nil {
			_ = tx.Rollback()
			return nil, err
		}
	}
	h := &held{snapshot: s}
	h.tx.Store(tx)
	return h, nil
}

// WriteFrom implements kv.Basis.
func (h *held) WriteFrom(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	return h.writeFrom(ctx, b, pre, func() (*tikv.KVTxn, error) { return h.tx.Swap(nil), nil })
}

// Close implements kv.Snapshot. It frees the key if no write has.
func (h *held) Close() error {
	if tx := h.tx.Swap(nil); tx != nil {
		_ = tx.Rollback() // if that fails the lock goes at its end
	}
	return h.snapshot.Close()
}
