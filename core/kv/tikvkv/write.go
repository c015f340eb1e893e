package tikvkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	tikverr "github.com/tikv/client-go/v2/error"
	clientkv "github.com/tikv/client-go/v2/kv"
	"github.com/tikv/client-go/v2/tikv"
)

// bytesPerSecond is the least speed at which a cluster is expected to take a large batch.
const bytesPerSecond = 1 << 20

// committed is a Commit. A transaction is durable when it is acknowledged.
type committed struct{}

func (committed) Wait() error { return nil }

// Write implements kv.Engine.
func (e *Engine) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if err := e.open(ctx); err != nil {
		return nil, err
	}
	if err := limits.CheckBatch(b); err != nil {
		return nil, err
	}
	within, cancel := e.boundWrite(ctx, b)
	defer cancel()
	var last error
	late := 0
	for wait := time.Millisecond; ; wait = min(2*wait, 64*time.Millisecond) {
		begun := time.Now()
		done, again, err := e.attempt(within, b, pre, late, crowded(last))
		last = err
		if time.Since(begun) > life(b, late) {
			late++
		}
		switch {
		case err == nil:
			return done, nil
		case !again:
			return nil, e.failWrite(ctx, err)
		}
		// Another transaction has written to a key of this one.
		if !pause(within, wait) {
			return nil, e.failWrite(ctx, err)
		}
	}
}

// WriteFrom implements kv.Basis: the snapshot's timestamp is that of the transaction. Each transaction needs one of its
// own, so a second write takes another one.
func (s *snapshot) WriteFrom(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	return s.writeFrom(ctx, b, pre, s.begin)
}

// begin begins the transaction with the snapshot's timestamp.
func (s *snapshot) begin() (*tikv.KVTxn, error) { return s.e.store.Begin(tikv.WithStartTS(s.ts)) }

