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
	// the commit.
	WriteFrom(ctx context.Context, b *Batch, pre []Precondition) (Commit, error)
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
