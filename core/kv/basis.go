package kv

import (
	"context"
	"time"
)

// Basis is a Snapshot that a write can be based on. An engine over a network has such snapshots: it need not read the
// preconditions of the write again.
type Basis interface {
	// WriteFrom is Engine.Write of preconditions of which the caller has seen that they hold, in the snapshot or later.
	// A write to one of their keys since the snapshot makes it fail with ErrConflict, unless the precondition holds at
	// the commit. So does somebody who holds one of the keys (Holder), although the precondition may hold.
	WriteFrom(ctx context.Context, b *Batch, pre []Precondition) (Commit, error)
}

// CheckIn reads the keys of preconditions in a snapshot. It fails with a PreconditionError if one doesn't hold.
func CheckIn(s Snapshot, pre []Precondition) error {
	if len(pre) == 0 {
		return nil
	}
	var v Values
	keys := make([][]byte, len(pre))
	for i := range pre {
		keys[i] = pre[i].Key
	}
	if err := s.GetMany(&v, keys); err != nil {
		return err
	}
	for i := range pre {
		if at := v.At(i); !pre[i].Holds(at, at != nil) {
			return &PreconditionError{Index: i}
		}
	}
	return nil
}

// Follower is a Commit of an engine over a network that knows a moment after it. The engine has asked the store for
// that moment while it was committing, so whoever writes next saves a round trip. See Batch.Followed.
type Follower interface {
	Commit
	// After returns a snapshot that shows the commit, and a time before the moment that it shows. It makes no request,
	// but may wait for the answer to one. The reads end with ctx. It returns nil if there is no such snapshot, or if it
	// was given before.
	After(ctx context.Context) (Snapshot, time.Time)
}

// Holder is an Engine over a network with writers that may lose one race after the other, because another process is
// always faster. Such a writer can hold keys.
type Holder interface {
	// Hold waits until nobody else writes keys or holds them, and returns a snapshot, which is a Basis. Until a write
	// is based on it or it is closed, others that write one of keys wait. That ends after a second or so, because the
	// process may have ended: the preconditions of a write decide in any case. Reads don't wait. Two that hold some of
	// the same keys don't wait for each other for ever: all take keys in their order.
	// What With makes of the snapshot is for reads only.
	Hold(ctx context.Context, keys ...[]byte) (Snapshot, error)
}

// Hold holds keys on any engine as Holder does. On an engine that isn't one it is Engine.Snapshot.
func Hold(ctx context.Context, e Engine, keys ...[]byte) (Snapshot, error) {
	if h, ok := e.(Holder); ok {
		return h.Hold(ctx, keys...)
	}
	return e.Snapshot(ctx)
}

// NewestReader is an Engine that reads several keys faster if they need not be of one moment.
type NewestReader interface {
	// GetNewest reads keys into v as Snapshot.GetMany does. Each value was the newest one at some moment during the
	// call, for each key at another one.
	GetNewest(ctx context.Context, v *Values, keys [][]byte) error
}

// GetNewest reads on any engine as NewestReader does. On an engine that isn't one it reads in a snapshot.
func GetNewest(ctx context.Context, e Engine, v *Values, keys [][]byte) error {
	if n, ok := e.(NewestReader); ok {
		return n.GetNewest(ctx, v, keys)
	}
	v.Reset()
	s, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	err = s.GetMany(v, keys)
	if cerr := s.Close(); err == nil && cerr != nil {
		v.Reset()
		err = cerr
	}
	return err
}