func (s *snapshot) writeFrom(ctx context.Context, b *kv.Batch, pre []kv.Precondition,
	begin func() (*tikv.KVTxn, error)) (kv.Commit, error) {
	if b.Len() == 0 || s.based.Swap(true) {
		return s.e.Write(ctx, b, pre)
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	if err := limits.CheckBatch(b); err != nil {
		return nil, err
	}
	within, cancel := s.e.boundWrite(ctx, b)
	defer cancel()
	done, again, err := s.transact(within, begin, b, pre, 0, false)
	switch {
	case err == nil:
		return done, nil
	case again: // it was not applied
		if i := s.e.heldAt(err, pre); i >= 0 { // the holder is likely to change it, so the caller begins again
			return nil, &kv.PreconditionError{Index: i}
		}
		return s.e.Write(ctx, b, pre) // the preconditions decide
	}
	return nil, s.e.failWrite(ctx, err)
}

// boundWrite is bound for a write.
func (e *Engine) boundWrite(ctx context.Context, b *kv.Batch) (context.Context, context.CancelFunc) {
	return lasting(ctx, e.timeout+time.Duration(b.Size()/bytesPerSecond)*time.Second)
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// failWrite is fail for an error of a write.
func (e *Engine) failWrite(ctx context.Context, err error) error {
	var pe *kv.PreconditionError
	switch {
	case errors.As(err, &pe), errors.Is(err, kv.ErrContract), errors.Is(err, kv.ErrTooLarge):
		return err
	case tikverr.IsErrorUndetermined(err):
		return fmt.Errorf("%w: %s", kv.ErrUnknownOutcome, err)
	}
	return e.fail(ctx, err)
}

// attempt is one transaction. late is how many before it took longer than their locks live. again says that it lost to
// another one, was undone, or met too many at a store, and that nothing was applied.
func (e *Engine) attempt(ctx context.Context, b *kv.Batch, pre []kv.Precondition, late int, alone bool) (
	done kv.Commit, again bool, err error) {
	s, err := e.now(ctx)
	if err != nil {
		return nil, false, err
	}
	if err := kv.CheckIn(s, pre); err != nil {
		return nil, false, err
	}
	if b.Len() == 0 { // what was read at one timestamp was so at that moment
		return committed{}, false, nil
	}
	return s.transact(ctx, s.begin, b, pre, late, alone)
}

// transact is the snapshot's transaction. Its preconditions hold at its timestamp. alone says that it sends one large
// request at a time.
func (s *snapshot) transact(ctx context.Context, begin func() (*tikv.KVTxn, error), b *kv.Batch, pre []kv.Precondition,
	late int, alone bool) (done kv.Commit, again bool, err error) {
	e := s.e
	tx, err := begin()
	if err != nil {
		return nil, false, err
	}
	tx.SetEnableAsyncCommit(!e.twoPhase)
	tx.SetEnable1PC(!e.twoPhase)
	if b.Frees {
		tx.SetDiskFullOpt(kvrpcpb.DiskFullOpt_AllowedOnAlmostFull)
	}
	tx.SetRPCInterceptor(lockTTL{s.taken, life(b, late)})
	met := new(meetings)
	tx.AddRPCInterceptor(met)
	if isLarge(b) {
		tx.AddRPCInterceptor(&flight{flights: &e.flights, ctx: ctx, alone: alone, sizes: map[string]int{}})
	}
	if err := e.fill(ctx, tx, b, pre); err != nil {
		_ = tx.Rollback()
		return nil, tx.IsPessimistic(), err
	}
	var next *ahead
	if b.Followed && !tx.IsPessimistic() {
		next = e.newAhead(tx.Len())
		tx.AddRPCInterceptor(next)
	}
	if err = tx.Commit(ctx); err != nil {
		again = conflicts(err) || crowded(err) || tx.IsPessimistic() // others may have removed the lock of a held key
		again = again && !tikverr.IsErrorUndetermined(err)
		if key := met.held.Load(); key != nil {
			err = &heldError{*key, err}
		}
		return nil, again, err
	}
	if next != nil && next.asked.Load() {
		return &followed{at: tx.CommitTS(), ahead: next}, false, nil
	}
	return committed{}, false, nil
}

// fill puts the operations into the transaction, in their order, and locks the keys that only have preconditions: they
// are sent with the others. A transaction that holds a key sends its locks of all keys with preconditions first.
func (e *Engine) fill(ctx context.Context, tx *tikv.KVTxn, b *kv.Batch, pre []kv.Precondition) error {
	var key, val []byte // the client copies them
	for i := range b.Len() {
		op := b.Op(i)
		key = e.appendData(key[:0], op.Key)
		if op.Delete {
			if err := tx.Delete(key); err != nil {
				return err
			}
			continue
		}
		if len(op.Value) > maxInline {
			val = pointer{tx.StartTS(), len(op.Value)}.append(val[:0])
			if err := e.putParts(tx, op.Key, op.Value); err != nil {
				return err
			}
		} else {
			val = append(append(val[:0], op.Value...), tagInline)
		}
		if err := tx.Set(key, val); err != nil {
			return err
		}
	}
	var locks [][]byte
	for i := range pre {
		name := e.data(pre[i].Key)
		_, err := tx.GetMemBuffer().GetFlags(name)
		if written := !tikverr.IsErrNotFound(err); !written || tx.IsPessimistic() {
			locks = append(locks, name)
		}
	}
	if len(locks) == 0 {
		return nil
	}
	return tx.LockKeys(ctx, clientkv.NewLockCtx(tx.StartTS(), clientkv.LockNoWait, time.Time{}), locks...)
}

// putParts writes a large value. If the batch writes its key several times, the parts are those of the last value,
// because all have the same timestamp; those of a longer one before would stay, so they are removed.
func (e *Engine) putParts(tx *tikv.KVTxn, key, val []byte) error {
	n := 0
	for part := range slices.Chunk(val, partSize) {
		if err := tx.Set(e.appendPart(nil, key, tx.StartTS(), n), part); err != nil {
			return err
		}
		n++
	}
	for ; ; n++ {
		name := e.appendPart(nil, key, tx.StartTS(), n)
		if _, err := tx.GetMemBuffer().GetFlags(name); err != nil {
			return nil
		}
		if err := tx.Delete(name); err != nil {
			return err
		}
	}
}

// bothBounds checks the bounds of a range. empty says that it has no keys.
func bothBounds(lo, hi []byte) (empty bool, err error) {
	if len(lo) == 0 || len(hi) == 0 {
		return true, fmt.Errorf("%w: a range needs both bounds", kv.ErrContract)
	}
	return bytes.Compare(lo, hi) >= 0, nil
}
