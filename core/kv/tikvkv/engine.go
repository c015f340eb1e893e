// Package tikvkv is the engine over TiKV, a distributed store of ordered keys. Any number of processes use one store at
// the same time.
//
// A write is one optimistic transaction:
//
//	take a timestamp
//	read the keys of the preconditions at that timestamp, all with one request; refuse if one doesn't hold
//	commit the batch; TiKV refuses it if a key of it was written since the timestamp
//
// A write that is based on a snapshot, in which its caller has read the preconditions, is only the last of these steps.
//
// A key that has a precondition and isn't written is locked in the transaction, so a write to it is noticed as well.
// After such a conflict the write begins again with a new timestamp: its preconditions decide, not the race.
//
// A snapshot is a timestamp. TiKV keeps what was visible then, and a snapshot can be read for KeptVersions.
// CollectGarbage removes what is older.
//
// Calls end with their ctx, and after Options.Timeout in any case: the client repeats requests to stores that don't
// answer, and would do so for longer.
//
// It is a Go module of its own, because the client brings many other modules.
package tikvkv

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	tikverr "github.com/tikv/client-go/v2/error"
	"github.com/tikv/client-go/v2/oracle"
	"github.com/tikv/client-go/v2/tikv"
)

// Options of an engine. The zero value has the defaults.
type Options struct {
	// TwoPhase makes every commit in two phases. Otherwise a commit is acknowledged after its first phase where the
	// client finds that possible. That needs a store which gives each commit a later timestamp than all reads before
	// it. TiKV does; a store that only speaks its protocol may not. Address has it as commit=2pc.
	TwoPhase bool
	// ReadOnly says that nothing will be written: an empty keyspace is an error then, and gets no store.
	ReadOnly bool
	// Upgrade allows to open a store of an older format. It is the caller's to call Engine.Upgrade.
	Upgrade bool
	Timeout time.Duration // the longest time of one call, above that of large batches; 0: DefaultTimeout
	Logger  *slog.Logger  // for errors of the client, of all engines of the process; nil: none are logged
}

// DefaultTimeout is the longest time of one call. It is above the time in which a group of stores elects a new leader
// when one of them fails.
const DefaultTimeout = 10 * time.Second

// Engine implements kv.Engine.
type Engine struct {
	layout
	store      *tikv.KVStore
	statistics *statistics // nil: there are none
	flights    flights
	timeout    time.Duration
	twoPhase   bool
	readOnly   bool
	older      bool // a store of an older format may be opened
	stored     identity
	closed     atomic.Bool
	stop       context.CancelFunc // ends the connections of the Placement Driver's client; may be nil
}

var (
	_ kv.Engine       = (*Engine)(nil)
	_ kv.Upgradable   = (*Engine)(nil)
	_ kv.Presplitter  = (*Engine)(nil)
	_ kv.NewestReader = (*Engine)(nil)
	_ kv.Basis        = (*snapshot)(nil)
	_ kv.Lasting      = (*snapshot)(nil)
	_ kv.Follower     = (*followed)(nil)
	_ kv.Holder       = (*Engine)(nil)
)

// Use returns an engine over an open client, which it closes with Close, or if it fails. Open makes the client itself.
func Use(ctx context.Context, store *tikv.KVStore, keyspace string, o Options) (*Engine, error) {
	replaceLogger()
	e := &Engine{layout: newLayout(keyspace), store: store, timeout: o.Timeout, twoPhase: o.TwoPhase}
	if e.timeout == 0 {
		e.timeout = DefaultTimeout
	}
	e.readOnly, e.older = o.ReadOnly, o.Upgrade
	if err := store.GetOracle().SetLowResolutionTimestampUpdateInterval(lockLife / 4); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if err := e.claim(ctx, keyspace); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return e, nil
}

// Limits implements kv.Engine.
func (e *Engine) Limits() kv.Limits { return limits }

// Remote implements kv.Engine.
func (e *Engine) Remote() bool { return true }

// Shared implements kv.Engine.
func (e *Engine) Shared() bool { return true }

// Identity implements kv.Identified.
func (e *Engine) Identity() kv.Identity { return e.stored.Identity }

// open fails if the engine is closed, or ctx has ended.
func (e *Engine) open(ctx context.Context) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return unavailable(ctx, err)
	}
	return nil
}

// bound returns the ctx of one call, which ends with ctx, and after the timeout of a call.
func (e *Engine) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return lasting(ctx, e.timeout)
}

// backoff is the client's count of the pauses of one call. The call's ctx ends it earlier.
func (e *Engine) backoff(ctx context.Context) *tikv.Backoffer {
	return tikv.NewBackofferWithVars(ctx, int(e.timeout.Milliseconds()), nil)
}

// timestamp returns a timestamp that is greater than those of everything that is visible now.
func (e *Engine) timestamp(ctx context.Context) (uint64, error) {
	return e.store.GetTimestampWithRetry(e.backoff(ctx), oracle.GlobalTxnScope)
}

// Get implements kv.Engine. It needs no timestamp: the newest version of one key is a snapshot.
func (e *Engine) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if err := e.open(ctx); err != nil {
		return dst, err
	}
	within, cancel := e.bound(ctx)
	defer cancel()
	stored, err := e.store.GetSnapshot(math.MaxUint64).Get(within, e.data(key))
	if tikverr.IsErrNotFound(err) {
		return dst, kv.ErrNotFound
	}
	if err != nil {
		return dst, e.fail(ctx, err)
	}
	v, _, err := decode(stored)
	if err != nil {
		return dst, err
	}
	if v != nil {
		return append(dst, v...), nil
	}
	s, err := e.Snapshot(ctx) // a pointer and its parts have to be of one version
	if err != nil {
		return dst, err
	}
	dst, err = s.Get(dst, key)
	return dst, errors.Join(err, s.Close())
}

// GetNewest implements kv.NewestReader with one request to each store, and without a timestamp. If a value is stored in
// parts, all is read in a snapshot, because a pointer and its parts have to be of one version.
func (e *Engine) GetNewest(ctx context.Context, v *kv.Values, keys [][]byte) error {
	v.Reset()
	if err := e.open(ctx); err != nil {
		return err
	}
	within, cancel := e.bound(ctx)
	defer cancel()
	names := make([][]byte, len(keys))
	for i, key := range keys {
		names[i] = e.data(key)
	}
	found, err := e.store.GetSnapshot(math.MaxUint64).BatchGet(within, names)
	if err != nil {
		return e.fail(ctx, err)
	}
	i, inParts := 0, false
	err = v.Fill(keys, func(dst, _ []byte) ([]byte, error) {
		stored, ok := found[string(names[i])]
		i++
		if !ok {
			return dst, kv.ErrNotFound
		}
		value, _, err := decode(stored)
		inParts = inParts || err == nil && value == nil
		return append(dst, value...), err
	})
	if err != nil || !inParts {
		return err
	}
	s, err := e.Snapshot(ctx)
	if err != nil {
		v.Reset()
		return err
	}
	if err := errors.Join(s.GetMany(v, keys), s.Close()); err != nil {
		v.Reset()
		return err
	}
	return nil
}

// Checkpoint implements kv.Engine.
func (e *Engine) Checkpoint(context.Context, string) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	return refused("The store is in TiKV, and TiKV's own tools make its backups.")
}

// Close implements kv.Engine.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return kv.ErrClosed
	}
	if e.statistics != nil {
		e.statistics.http.Close()
	}
	err := e.store.Close()
	if e.stop != nil {
		e.stop()
	}
	if err != nil {
		return unavailable(context.Background(), err)
	}
	return nil
}
