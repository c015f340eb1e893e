package kv

import "context"

// Basis is a Snapshot that a write can be based on. An engine over a network has such snapshots: it need not read the
// preconditions of the write again.
type Basis interface {
	// WriteFrom is Engine.Write of preconditions of which the caller has seen that they hold, in the snapshot or later.
	// A write to one of their keys since the snapshot makes it fail with ErrConflict, unless the precondition holds at
	// the commit.
	WriteFrom(ctx context.Context, b *Batch, pre []Precondition) (Commit, error)
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
