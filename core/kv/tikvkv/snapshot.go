package tikvkv

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	tikverr "github.com/tikv/client-go/v2/error"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/txnkv/txnsnapshot"
)

// snapshot is a timestamp. Each read makes its own snapshot of the client, which keeps all that it has read: here views
// may be long, and don't read a key twice.
type snapshot struct {
	e     *Engine
	ctx   context.Context
	ts    uint64
	taken time.Time // before ts was given
	*snapshotState
}

// snapshotState is what a snapshot has in common with those that With makes of it.
type snapshotState struct {
	closed atomic.Bool
	based  atomic.Bool // a write has the timestamp
}

func newSnapshot(ctx context.Context, e *Engine, ts uint64, taken time.Time) *snapshot {
	return &snapshot{e, ctx, ts, taken, &snapshotState{}}
}

// With implements kv.Lasting.
func (s *snapshot) With(ctx context.Context) kv.Snapshot {
	return &snapshot{s.e, ctx, s.ts, s.taken, s.snapshotState}
}

// Snapshot implements kv.Engine.
func (e *Engine) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if err := e.open(ctx); err != nil {
		return nil, err
	}
	within, cancel := e.bound(ctx)
	defer cancel()
	s, err := e.now(within)
	if err != nil {
		return nil, e.fail(ctx, err)
	}
	s.ctx = ctx
	return s, nil
}

// now is a snapshot with a new timestamp. Its ctx is that of this call.
func (e *Engine) now(ctx context.Context) (*snapshot, error) {
	taken := time.Now()
	ts, err := e.timestamp(ctx)
	return newSnapshot(ctx, e, ts, taken), err
}

func (s *snapshot) open() error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	if time.Since(s.taken) > KeptVersions { // what it would read may be removed
		return kv.ErrSnapshotTooOld
	}
	return s.e.open(s.ctx)
}

func (s *snapshot) reader() *txnsnapshot.KVSnapshot { return s.e.store.GetSnapshot(s.ts) }

// Get implements kv.Snapshot.
func (s *snapshot) Get(dst, key []byte) ([]byte, error) {
	stored, err := s.stored(key)
	if err != nil {
		return dst, err
	}
	return s.value(dst, key, stored)
}

// stored returns what is stored under a key.
func (s *snapshot) stored(key []byte) ([]byte, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	within, cancel := s.e.bound(s.ctx)
	defer cancel()
	stored, err := s.reader().Get(within, s.e.data(key))
	if tikverr.IsErrNotFound(err) {
		return nil, kv.ErrNotFound
	}
	return stored, s.e.fail(s.ctx, err)
}

// value appends the value that is stored as stored to dst. It reads the parts of a large one.
func (s *snapshot) value(dst, key, stored []byte) ([]byte, error) {
	v, p, err := decode(stored)
	if err != nil || v != nil {
		return append(dst, v...), err
	}
	names := make([][]byte, p.parts())
	for i := range names {
		names[i] = s.e.appendPart(nil, key, p.ts, i)
	}
	within, cancel := s.e.bound(s.ctx)
	defer cancel()
	parts, err := s.reader().BatchGet(within, names)
	if err != nil {
		return dst, s.e.fail(s.ctx, err)
	}
	n := len(dst)
	for _, name := range names {
		dst = append(dst, parts[string(name)]...)
	}
	if len(dst)-n != p.length {
		return dst[:n], fmt.Errorf("%w: %d bytes of a value of %d", kv.ErrCorruption, len(dst)-n, p.length)
	}
	return dst, nil
}

// GetMany implements kv.Snapshot.
func (s *snapshot) GetMany(v *kv.Values, keys [][]byte) error {
	v.Reset()
	if err := s.open(); err != nil {
		return err
	}
	names := make([][]byte, len(keys))
	for i, key := range keys {
		names[i] = s.e.data(key)
	}
	within, cancel := s.e.bound(s.ctx)
	defer cancel()
	found, err := s.reader().BatchGet(within, names)
	if err != nil {
		return s.e.fail(s.ctx, err)
	}
	i := 0
	return v.Fill(keys, func(dst, key []byte) ([]byte, error) {
		stored, ok := found[string(names[i])]
		i++
		if !ok {
			return dst, kv.ErrNotFound
		}
		return s.value(dst, key, stored)
	})
}

// Has implements kv.Snapshot.
func (s *snapshot) Has(key []byte) (bool, error) {
	_, err := s.stored(key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() error {
	if s.closed.Swap(true) || s.e.closed.Load() {
		return kv.ErrClosed
	}
	return nil
}

// pair is a stored key and its stored value.
type pair struct{ key, val []byte }

// scanned is what a scan has found. Its bytes belong to the caller.
type scanned struct {
	pairs []pair
	end   bool // there are no others
	err   error
}

// scan reads the first n pairs of [lo, hi), or the last n in descending order. keysOnly leaves the values out.
//
// The client's scan takes no ctx. So it runs beside: if ctx ends, it goes on alone, until it has its answer or has
// repeated its requests for long enough.
func (e *Engine) scan(ctx context.Context, ts uint64, lo, hi []byte, n int, reverse, keysOnly bool) ([]pair, bool,
	error) {
	if err := e.open(ctx); err != nil {
		return nil, false, err
	}
	within, cancel := e.bound(ctx)
	defer cancel()
	done := make(chan scanned, 1)
	go func() {
		snap := e.store.GetSnapshot(ts)
		snap.SetScanBatchSize(max(n, 2)) // the client takes 1 for none
		snap.SetKeyOnly(keysOnly)
		done <- scanNow(snap, lo, hi, n, reverse)
	}()
	select {
	case r := <-done:
		return r.pairs, r.end, e.fail(ctx, r.err)
	case <-within.Done():
		return nil, false, e.fail(ctx, errors.New("a scan has no answer"))
	}
}

func scanNow(snap *txnsnapshot.KVSnapshot, lo, hi []byte, n int, reverse bool) (r scanned) {
	var it tikv.Iterator
	if reverse {
		it, r.err = snap.IterReverse(hi, lo)
	} else {
		it, r.err = snap.Iter(lo, hi)
	}
	if r.err != nil {
		return r
	}
	defer it.Close()
	r.pairs = make([]pair, 0, n)
	for it.Valid() {
		r.pairs = append(r.pairs, pair{it.Key(), it.Value()})
		if len(r.pairs) == n {
			return r
		}
		if r.err = it.Next(); r.err != nil {
			return r
		}
	}
	r.end = true
	return r
}
